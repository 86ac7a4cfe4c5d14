// A lane whose replica shares experts with others: its stretches are over when the group has taken their steps.
#include "engine/serving/lane/lane.h"
#include "engine/serving/lane/lockstep_group.h"

namespace engine {

std::size_t Lane::member() const {
  return std::size_t(replica_->number) - replica_->group->first();
}

void Lane::follow_group() {
  end_ = kNever;
  const double held =
      stretch_.context - stretch_.sequences + double(sequences_.set.prompt_tokens());
  replica_->group->follow(*this, member(), stretch_, held);
}

void Lane::leave_group() {
  const LockstepGroup::Taken taken = replica_->group->leave(member());
  stretch_.first_step = taken.first_step;
  held_seconds_ = taken.held_seconds;
}

void Lane::count_until(double boundary, std::int64_t steps) {
  end_ = boundary;
  stretch_.steps = steps;
  end_stretch();
}

}  // namespace engine
