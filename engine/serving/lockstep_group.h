// Replicas that share experts, which begin and end their steps together, as engines with data-parallel attention do: at a
// boundary every member plans, the step lasts until the slowest is done, and those that have nothing to do take part in it
// with nothing. While nobody has anything to do all of them rest; whoever gets something wakes them.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/model/batch_shape.h"
#include "engine/serving/measurement.h"
#include "engine/serving/serving_stats.h"
#include "engine/step/step_table.h"

namespace engine {

class Lane;

class LockstepGroup {
 public:
  // Of `members` replicas from `first` on, in a pool that has this table and these sums.
  struct Setup {
    StepTable* table = nullptr;
    PoolSums* sums = nullptr;
    std::size_t first = 0;
    std::size_t members = 1;
  };
  void reset(const Setup& setup);

  std::size_t first() const { return setup_.first; }
  std::size_t end() const { return setup_.first + setup_.members; }
  // The end of the present step, or of the last one.
  double until() const { return until_; }
  bool steps_at(double now) const { return now + kSameMoment < until_; }

  // A member that plans has this batch in the next step, for which it does something else before that takes so long.
  void join(Lane& lane, const BatchShape& batch, double before);
  // All have planned: the step begins, if there is one. Returns how many do something in it.
  std::size_t begin(double now);

 private:
  struct Joined {
    Lane* lane = nullptr;
    BatchShape batch;
  };

  Setup setup_;
  double until_ = 0;
  // Of the step that is planned.
  std::vector<Joined> joined_;
  std::vector<MemberStep> steps_;
};

}  // namespace engine
