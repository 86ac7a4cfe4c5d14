// One engine loop: it carries out plans, a step at a time, and takes long stretches of decode steps in
// one go. A replica has one lane; a pipeline has one a stage, each with a batch in flight.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/base/fetch_lines.h"
#include "engine/serving/lane/lane_sequences.h"
#include "engine/serving/sequences/stretch.h"

namespace engine {

// With many replicas every line of memory has to be fetched anew: it begins with one.
class alignas(64) Lane {
 public:
  void reset(ReplicaState& replica);
  void fetch_own_lines() const { fetch_lines(this, sequences_.set.seldom_used()); }
  // What an arrival looks at: the present work, which it may cut.
  void fetch_work() const { fetch_lines(this, &chunks_); }
  // Who is done with the present work, and who reads in it.
  void fetch_sequences() const { sequences_.set.fetch_sequences(steps_of_work()); }
  // The first of either; -1: nobody.
  std::int32_t first_done() const { return sequences_.set.done_after(steps_of_work()); }
  std::int32_t first_reader() const { return sequences_.set.first_reader(); }

  // When something happens next; never, when there is nothing to do.
  double end() const { return end_; }
  bool idle() const { return work_ == Work::none && end_ == kNever; }
  // There may be something to do at `now`.
  void wake(double now) {
    if (idle() && !replica_->halted) end_ = now;
  }
  // The replica has failed: work ends at the next boundary, and nothing is planned.
  void halt(double time);
  // Everybody is gone, and whoever ran has nothing left here; it is idle from `now` on.
  void clear(double now);
  // Those that run leave their lane as they are.
  void stop_all();
  void count_idle(double until) {
    if (!working()) replica_->idle_seconds += until - free_since_;
  }
  // Something arrived: a stretch that cares ends at the next boundary.
  void interrupt(double time) {
    if (steady_ == Steady::until_arrival) stop_at(time);
  }
  // Any stretch ends at the next boundary: blocks come free, or somebody joins who has read elsewhere.
  void stop_at(double time);
  // The stretch goes on, but in two parts that meet at the first boundary from `time` on.
  void split(double time);
  // Takes the blocks that are gone by `time`, for who looks at the pool then.
  void settle(double time);
  // Those that wait hold so many tokens of shared cache more, from now on, that are in the cache already, or fewer.
  void count_sharing(double more, double now);
  // Clients have the tokens of steps of the present stretch that have ended before somebody is told now.
  void stream_until(double time, FrontEnd& front_end) const;
  // From now on tiers below hear at once of what it uses: it has told what it had to.
  void tell_at_once(double time);
  bool working() const { return work_ != Work::none; }
  // What happens at `end()` is the end of work, not only the time to plan, or to take blocks.
  bool ends_work() const { return working() && !takes_blocks_next(); }
  // Where others see what is given up here, and the present stretch goes on at `end()`: the blocks of its next step are taken.
  // False where there are none to take, or somebody waits, who may be let in at any boundary.
  bool take_next_blocks();
  // What ran until `end()` is done; those that depart are listed. False where nothing ran.
  bool end_work();
  // Begins what the policy says; with others it joins them, and begins when all have planned (`run_step`).
  void plan(double now);
  void run_step(const BatchShape& batch, double seconds);
  // Its present stretch has another part, on another line, in which the same sequences decode on; and that part, from the
  // end of this one on.
  bool has_next_part() const {
    return left_ > 0 && work_ == Work::stretch && replica_->landed.empty();
  }
  void begin_next_part(double now);
  void end_part_at(double time);
  // When its cache next loses something because of its age.
  double next_to_expire() const { return replica_->pool.next_to_expire(); }
  // In a pipeline (pipeline_turns.cc): nobody comes or goes with what happens at `end()`, and whoever decodes does so
  // again; then that, and the next step.
  bool decodes_on() const {
    if (work_ == Work::step || length_ >= 0 || steady_ != Steady::until_arrival) return false;
    return work_ == Work::none ? has_blocks() : sequences_.set.steps_to_next_end() > 1;
  }
  // Nothing happens elsewhere in the pipeline before `others`. Says when the last of its turns was, and how many these were.
  struct Decoded {
    double last = 0;
    std::int64_t turns = 1;
  };
  Decoded decode_on(double others);
  // Others step with it, until then.
  void wait_until(double time) { end_ = time; }
  // Nothing follows: of the present stretch so many steps are over, the last of them at `boundary`.
  void count_until(double boundary, std::int64_t steps);

