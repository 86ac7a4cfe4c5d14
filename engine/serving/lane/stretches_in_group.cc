// A lane whose replica shares experts with others: its stretches are over when the group has taken their steps.
#include "engine/serving/lane/lane.h"
#include "engine/serving/lane/lockstep_group.h"

namespace engine {

std::size_t Stretches::member() const {
  return std::size_t(replica_->number) - replica_->group->first();
}

// Returns the KV tokens that are held in its first step.
double Stretches::begin_part_in_group() {
  stretch_.begin_with_others(steps_unseen(), tokens_to_full_window());
  // Where a length is picked, the next part may have another.
  left_ = length_ < 0 ? left_ - stretch_.steps : 0;
  end_ = kNever;
  take_first_blocks();
  return stretch_.context - stretch_.sequences + double(sequences_.set.prompt_tokens());
}

void Stretches::follow_group() {
  goes_on_in_group_ = false;
  const double held = begin_part_in_group();
  replica_->group->follow(*this, member(), stretch_, held);
}

void Stretches::begin_next_part_in_group(double now) {
  find_line(now);
  goes_on_in_group_ = true;
  const double held = begin_part_in_group();
  replica_->group->follow_on(member(), held);
}

void Stretches::end_part_at(double time) {
  const std::int64_t steps = replica_->group->stop(member(), time);
  left_ += stretch_.steps - steps;
  stretch_.steps = steps;
}

void Stretches::ask_group() {
  const LockstepGroup::Taken taken = replica_->group->taken_by(member());
  stretch_.first_step = taken.first_step;
  held_seconds_ = taken.held_seconds;
}

void Stretches::leave_group() { replica_->group->leave(member()); }

void Stretches::count_until(double boundary, std::int64_t steps) {
  end_ = boundary;
  stretch_.steps = steps;
  end_stretch();
}

}  // namespace engine
