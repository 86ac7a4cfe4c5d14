// One engine loop: it carries out the policy's plans one step at a time, and takes long stretches of decode steps in one go.
// A replica has one lane. A pipeline has one lane per stage, each with a batch in flight.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/base/fetch_lines.h"
#include "engine/serving/lane/lane_sequences.h"
#include "engine/serving/lane/proposals.h"
#include "engine/serving/sequences/stretch.h"

namespace engine {

// Aligned, since with many replicas each cache line that an event touches has to be fetched from memory.
class alignas(64) Lane {
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

  // When something happens next; `kNever` where there is nothing to do.
  double end() const { return end_; }
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
  void count_idle(double until) {
    if (!working()) replica_->idle_seconds += until - free_since_;
  }
  // A request arrived: a stretch that was planned to last until an arrival ends at the next step boundary.
  void interrupt(double time) {
    if (steady_ == Steady::until_arrival) stop_at(time);
  }
  // Where the loop does not look for requests at every step (Inbox): steps until the first boundary at which it could take in one that
  // comes now; takes in those that are due; and ends the present stretch where that is planned to happen.
  std::int64_t steps_to_boundary(double now) const;
  void take_in();
  void end_where_taken_in();
  // Ends any stretch at the first step boundary from `time` on, because blocks come free, or because a sequence joins whose
  // prompt was read elsewhere.
  void stop_at(double time);
  // Cuts the stretch in two parts at the first step boundary from `time` on; the second part follows the first at once.
  void split(double time);
  // Takes from the pool the blocks that the present stretch has used by `time`, so that others can look at the pool.
  void settle(double time);
  // From now on waiting requests hold `more` further shared tokens that are in the cache; negative: fewer.
  void count_sharing(double more, double now);
  // Hands the front end the tokens of all steps of the present stretch that have ended by `time`.
  void stream_until(double time, FrontEnd& front_end) const;
  // From now on tiers below the cache are told at once which prefixes this lane uses; they know of all uses so far.
  void tell_at_once(double time);
  bool working() const { return work_ != Work::none; }
  // Whether work ends at `end()`. Otherwise that is only the time to plan, or to take blocks for the next step.
  bool ends_work() const { return working() && !takes_blocks_next(); }
  // Takes the blocks of the next step of a stretch that goes on at `end()`. Needed only where other replicas see what this
  // one gives up of its cache. False where the stretch takes no blocks there, or where a request waits: it may be admitted at
  // any boundary, so the lane has to plan.
  bool take_next_blocks();
  // Ends what ran until `end()` and lists the sequences that depart. False where nothing ran.
  bool end_work();
  // Asks the policy and begins what it says. In a lockstep group a step begins once all members have planned (`run_step`).
  void plan(double now);
  void run_step(const BatchShape& batch, double seconds);
  // Whether the present stretch has another part, on another line of step times, in which the same sequences go on decoding.
  bool has_next_part() const {
    return left_ > 0 && work_ == Work::stretch && replica_->landed.empty();
  }
  // Begins that part, at the end of the present one.
  void begin_next_part(double now);
  void end_part_at(double time);
  // When the cache next gives something up because it is too old.
  double next_to_expire() const { return replica_->pool.next_to_expire(); }
  // In a pipeline (pipeline_turns.cc): whether no sequence comes or goes at `end()`, so that the same ones decode again.
  bool decodes_on() const { return more_alike_ > 0 && (work_ != Work::none || has_blocks()); }
  // When the last of some turns was, and how many turns there were.
  struct Decoded {
    double last = 0;
    std::int64_t turns = 1;
  };
  // Takes such turns as long as they come before `others`, when something else happens in the pipeline.
  Decoded decode_on(double others);
  // In a lockstep group: the group decides that nothing happens here before `time`.
  void wait_until(double time) { end_ = time; }
  // The run is over: counts the `steps` steps of the present stretch that have ended, the last of them at `boundary`.
  void count_until(double boundary, std::int64_t steps);