  const RunningSet& running() const { return sequences_.set.running(); }
  // That those that read their prompts here will take before they have.
  std::int64_t blocks_to_read() const {
    return running().count > running().decoding ? sequences_.blocks_to_read() : 0;
  }
  double free_since() const { return free_since_; }
  // Blocks held and tokens made at a moment inside the present work, and who takes part in it.
  struct Moment {
    std::int64_t blocks = 0;
    double tokens = 0;
    std::int64_t sequences = 0;
  };
  Moment at(double time) const;
  const ReplicaView& view() { return sequences_.view(); }
  // Where it goes by what the cache has now.
  void order_queue() {
    const bool by_cache = replica_->common->settings->ordering == Ordering::longest_prefix;
    if (by_cache) sequences_.order_by_prefix();
  }

 private:
  enum class Work : std::uint8_t { none, stretch, step };
  static constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();

  Sequence& at(std::int32_t slot) { return sequences_.at(slot); }
  std::int64_t steps_of_work() const { return work_ == Work::stretch ? stretch_.steps : 1; }
  // Nothing to decide: the queue is empty and everybody decodes, as the policy had it before for as many, so everybody
  // decodes on.
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
  // Where steps propose more or fewer tokens: from now on as many as are best for those that decode, and in a step that
  // also reads prompts perhaps fewer.
  Decodes picked_for() const;
  void pick_length();
  void pick_beside_prompts();
  void change_length(int picked);
  // What the load at hand makes one expect of reading a prompt.
  void begin_investment();
  // The draft reads whatever it has not seen of those that decode, where it is about to propose for them. Returns how long
  // that takes.
  double draft_reading() {
    return replica_->common->late_reading != nullptr ? late_draft_reading() : 0;
  }
  double late_draft_reading();
  // True where the draft has to read before anybody decodes on: nothing else is done for so long, or a single step is taken
  // together with it.
  bool read_by_draft_first(double now);
  void wait_for_draft(double now, double seconds);
  void begin_work(double now) {
    replica_->idle_seconds += now - free_since_;
    free_since_ = now;
  }
  // In a pipeline: from now until the next batch may follow.
  [[gnu::always_inline]] void take_stage(double now) {
    ReplicaState& replica = *replica_;
    const PoolConstants& common = *replica.common;
    const double drafting = work_ == Work::stretch
                                ? stretch_.line->proposals(stretch_.context, stretch_.window)
                                : drafting_;
    replica.stage_free =
        now + stage_seconds(common.draft_place, double(common.lanes), end_ - now, drafting);
  }
  void start_single_step(double now);
  void end_single_step();
  void start(const StepPlan& plan, double now);

