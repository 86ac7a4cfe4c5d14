#include "engine/serving/lockstep_group.h"

#include "engine/serving/lane.h"

namespace engine {

void LockstepGroup::reset(const Setup& setup) {
  setup_ = setup;
  until_ = 0;
  joined_.clear();
  steps_.clear();
}

void LockstepGroup::join(Lane& lane, const BatchShape& batch, double before) {
  joined_.push_back({&lane, batch});
  steps_.push_back(setup_.table->own_step(batch));
  steps_.back().before += before;
}

std::size_t LockstepGroup::begin(double now) {
  const std::size_t working = joined_.size();
  if (working == 0) return 0;
  const std::size_t idle = setup_.members - working;
  const double seconds = setup_.table->run_together(steps_, idle);
  setup_.sums->empty_seconds += double(idle) * seconds;
  until_ = now + seconds;
  std::int64_t tokens = 0;
  for (const MemberStep& step : steps_) tokens += step.rows;
  for (Joined& one : joined_) {
    one.batch.expert_tokens = tokens;
    one.lane->run_step(one.batch, seconds);
  }
  joined_.clear();
  steps_.clear();
  return working;
}

}  // namespace engine