  const RunningSet& running() const { return sequences_.set.running(); }
  // Blocks that the prompts being read here still need.
  std::int64_t blocks_to_read() const {
    return running().count > running().decoding ? sequences_.blocks_to_read() : 0;
  }
  double free_since() const { return free_since_; }
  // What the lane holds at a moment inside its present work: blocks, tokens made so far, and running sequences.
  struct Moment {
    std::int64_t blocks = 0;
    double tokens = 0;
    std::int64_t sequences = 0;
  };
  Moment at(double time) const;
  const ReplicaView& view() { return sequences_.view(); }
  // Sorts the queue anew where its order depends on what the cache has now.
  void order_queue() {
    const bool by_cache = replica_->common->settings->ordering == Ordering::longest_prefix;
    if (by_cache) sequences_.order_by_prefix();
  }

 private:
  enum class Work : std::uint8_t { none, stretch, step };
  static constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();

  Sequence& at(std::int32_t slot) { return sequences_.at(slot); }
  std::int64_t steps_of_work() const { return work_ == Work::stretch ? stretch_.steps : 1; }
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
  void begin_work(double now) {
    replica_->idle_seconds += now - free_since_;
    free_since_ = now;
  }
  // In a pipeline: occupies the first stage from `now` until the next batch may enter it.
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
  void start(const StepPlan& plan, double now);

  // Stretches
  void start_steady(double now);
  void start_stretch(double now);
  // In a lockstep group: steps of the next part. Where other replicas see what is given up of the cache, they see it when a
  // step begins, so only the first step of a part may take blocks from the cache.
  std::int64_t steps_unseen() const {
    if (!replica_->common->given_up_in_sight()) return left_;
    const std::int64_t blocks = std::max(replica_->pool.before_cache(), running().next_blocks);
    return sequences_.set.steps_that_fit(left_, blocks);
  }
  // Tokens until the first sequence fills its attention window; `kNever` where the stretch cannot reach that.
  double tokens_to_full_window() const {
    const bool windows = left_ > 1 && sequences_.set.filling() > 0;
    return windows ? double(sequences_.set.tokens_to_full_window()) : kNever;
  }
  // Sets up a stretch that begins: the sequences in it, and the line of step times that its steps lie on.
  [[gnu::always_inline]] void find_line(double now) {
    work_ = Work::stretch;
    start_ = now;
    stretch_.context = sequences_.set.contexts();
    stretch_.window = sequences_.set.windows();
    stretch_.sequences = double(running().decoding);
    stretch_.growing = double(sequences_.set.filling());
    stretch_.from = running().step;
    stretch_.line = &replica_->common->table->decode_line_again(
        {.sequences = running().decoding,
         .context = stretch_.context,
         .window = stretch_.window,
         .longest = replica_->common->uneven() ? sequences_.set.longest() : 0,
         .adapters = sequences_.adapters.different(),
         .length = length_},
        *stretch_.line, own_line_);
  }
  // Takes the first step's blocks at the start, since other lanes of a pipeline plan before the step ends.
  void take_first_blocks() {
    taken_ = running().next_blocks;
    replica_->pool.take(taken_);
  }
  // Outside lockstep groups: whether the stretch has taken blocks for its first `seen_steps_` steps only, and takes those of the
  // step after them when that step begins.
  bool takes_blocks_next() const { return work_ == Work::stretch && seen_steps_ < stretch_.steps; }
  void find_next_taking(std::int64_t steps_taken);
  void take_blocks_until(std::int64_t steps);
  double end_of_work() const { return takes_blocks_next() ? stretch_.end() : end_; }
  // Adds the KV tokens that the running sequences held for `seconds`. Tokens that several sequences share count once.
  void count_held(double token_seconds, double seconds) {
    const bool plain =
        replica_->common->states == 0 && !replica_->pool.shares() && replica_->held_waiting == 0;
    replica_->common->sums->kv_token_seconds +=
        plain ? token_seconds : held_with_states(token_seconds, seconds);
  }
  // The same for a single step, or for time in which nothing runs. `taken_off` is added back: where acceptance is drawn, the
  // contexts of the sequences already lack the tokens that this step will not make.
  void count_held_in_step(double seconds, std::int64_t taken_off = 0) {
    if (!replica_->common->counts_room) return;
    const double held = sequences_.set.contexts() + double(taken_off) - double(running().decoding) +
                        double(sequences_.set.prompt_tokens());
    count_held(held * seconds, seconds);
  }
  // The same for steps of the present stretch.
  [[gnu::always_inline]] void count_held_in_stretch(const Stretch::Sums& sums, double seconds) {
    if (!replica_->common->counts_room) return;
    const bool alone = replica_->group == nullptr;
    const double others = double(sequences_.set.prompt_tokens());
    count_held(alone ? stretch_.held_seconds(sums, others) : held_seconds_, seconds);
  }
  double held_with_states(double token_seconds, double seconds) const;
  // Counts `count` steps of the present stretch that are over.
  [[gnu::always_inline]] void count_steps(double count, const Stretch::Sums& sums, double seconds) {
    ReplicaState& replica = *replica_;
    const PoolConstants& common = *replica.common;
    common.table->count_decode(*stretch_.line, count, sums.context, sums.window, seconds);
    common.sums->ran(count, seconds, stretch_.sequences);
    common.sums->adapter_steps += count * double(sequences_.adapters.different());
    count_held_in_stretch(sums, seconds);
  }
  // Counts the gaps between tokens that end with the first step of the stretch.
  [[gnu::always_inline]] void add_first_gaps() {
    sequences_.gaps.add_all(start_, stretch_.first_step, stretch_.sequences,
                            *replica_->common->stats,
                            [this](auto visit) { sequences_.each_decode(visit); });
  }
  // Hands the tokens of the present stretch to the front end; `stream_step` does so for a single step.
  void stream_stretch() {
    if (replica_->common->streams()) stream_steps_and_last();
  }
  void stream_steps_and_last();
  // Seconds that the front end needs for the tokens of one step of the stretch.
  double stream_seconds() const {
    return replica_->common->message_seconds.further * stretch_.sequences * stretch_.pace->rate();
  }
  void stream_step();
  [[gnu::noinline]] void log_stretch() const;
  [[gnu::noinline]] void log_step(const BatchShape& batch) const;
  void log_work(LoggedWork work) const;
  void end_stretch();
  void cut(std::int64_t steps);
  // In a lockstep group (lane_in_group.cc): this lane's number in it, and stretches that all members take together.
  std::size_t member() const;
  void follow_group();
  double begin_part_in_group();
  void begin_next_part_in_group(double now);
  void ask_group();
  void leave_group();
  // Steps of the present stretch: the fewest that last until `time`, and those that are over by then.
  std::int64_t steps_until(double time) const;
  std::int64_t steps_over(double time) const;
  // Steps with prompts in them, or with some decodes left out
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

