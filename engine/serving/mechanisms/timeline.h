// The time series of a simulation: a row a replica at evenly spaced moments. A simulation that has
// more of them than stated gets every second one, every fourth one, and so on.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/figures/serving_rows.h"
#include "engine/serving/replica/replica.h"

namespace engine {

class Timeline {
 public:
  // Rows go to `rows`; null: there is no timeline. True where there is one.
  bool start(const OutputSettings& settings, std::vector<TimelineRow>* rows);

  // When the next rows are due.
  double next() const { return next_; }
  // Describes every replica at `next()`, or finds that this moment is left out.
  // `held`: requests that wait for any replica to take them; they count as the first one's.
  void write(const std::vector<Replica>& replicas, std::size_t held);

 private:
  void halve();
  void find_next();

  std::vector<TimelineRow>* rows_ = nullptr;
  double distance_ = 0;  // between two moments, seconds
  std::int64_t most_ = 0;
  std::int64_t moments_ = 0;
  double next_ = kNever;
  std::vector<double> tokens_before_;  // by replica
};

}  // namespace engine