  // Stretches
  void start_steady(double now);
  void start_stretch(double now);
  // Steps of the next part, where others step with it. Where others see what is given up, they see it when its step begins: only
  // the first one takes blocks from the cache.
  std::int64_t steps_unseen() const {
    if (!replica_->common->given_up_in_sight) return left_;
    const std::int64_t blocks = std::max(replica_->pool.before_cache(), running().next_blocks);
    return sequences_.set.steps_that_fit(left_, blocks);
  }
  // Of a sequence, if the stretch is long enough.
  double tokens_to_full_window() const {
    const bool windows = left_ > 1 && sequences_.set.filling() > 0;
    return windows ? double(sequences_.set.tokens_to_full_window()) : kNever;
  }
  // Of a stretch that begins: who takes part, and the line that its steps lie on.
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
         .longest = replica_->common->uneven ? sequences_.set.longest() : 0,
         .adapters = sequences_.adapters.different(),
         .length = length_},
        *stretch_.line, own_line_);
  }
  // The first step's blocks are gone from the start on: other lanes plan meanwhile.
  void take_first_blocks() {
    taken_ = running().next_blocks;
    replica_->pool.take(taken_);
  }
  // Without others that step with it, such a stretch goes on: it has blocks for its first `seen_steps_`, and takes those of the
  // next one when that begins.
  bool takes_blocks_next() const { return work_ == Work::stretch && seen_steps_ < stretch_.steps; }
  void find_next_taking(std::int64_t steps_taken);
  void take_blocks_until(std::int64_t steps);
  double end_of_work() const { return takes_blocks_next() ? stretch_.end() : end_; }
  // KV tokens that those that run held for `seconds`: each its own.
  void count_held(double token_seconds, double seconds) {
    const bool plain =
        replica_->common->states == 0 && !replica_->pool.shares() && replica_->held_waiting == 0;
    replica_->common->sums->kv_token_seconds +=
        plain ? token_seconds : held_with_states(token_seconds, seconds);
  }
  // In a step of so many seconds, or while nobody steps. `taken_off`: tokens by which contexts are lower already, as those that
  // draw are taken to fall behind a lane that is yet to make them.
  void count_held_in_step(double seconds, std::int64_t taken_off = 0) {
    if (!replica_->common->counts_room) return;
    const double held = sequences_.set.contexts() + double(taken_off) - double(running().decoding) +
                        double(sequences_.set.prompt_tokens());
    count_held(held * seconds, seconds);
  }
  // In the present stretch.
  [[gnu::always_inline]] void count_held_in_stretch(const Stretch::Sums& sums, double seconds) {
    if (!replica_->common->counts_room) return;
    const bool alone = replica_->group == nullptr;
    const double others = double(sequences_.set.prompt_tokens());
    count_held(alone ? stretch_.held_seconds(sums, others) : held_seconds_, seconds);
  }
  double held_with_states(double token_seconds, double seconds) const;
  // So many steps of the present stretch are over: their sums; and the gaps that the first of them ends.
  [[gnu::always_inline]] void count_steps(double count, const Stretch::Sums& sums, double seconds) {
    ReplicaState& replica = *replica_;
    const PoolConstants& common = *replica.common;
    common.table->count_decode(*stretch_.line, count, sums.context, sums.window, seconds);
    common.sums->ran(count, seconds, stretch_.sequences);
    common.sums->adapter_steps += count * double(sequences_.adapters.different());
    count_held_in_stretch(sums, seconds);
  }
  [[gnu::always_inline]] void add_first_gaps() {
    sequences_.gaps.add_all(start_, stretch_.first_step, stretch_.sequences,
                            *replica_->common->stats,
                            [this](auto visit) { sequences_.each_decode(visit); });
  }
  // Tokens of the present stretch, or of the present step, go to clients.
  void stream_stretch() {
    if (replica_->common->front_end_seconds > 0) stream_steps_and_last();
  }
  void stream_steps_and_last();
  // That the tokens of one of its steps take.
  double stream_seconds() const {
    return replica_->common->front_end_seconds * stretch_.sequences * stretch_.pace->rate();
  }
  void stream_step();
  [[gnu::noinline]] void log_stretch() const;
  void end_stretch();
  void cut(std::int64_t steps);
  // With others (lane_in_group.cc): its place among them, and its stretch with theirs.
  std::size_t member() const;
  void follow_group();
  double begin_part_in_group();
  void begin_next_part_in_group(double now);
  void ask_group();
  void leave_group();
  // Steps of the present stretch: the fewest that last until `time`, and those that are over then.
  std::int64_t steps_until(double time) const;
  std::int64_t steps_over(double time) const;
  // Steps with prompts in them, or with some decodes left out
  void start_step(const StepPlan& plan, double now);
  // The first so many decodes take part in the batch, and take the blocks of their next tokens.
  void add_decodes(std::int64_t decodes, BatchShape& batch);
  // Prompts that are read on and those let in take their blocks. Returns how long their images take to encode.
  double begin_prompts(const StepPlan& plan, double now);
  // Of the step's decodes, which took so long.
  void add_gaps(double seconds);
  std::int64_t leave_out(std::int64_t count, BatchShape& batch);
  // The first so many decodes draw how many tokens they make in this step. Returns the blocks they do not take.
  std::int64_t draw(std::int64_t decodes);
  // Tokens that decodes made in so many steps, where these or their proposals vary.
  void count_verified(std::int64_t steps, double sequences, double made);
  double step_seconds(const BatchShape& batch, int length);
  void take_time(const BatchShape& batch, double seconds);
  void end_step();

  // In one line of memory, before what is larger
  ReplicaState* replica_ = nullptr;
  double start_ = 0, end_ = kNever;
  double free_since_ = 0;  // end of the last work
  Work work_ = Work::none;
  Steady steady_ = Steady::no;  // of a stretch,
  bool all_decode_ = false;     // or of a step
  int length_ = -1;             // of proposals, where it is picked
  std::int64_t left_ = 0;       // steps of a stretch after this part
  std::int64_t taken_ = 0;      // blocks of this part that are gone already
  std::int64_t seen_steps_ = kAllSteps;

  Stretch stretch_;  // this part of it
  // of a step
  SmallList<Chunk, 2> chunks_;
  std::int64_t step_decodes_ = 0;
  std::int64_t step_tokens_ = 0;  // that its decodes make
  LaneSequences sequences_;
  // The most sequences of which the policy said that all decode until somebody comes: so do fewer, as long as steps work on
  // as many tokens of each.
  std::int64_t most_steady_ = 0;
  // From here on few events look at anything.
  // Where others step with it: of KV tokens in a stretch; and whether that goes on where one before it ended, so that its
  // first step ends the same gaps as theirs.
  double held_seconds_ = 0;
  bool goes_on_in_group_ = false;
  DecodeLine own_line_;  // of the stretch, where the table does not keep it
  double drafting_ = 0;  // seconds of a step, in a pipeline
  std::int64_t saves_ =
      0;  // picoseconds that proposals save in each step, or would, where their length is picked
};

}  // namespace engine
