// One engine loop: it asks the policy, and carries out its plans step by step, or in stretches of decode steps that are taken in one
// go. A replica has one lane. A pipeline has one lane per stage, each with a batch in flight.
#pragma once

#include <cstdint>

#include "engine/base/fetch_lines.h"
#include "engine/serving/lane/lane_sequences.h"
#include "engine/serving/lane/stretches.h"

namespace engine {

// Aligned, since with many replicas each cache line that an event touches has to be fetched from memory.
class alignas(64) Lane : public Stretches {
 public:
  void reset(ReplicaState& replica);
  void fetch_own_lines() const { fetch_lines(this, sequences_.set.seldom_used()); }
  // Fetches what an arrival looks at: the present work, which the arrival may cut short.
  void fetch_work() const { fetch_lines(this, &chunks_); }
  // Fetches the sequences that end with the present work, and those that read a prompt in it.
  void fetch_sequences() const { sequences_.set.fetch_sequences(steps_of_work()); }
  // Slot of the first sequence of either kind; -1: there is none.
  std::int32_t first_done() const { return sequences_.set.done_after(steps_of_work()); }
  std::int32_t first_reader() const { return sequences_.set.first_reader(); }

  bool idle() const { return work_ == Work::none && end_ == kNever; }
  // Makes an idle lane plan at `now`.
  void wake(double now) {
    if (idle() && !replica_->halted) end_ = now;
  }
  // The replica has failed: work ends at the next boundary, and nothing is planned.
  void halt(double time);
  // Forgets everything: all its sequences have left the replica. The lane is idle from `now` on.
  void clear(double now);
  // Takes all running sequences out of the lane and leaves their own state as it is.
  void stop_all();

  // Takes in the requests that are due, where the loop does not look for them at every step (Inbox).
  void take_in();
  // Ends what ran until `end()` and lists the sequences that depart. False where nothing ran.
  bool end_work();
  // Asks the policy and begins what it says. In a lockstep group a step begins once all members have planned (`run_step`).
  void plan(double now);
  void run_step(const BatchShape& batch, double seconds);
  // In a pipeline (pipeline_turns.cc): whether no sequence comes or goes at `end()`, so that the same ones decode again.
  bool decodes_on() const { return more_alike_ > 0 && (work_ != Work::none || has_blocks()); }
  // When the last of some turns was, and how many turns there were.
  struct Decoded {
    double last = 0;
    std::int64_t turns = 1;
  };
  // Takes such turns as long as they come before `others`, when something else happens in the pipeline.
  Decoded decode_on(double others);

  // Blocks that the prompts being read here still need.
  std::int64_t blocks_to_read() const {
    return running().count > running().decoding ? sequences_.blocks_to_read() : 0;
  }
  const ReplicaView& view() { return sequences_.view(); }
  // Sorts the queue anew where its order depends on what the cache has now.
  void order_queue() {
    const bool by_cache = replica_->common->settings->ordering == Ordering::longest_prefix;
    if (by_cache) sequences_.order_by_prefix();
  }

 private:
  // Whether the policy need not be asked: nobody waits, all sequences decode, and the policy let as many decode before.
  bool goes_on() const {
    const bool as_before = steady_ == Steady::until_arrival ||
                           (running().decoding <= most_steady_ && replica_->landed.empty() &&
                            running().decoding == running().count);
    return as_before && replica_->common->own_paces == nullptr && replica_->waiting.empty() &&
           has_blocks();
  }
  bool has_blocks() const {
    return running().decoding > 0 && running().next_blocks <= replica_->pool.free();
  }
  void begin_work(double now) {
    replica_->idle_seconds += now - free_since_;
    free_since_ = now;
  }
  void start(const StepPlan& plan, double now);
  void start_steady(double now);

  // ---- where the number of proposed tokens, or what a draft has read, varies --------------------
  // Steps propose so many tokens from now on.
  void change_length(int picked);
  // Seconds for which the draft reads before it proposes, where it reads late.
  double draft_reading() {
    return replica_->common->late_reading != nullptr ? proposals_.read(length_) : 0;
  }
  // True where the draft has to read before the sequences decode on. The lane then either waits for it, or takes one step
  // together with it.
  bool read_by_draft_first(double now);
  void wait_for_draft(double now, double seconds);

  // ---- in a pipeline ----------------------------------------------------------------------------
  // Occupies the first stage from `now` until the next batch may enter it.
  [[gnu::always_inline]] void take_stage(double now) {
    ReplicaState& replica = *replica_;
    const PoolConstants& common = *replica.common;
    double drafting = 0;
    if (work_ != Work::stretch) {
      drafting = drafting_;
    } else if (!stretch_.line->plain) {
      drafting = stretch_.line->proposals(stretch_.context, stretch_.window);
    }
    replica.stage_free =
        now + stage_seconds(common.draft_place, double(common.lanes), end_ - now, drafting);
  }
  std::int64_t steps_alike() const {
    const bool alike = steady_ == Steady::until_arrival && length_ < 0 && running().decoding > 0 &&
                       replica_->group == nullptr;
    return alike && replica_->common->decodes_alike() ? sequences_.set.steps_to_next_end() : 0;
  }
  void start_single_step(double now);
  void end_single_step();
  // Whether the line of the present step also holds for the next one of the same sequences.
  bool stays_on_line() const {
    const DecodeLine& line = *stretch_.line;
    return line.kept >= 0 && line.sequences == running().decoding &&
           sequences_.set.contexts() < line.context_end;
  }

  // ---- steps with prompts in them, or with some decodes left out (lane_steps.cc) ----------------
  void start_step(const StepPlan& plan, double now);
  // Puts the first `decodes` decoding sequences into the batch and takes the blocks of their next tokens.
  void add_decodes(std::int64_t decodes, BatchShape& batch);
  // Takes blocks for prompts that are read further and for those that are admitted. Returns the seconds that encoding their
  // images takes.
  double begin_prompts(const StepPlan& plan, double now);
  // Counts the gaps between tokens that end with the present step, which takes `seconds`.
  void add_gaps(double seconds);
  // Takes the newest `count` decoding sequences out of the batch of this step. Returns the blocks that they do not take.
  std::int64_t leave_out(std::int64_t count, BatchShape& batch);
  double step_seconds(const BatchShape& batch, int length);
  void take_time(const BatchShape& batch, double seconds);
  void end_step();

  // The largest number of sequences that the policy let decode until the next arrival. It would let fewer do so, too, as long
  // as a step works on as many tokens of each.
  std::int64_t most_steady_ = 0;
  double drafting_ = 0;  // in a pipeline: seconds that the draft takes in the present step
};

}  // namespace engine
