// When the replicas of a pool fail, and when they are repaired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/figures/measurement.h"
#include "engine/serving/fleet/least_of.h"
#include "engine/serving/settings/failure_settings.h"

namespace engine {

// Replicas of a unit, which are switched on and off together, fail together. Times to failure follow from the seed, the unit and how
// often it failed before, so that every design meets the same ones.
class Failures {
 public:
  struct Setup {
    FailureSettings settings;
    std::size_t units = 1;
    std::uint64_t seed = 0;
    std::uint32_t pool = 0;
  };
  void reset(const Setup& setup);

  bool any() const { return setup_.settings.any(); }
  const FailureSettings& settings() const { return setup_.settings; }
  // When a unit fails or has been repaired next, and which one.
  double next() const { return any() ? events_.least() : kNever; }
  std::size_t next_unit() const { return events_.first(); }
  bool under_repair(std::size_t unit) const { return units_[unit].down_since >= 0; }

  // The unit fails now; it is down once its replicas have come to rest.
  void fail(std::size_t unit);
  void went_down(std::size_t unit, double now);
  void repaired(std::size_t unit, double now);
  // The unit was off when it would have failed: draws the next time.
  void pass_by(std::size_t unit, double now) { start(unit, now); }

  double count() const { return count_; }
  // Seconds under repair, summed over all units, from the start until `until`.
  double down_seconds(double until) const;

 private:
  struct Unit {
    double down_since = -1;   // -1: it is up
    std::uint64_t drawn = 0;  // how many times to failure were drawn
  };
  void start(std::size_t unit, double now);

  Setup setup_;
  std::vector<Unit> units_;
  LeastOf<double> events_;
  double count_ = 0;
  double down_ = 0;  // seconds of repairs that have ended
};

}  // namespace engine
