// The sequences of a lane as they come and go: they are admitted from the queue or land from another pool, their prompts are
// read, they decode, are preempted, end. Blocks are taken and given back here.
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
  // What every event looks at stands first, since with many replicas each cache line has to be fetched from memory.
  ReplicaState* replica_ = nullptr;
  std::optional<ReplicaView> view_;  // of the present run
  bool makes_way_ = false;           // running sequences make way for more urgent ones

 public:
  bool unread_by_draft = false;  // a sequence has begun to decode since the draft last read
  TokenGaps gaps;
  AdapterCount adapters;  // of the running sequences
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
    if (replica_->common->lanes > 1) share_seats();
    return *view_;
  }
  // The policy's plan for a step.
  void plan_step(StepPlan& plan) {
    if (replica_->loads()) return plan_at_most(std::numeric_limits<std::int64_t>::max(), plan);
    replica_->common->plan(view(), plan);
  }
  // The policy's plan for a step that admits nobody: it picks which sequences make way where all are equally urgent. A policy that
  // reads prompts first would otherwise admit at once what has just made way for the running ones, and so on for ever.
  void plan_those_inside(StepPlan& plan) { plan_at_most(set.running().count, plan); }
  Sequence& at(std::int32_t slot) { return replica_->sequences[std::size_t(slot)]; }
  // The view for counting a sequence's blocks; its seats need not be up to date.
  const ReplicaView& blocks() const { return *view_; }

  // Different adapters in a step: of its first `decodes` decoding sequences, and of its prompts.
  std::int64_t adapters_in_step(std::int64_t decodes, std::span<const Chunk> prompts);

  // Sorts the front of the queue by how much of each prompt is cached, the most first.
  void order_by_prefix();
  void hold_prefixes(const StepPlan& plan);
  void admit(const Admission& admission, double now);
  // Lets sequences decode whose KV has arrived, as far as there are seats. True where at least one does.
  bool join_landed(double now);
  void begin_decoding(std::int32_t slot, double now);
  // Takes a sequence out of the lane and gives back its blocks. The tokens that it has made are kept.
  void stop(std::int32_t slot);
  void preempt(std::int32_t slot, bool to_the_end);
  void keep(std::int32_t slot);
  // Less urgent sequences make way where more urgent ones lack blocks or seats (make_way.cc). True where that was for running
  // sequences, which then decode before anything is admitted.
  bool make_way();
  // Whether the first in the queue is more urgent than some running sequence, and may push it out.
  bool contested() {
    return makes_way_ && !replica_->waiting.empty() &&
           less_urgent_than(at(replica_->waiting.at(0)).priority) >= 0;
  }
  // Whether a sequence whose prompt was read elsewhere gets a seat with the next plan, because others made way.
  bool seats_somebody() { return !replica_->landed.empty() && set.running().count < view().seats; }
  bool makes_way() const { return makes_way_; }
  void finish_due();
  // Where first tokens wait for others: tells the clients whose answers have as many tokens now, or all of them.
  void tell_due(double now) {
    if (!set.untold().empty()) tell_those_due(now);
  }
  void tell_those_due(double now);
  // Blocks that the prompts being read will still take.
  std::int64_t blocks_to_read() const;
  // Counts all sums over the lane anew and checks them: the reference for tests.
  void recount();

  // Tokens of a decoding sequence that the draft has not read. A prefix that was in the cache is known to the draft as well.
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
  // Notes that the draft has not read this sequence yet.
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
  // For a sequence that was inside before, and made way or lost its replica.
  void come_back(Sequence& sequence);
  void share_seats();
  void count_waste(const Sequence& sequence);
  // The least urgent running sequence, and of equals the newest; -1 where none is less urgent than `level`.
  std::int32_t less_urgent_than(std::int64_t level);
  std::int64_t most_urgent_running();
  // What comes free if some sequences leave: the blocks they hold, the blocks their next step would take, and seats. `own` leaves
  // out blocks that they share with others, since a waiting request may have found those in the cache.
  struct Room {
    std::int64_t own = 0, blocks = 0, seats = 0;
    std::vector<KvHolding::Part> gone;
  };
  void add_room_of(const Sequence& sequence, Room& room) const;
  // Whether `fits` is satisfied by what comes free if all sequences that are less urgent than `level` leave.
  template <class Fits>
  bool fits_without_less_urgent(std::int64_t level, Fits fits);
  // The policy's plan where at most so many sequences may run.
  void plan_at_most(std::int64_t running, StepPlan& plan);
  // Whether nothing runs with that plan, and nothing is under way that would change it.
  bool keeps_nobody(const StepPlan& plan) const;
  std::int64_t blocks_to_let_in(const Sequence& head, const KvPool::Match& hit);
  void make_way_for_queue();
  // Blocks that the running sequences take in their next step.
  std::int64_t blocks_to_go_on();

  UrgencyLists urgency_;  // of the running sequences, where they make way for more urgent ones
  AdapterCount in_step_;
};

}  // namespace engine
