// What a lane is doing, from when until when: a single step, or a stretch of decode steps in closed form, which is planned to the next
// thing that can happen, cut where something happens before, and summed up at its end. It asks nobody what comes next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/serving/lane/lane_sequences.h"
#include "engine/serving/lane/proposals.h"
#include "engine/serving/sequences/stretch.h"

namespace engine {

class Stretches {
 public:
  // When something happens next; `kNever` where there is nothing to do.
  double end() const { return end_; }
  double free_since() const { return free_since_; }
  bool working() const { return work_ != Work::none; }
  // Whether work ends at `end()`. Otherwise that is only the time to plan, or to take blocks for the next step.
  bool ends_work() const { return working() && !takes_blocks_next(); }
  const RunningSet& running() const { return sequences_.set.running(); }
  void count_idle(double until) {
    if (!working()) replica_->idle_seconds += until - free_since_;
  }

  // ---- moments that change it (stretches_at_moments.cc) -----------------------------------------
  // A request arrived: a stretch that was planned to last until an arrival ends at the next step boundary.
  void interrupt(double time) {
    if (steady_ == Steady::until_arrival) stop_at(time);
  }
  // Ends any stretch at the first step boundary from `time` on, because blocks come free, or because a sequence joins whose
  // prompt was read elsewhere.
  void stop_at(double time);
  // Cuts the stretch in two parts at the first step boundary from `time` on; the second part follows the first at once.
  void split(double time);
  // Where the loop does not look for requests at every step (Inbox): steps until the first boundary at which it could take in one
  // that comes now; and ends the present stretch where that is planned to happen.
  std::int64_t steps_to_boundary(double now) const;
  void end_where_taken_in();

  // ---- what it has done at a moment -------------------------------------------------------------
  // Takes from the pool the blocks that the present stretch has used by `time`, so that others can look at the pool.
  void settle(double time);
  // From now on waiting requests hold `more` further shared tokens that are in the cache; negative: fewer.
  void count_sharing(double more, double now);
  // Hands the front end the tokens of all steps of the present stretch that have ended by `time`.
  void stream_until(double time, FrontEnd& front_end) const;
  // From now on tiers below the cache are told at once which prefixes this lane uses; they know of all uses so far.
  void tell_at_once(double time);
  // Takes the blocks of the next step of a stretch that goes on at `end()`. Needed only where other replicas see what this
  // one gives up of its cache. False where the stretch takes no blocks there, or where a request waits: it may be admitted at
  // any boundary, so the lane has to plan.
  bool take_next_blocks();
  // What the lane holds at a moment inside its present work: blocks, tokens made so far, and running sequences.
  struct Moment {
    std::int64_t blocks = 0;
    double tokens = 0;
    std::int64_t sequences = 0;
  };
  Moment at(double time) const;

  // ---- its parts --------------------------------------------------------------------------------
  // Whether the present stretch has another part, on another line of step times, in which the same sequences go on decoding.
  bool has_next_part() const {
    return left_ > 0 && work_ == Work::stretch && replica_->landed.empty();
  }
  // Begins that part, at the end of the present one.
  void begin_next_part(double now);

  // ---- in a lockstep group (stretches_in_group.cc) ----------------------------------------------
  // The group decides that nothing happens here before `time`.
  void wait_until(double time) { end_ = time; }
  // When the cache next gives something up because it is too old.
  double next_to_expire() const { return replica_->pool.next_to_expire(); }
  void end_part_at(double time);
  // The run is over: counts the `steps` steps of the present stretch that have ended, the last of them at `boundary`.
  void count_until(double boundary, std::int64_t steps);

 protected:
  enum class Work : std::uint8_t { none, stretch, step };
  static constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();

  void reset(ReplicaState& replica);
  Sequence& at(std::int32_t slot) { return sequences_.at(slot); }
  std::int64_t steps_of_work() const { return work_ == Work::stretch ? stretch_.steps : 1; }
  // Begins a stretch of `left_` steps, and ends it.
  void start_stretch(double now);
  void end_stretch();
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
  // Adds the KV tokens that the running sequences held for `seconds` in a single step, or while nothing runs. `taken_off` is added
  // back: where acceptance is drawn, the contexts of the sequences already lack the tokens that this step will not make.
  void count_held_in_step(double seconds, std::int64_t taken_off = 0) {
    if (!replica_->common->counts_room) return;
    const double held = sequences_.set.contexts() + double(taken_off) - double(running().decoding) +
                        double(sequences_.set.prompt_tokens());
    count_held(held * seconds, seconds);
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
  void stream_step();
  [[gnu::noinline]] void log_step(const BatchShape& batch) const;
  void leave_group();
  std::size_t member() const;  // this lane's number in its group

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
  // Few events look at what follows.
  Proposals proposals_;  // where speculation varies from step to step

 private:
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
  void cut(std::int64_t steps);
  // Steps of the present stretch: the fewest that last until `time`, and those that are over by then.
  std::int64_t steps_until(double time) const;
  std::int64_t steps_over(double time) const;
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
  double held_with_states(double token_seconds, double seconds) const;
  // The same for steps of the present stretch.
  [[gnu::always_inline]] void count_held_in_stretch(const Stretch::Sums& sums, double seconds) {
    if (!replica_->common->counts_room) return;
    const bool alone = replica_->group == nullptr;
    const double others = double(sequences_.set.prompt_tokens());
    count_held(alone ? stretch_.held_seconds(sums, others) : held_seconds_, seconds);
  }
  // Counts `count` steps of the present stretch that are over.
  [[gnu::always_inline]] void count_steps(double count, const Stretch::Sums& sums, double seconds) {
    ReplicaState& replica = *replica_;
    const PoolConstants& common = *replica.common;
    common.table->count_decode(*stretch_.line, count, sums.context, sums.window, seconds);
    common.sums->ran(count, seconds, stretch_.sequences);
    common.sums->adapter_steps += count * double(sequences_.adapters.different());
    count_held_in_stretch(sums, seconds);
  }
  void stream_steps_and_last();
  // Seconds that the front end needs for the tokens of one step of the stretch.
  double stream_seconds() const {
    return replica_->common->message_seconds.further * stretch_.sequences * stretch_.pace->rate();
  }
  [[gnu::noinline]] void log_stretch() const;
  void log_work(LoggedWork work) const;
  // In a lockstep group: stretches that all members take together.
  void follow_group();
  double begin_part_in_group();
  void begin_next_part_in_group(double now);
  void ask_group();

  // In a lockstep group: KV tokens times seconds of the present stretch; and whether this stretch continues the one before it,
  // so that the gaps of its first step are counted already.
  double held_seconds_ = 0;
  bool goes_on_in_group_ = false;
  DecodeLine own_line_;  // line of the stretch, where the table does not keep it
};

}  // namespace engine
