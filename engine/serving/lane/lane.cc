#include "engine/serving/lane/lane.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/serving/lane/lockstep_group.h"

namespace engine {

void Lane::reset(ReplicaState& replica) {
  Stretches::reset(replica);
  most_steady_ = 0;
}

// ---- what runs ------------------------------------------------------------------------------------

bool Lane::end_work() {
  if (work_ == Work::none) return false;
  const double now = end_;
  replica_->pool.pass(now);
  if (work_ == Work::stretch) {
    end_stretch();
    if (replica_->group != nullptr) leave_group();
    if (replica_->common->lanes > 1) more_alike_ = steps_alike();
  } else {
    end_step();
  }
  if (replica_->common->audit) sequences_.recount();
  work_ = Work::none;
  free_since_ = now;
  const ReplicaState& replica = *replica_;
  const bool more = running().count > 0 || !replica.waiting.empty() || !replica.inbox.empty() ||
                    replica.more_to_come();
  end_ = more && !replica.halted ? now : kNever;
  return true;
}

void Lane::halt(double time) {
  if (working()) return stop_at(time);
  end_ = kNever;
}

void Lane::stop_all() {
  while (running().count > 0) sequences_.stop(running().first);
}

void Lane::clear(double now) {
  reset(*replica_);
  free_since_ = now;
}

void Lane::take_in() {
  if (working()) return;  // not before the next boundary
  ReplicaState& replica = *replica_;
  const Inbox::Others others = running().decoding > 0 ? Inbox::Others::decode : Inbox::Others::rest;
  replica.inbox.open(others,
                     [&](std::int32_t slot) { replica.waiting.push(slot, replica.sequences); });
}

void Lane::plan(double now) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  replica.pool.pass(now);
  work_ = Work::none;
  end_ = kNever;
  if (!replica.landed.empty() && sequences_.join_landed(now)) {
    steady_ = Steady::no;
    left_ = more_alike_ = 0;
  }
  if (!replica.inbox.empty()) take_in();
  if (running().count == 0 && replica.waiting.empty()) return;
  if (common.turns.any() && common.turns.begins(now) > now) {
    end_ = common.turns.begins(now);  // another model has the devices
    return;
  }
  if (left_ > 0) return start_stretch(now);  // its next part
  if (common.lanes > 1 && now + kSameMoment < replica.stage_free) {
    end_ = replica.stage_free;  // another batch is in the first stage
    return;
  }
  const std::int64_t inside = running().count;
  // After a rest a policy begins anew.
  if (inside == 0 && now > free_since_ + kSameMoment) sequences_.set.forget();
  if (common.picks_length() && running().decoding > 0) change_length(proposals_.pick());
  if (goes_on()) {
    steady_ = Steady::until_arrival;
    begin_work(now);
    start_steady(now);
  } else {
    order_queue();
    StepPlan& plan = *common.scratch_plan;
    plan.clear();
    if (sequences_.makes_way() && sequences_.make_way()) {
      if (running().next_blocks <= replica.pool.free()) {
        plan.decodes = running().decoding;
      } else {
        sequences_.plan_those_inside(plan);
        plan.steady = Steady::no;
      }
    } else {
      sequences_.plan_step(plan);
      // Whether a sequence makes way, or takes a seat, is asked at every step.
      if (sequences_.contested() || sequences_.seats_somebody()) plan.steady = Steady::no;
      // The length was picked for those that have left, too: the next step picks again. They have left room to load into, and may
      // load again themselves: the next step looks.
      const bool left = running().count < inside || !plan.preempted.empty();
      if ((common.picks_length() || replica.loads()) && left) plan.steady = Steady::no;
    }
    if (plan.empty()) {
      const std::int64_t busy =
          replica.running + replica.parked - std::int64_t(replica.landed.size());
      const bool made_way = running().count < inside;
      check(running().count == 0 && (made_way || busy > 0),
            "a policy never leaves everyone waiting");
      // Blocks that came free may serve a request that loads or has landed, so it plans again at once. Otherwise the lane is woken when
      // another lane is done, or when KV has been carried.
      if (made_way) end_ = now;
      return;
    }
    begin_work(now);
    start(plan, now);
  }
  if (common.lanes > 1 && working()) take_stage(now);
}

[[gnu::always_inline]] inline void Lane::start(const StepPlan& plan, double now) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  if (plan.remembers) sequences_.set.remember(plan.memory);
  for (const std::int32_t slot : plan.preempted) sequences_.preempt(slot, plan.retracted_last);
  if (replica.pool.caches_prefixes()) sequences_.hold_prefixes(plan);
  const bool only_decodes = plan.chunks.empty() && plan.admissions.empty() && plan.decodes > 0;
  const bool as_one =
      common.own_paces == nullptr && (replica.group == nullptr || !common.turns.any());
  if (only_decodes && plan.decodes == running().decoding && as_one) {
    steady_ = common.settings->stepping ? Steady::no : plan.steady;
    if (steady_ == Steady::until_arrival && replica.waiting.empty()) {
      most_steady_ = std::max(most_steady_, plan.decodes);
    }
    start_steady(now);
  } else if (!plan.chunks.empty() || !plan.admissions.empty() || plan.decodes > 0) {
    start_step(plan, now);
  } else {
    // Everyone was preempted: plan again with the blocks that came free.
    check(!plan.preempted.empty(), "a plan does something");
    work_ = Work::none;
    end_ = now;
  }
}

// All sequences decode, for as long as the plan would be the same. Lanes of a pipeline share the blocks and take turns in the first
// stage, so they take one step at a time.
[[gnu::always_inline]] inline void Lane::start_steady(double now) {
  if (replica_->common->late_reading != nullptr && read_by_draft_first(now)) return;
  left_ = 1;
  if (replica_->common->lanes > 1) {
    more_alike_ = steps_alike() - 1;
  } else if (steady_ != Steady::no) {
    const std::int64_t most =
        std::min(sequences_.set.steps_to_next_end(), replica_->inbox.steps_left());
    left_ = sequences_.set.steps_that_fit(most, replica_->pool.free());
  }
  start_stretch(now);
}

// ---- speculation that varies ----------------------------------------------------------------------

void Lane::change_length(int picked) {
  if (picked == length_) return;
  length_ = picked;
  steady_ = Steady::no;  // a step may not have tokens for all of them any more, or may again
  most_steady_ = 0;
  sequences_.change_pace(replica_->common->table->length(picked).pace);
  stretch_.keep_pace(sequences_.set.pace());
}

// A lane in a lockstep group, or in a pipeline, would lose a turn by a step in which no sequence takes part, so it does not wait apart.
bool Lane::read_by_draft_first(double now) {
  if (replica_->group != nullptr || replica_->common->lanes > 1) {
    if (!proposals_.has_to_read(length_)) return false;
    StepPlan& plan = *replica_->common->scratch_plan;
    plan.clear();
    plan.decodes = running().decoding;
    start_step(plan, now);
    return true;
  }
  const double reading = draft_reading();
  if (reading > 0) wait_for_draft(now, reading);
  return reading > 0;
}

// A step in which no sequence takes part, while the draft reads.
void Lane::wait_for_draft(double now, double seconds) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  work_ = Work::step;
  start_ = now;
  end_ = now + seconds;
  left_ = 0;
  step_decodes_ = 0;
  chunks_.clear();
  common.stats->step_began(now);
  common.sums->ran(0, seconds, 0);
  count_held_in_step(seconds);
}

}  // namespace engine
