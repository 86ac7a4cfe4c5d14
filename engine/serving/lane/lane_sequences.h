// The sequences of a lane as they come and go: admitted from the queue or landed from another pool, read,
// decoding, preempted, done. Blocks are taken and given back here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "engine/serving/lane/decode_set.h"
#include "engine/serving/lane/replica_state.h"
#include "engine/serving/lane/token_gaps.h"
#include "engine/serving/sequences/adapter_count.h"
#include "engine/serving/sequences/urgency_lists.h"

namespace engine {

class LaneSequences {
 public:
  void reset(ReplicaState& replica);

 private:
  // What every event looks at comes first: with many replicas every line of memory has to be fetched anew.
  ReplicaState* replica_ = nullptr;
  std::optional<ReplicaView> view_;  // of the present run
  bool makes_way_ = false;           // who runs, for who is more urgent

 public:
  bool unread_by_draft = false;  // somebody has begun to decode since the draft last read
  TokenGaps gaps;
  AdapterCount adapters;  // of those that run
  DecodeSet set;
  DraftInvestment investment;  // where the draft reads late

  // Steps propose another number of tokens from now on.
  void change_pace(const Pace& pace) {
    set.change_pace(pace);
    view_->queries = std::int32_t(pace.queries);
  }
  // What a policy sees now.
  const ReplicaView& view() {
    view_->others_running = replica_->parked + replica_->holders > 0;
    if (replica_->common->pipeline) share_seats();
    return *view_;
  }
  // The policy's plan for a step.
  void plan_step(StepPlan& plan) {
    if (replica_->loads()) return plan_at_most(std::numeric_limits<std::int64_t>::max(), plan);
    replica_->common->plan(view(), plan);
  }
  // For one in which nobody comes in: it picks who leaves where all are equally urgent. Whoever was put back for those that run would
  // come in again at once where a policy reads prompts first, and be put back for ever.
  void plan_those_inside(StepPlan& plan) { plan_at_most(set.running().count, plan); }
  Sequence& at(std::int32_t slot) { return replica_->sequences[std::size_t(slot)]; }
  // The blocks of a sequence, for which seats need not be counted.
  const ReplicaView& blocks() const { return *view_; }

  // Different adapters of those that take part in a step: so many decodes, from the first one on, and prompts.
  std::int64_t adapters_in_step(std::int64_t decodes, std::span<const Chunk> prompts);

  // Puts those of the first in the queue forward whose prompts are cached furthest.
  void order_by_prefix();
  void hold_prefixes(const StepPlan& plan);
  void admit(const Admission& admission, double now);
  // True where somebody did.
  bool join_landed(double now);
  void begin_decoding(std::int32_t slot, double now);
  // It leaves the lane and its blocks, and keeps the tokens it has made.
  void stop(std::int32_t slot);
  void preempt(std::int32_t slot, bool to_the_end);
  // Less urgent ones leave where blocks or seats are lacking for more urgent ones (make_way.cc).
  // True where that was for those that run: they decode before anybody else comes in.
  bool make_way();
  // Somebody waits who is more urgent than somebody who runs, and may push them out.
  bool contested() {
    return makes_way_ && !replica_->waiting.empty() &&
           less_urgent_than(at(replica_->waiting.at(0)).priority) >= 0;
  }
  // Somebody whose prompt was read elsewhere waits for a seat, and there is one since others made way: it is taken with the next plan.
  bool seats_somebody() { return !replica_->landed.empty() && set.running().count < view().seats; }
  bool makes_way() const { return makes_way_; }
  void finish_due();
  // That those that read their prompts will take until they have.
  std::int64_t blocks_to_read() const;
  // The reference: sums over the lane, counted again.
  void recount();

  // Of one that decodes: a prefix that was in the cache is known to the draft as well.
  std::int64_t unread_tokens(const Sequence& sequence) const {
    const std::int64_t context = set.context(sequence);
    return context - std::min(sequence.cached, context - 1);
  }

  template <class Visit>
  void each_decode(Visit visit) {
    for (std::int32_t slot = set.running().first; slot >= 0; slot = at(slot).after) {
      if (at(slot).decoding) visit(at(slot));
    }
  }

 private:
  void begin(std::int32_t slot) {
    set.begin(slot);
    if (replica_->common->late_reading != nullptr) await_draft(at(slot));
  }
  // The draft has not read it, and may have to.
  void await_draft(Sequence& sequence) {
    sequence.drafted = false;
    unread_by_draft = true;
    const LateReading& reading = *replica_->common->late_reading;
    const double again = sequence.preemptions > 0 ? reading.again_per_token : 0;
    const std::int64_t read_again = set.context(sequence) - sequence.found_again;
    investment.join(reading, double(unread_tokens(sequence)), again * double(read_again),
                    set.running().decoding);
  }
  void join(std::int32_t slot) {
    const Sequence& sequence = at(slot);
    set.append(slot);
    if (makes_way_) urgency_.join(slot, sequence.priority);
    ++replica_->running;
    if (sequence.adapter >= 0) adapters.join(sequence.adapter);
  }
  void leave(std::int32_t slot) {
    const Sequence& sequence = at(slot);
    set.remove(slot);
    if (makes_way_) urgency_.leave(slot, sequence.priority);
    --replica_->running;
    if (sequence.adapter >= 0) adapters.leave(sequence.adapter);
  }
  void finish(std::int32_t slot);
  void leave_in_cache(Sequence& sequence);
  void look_up(const Sequence& sequence);
  // It was inside before: it made way, or another replica failed.
  void come_back(Sequence& sequence);
  void share_seats();
  void count_waste(const Sequence& sequence);
  // Of those that run, the least urgent one, the newest of equals; -1 where nobody is less urgent than `level`.
  std::int32_t less_urgent_than(std::int64_t level);
  std::int64_t most_urgent_running();
  // What comes free if some leave: what they hold, and what their next step would take. What others share may be what somebody who
  // waits has found: `own` is without it.
  struct Room {
    std::int64_t own = 0, blocks = 0, seats = 0;
    std::vector<KvHolding::Part> gone;
  };
  void add_room_of(const Sequence& sequence, Room& room) const;
  // Whether somebody fits who needs no more than comes free if all who are less urgent leave.
  template <class Fits>
  bool fits_without_less_urgent(std::int64_t level, Fits fits);
  // The policy's plan where no more than so many may run.
  void plan_at_most(std::int64_t running, StepPlan& plan);
  // Nobody runs with that plan, and nothing is under way that would change it.
  bool keeps_nobody(const StepPlan& plan) const;
  std::int64_t blocks_to_let_in(const Sequence& head, const KvPool::Match& hit);
  void make_way_for_queue();
  // Blocks that those that run take in their next step.
  std::int64_t blocks_to_go_on();

  UrgencyLists urgency_;  // of those that run, where they make way
  AdapterCount in_step_;
};

}  // namespace engine