  // What every event looks at, in one cache line
  ReplicaState* replica_ = nullptr;
  double start_ = 0, end_ = kNever;
  double free_since_ = 0;  // end of the last work
  Work work_ = Work::none;
  Steady steady_ = Steady::no;  // stretch: how long its plan holds
  bool all_decode_ = false;     // step: every decoding sequence takes part in it
  int length_ = -1;             // proposed tokens, where their number is picked by load; else -1
  std::int64_t left_ = 0;       // steps of the stretch after its present part
  std::int64_t taken_ = 0;      // blocks that the present part has already taken
  std::int64_t seen_steps_ = kAllSteps;
  // In a pipeline: steps after the present one, or from now on where there is none, in which the same sequences decode, and none
  // of them ends before the last; 0 or less where that is not known.
  std::int64_t more_alike_ = 0;

  Stretch stretch_;  // its present part
  // The present step: its prompts, its decoding sequences, and the tokens that these make
  SmallList<Chunk, 2> chunks_;
  std::int64_t step_decodes_ = 0;
  std::int64_t step_tokens_ = 0;
  LaneSequences sequences_;
  // The largest number of sequences that the policy let decode until the next arrival. It would let fewer do so, too, as long
  // as a step works on as many tokens of each.
  std::int64_t most_steady_ = 0;
  // Few events look at what follows.
  // In a lockstep group: KV tokens times seconds of the present stretch; and whether this stretch continues the one before it,
  // so that the gaps of its first step are counted already.
  double held_seconds_ = 0;
  bool goes_on_in_group_ = false;
  DecodeLine own_line_;  // line of the stretch, where the table does not keep it
  double drafting_ = 0;  // in a pipeline: seconds that the draft takes in the present step
  Proposals proposals_;  // where speculation varies from step to step
};

}  // namespace engine
