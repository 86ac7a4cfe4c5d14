// One engine loop: the requests it runs, the step it is in, and long stretches of decode steps taken
// in one go. A replica has one lane; a pipeline has one a stage, each with a batch in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/serving/batch_policy.h"
#include "engine/serving/fair_share.h"
#include "engine/serving/longest_context.h"
#include "engine/serving/serving_stats.h"
#include "engine/serving/step_calendar.h"
#include "engine/step/step_table.h"

namespace engine {

// What the lanes of a replica share.
struct ReplicaState {
  const ServingSettings* settings = nullptr;
  Plan* plan = nullptr;
  StepTable* table = nullptr;
  ServingStats* stats = nullptr;
  std::int32_t number = 0;
  std::int64_t lanes = 1;
  std::int64_t longest = 1;       // tokens of the longest sequence
  std::int64_t model_window = 0;  // 0: no sliding window
  std::int64_t window = 0;        // the same, or out of reach
  bool uneven = false;            // step times depend on the longest context
  bool audit = false;             // recount everything at every step

  std::vector<Sequence> sequences;
  std::int32_t slots = 0;            // of `sequences`, in use or
  std::vector<std::int32_t> unused;  // to be used again
  WaitingQueue waiting;
  FairShare shares;
  KvPool pool;
  std::int64_t running = 0;      // over all lanes
  std::int64_t outstanding = 0;  // requests inside
  std::int64_t outstanding_tokens = 0;
  double tokens_made = 0;
  double idle_seconds = 0;             // of all lanes
  double stage_free = 0;               // when the first pipeline stage takes the next batch
  std::vector<std::int64_t> answered;  // clients whose answers came with the last event
  StepPlan scratch_plan;
};

class Lane {
 public:
  void reset(ReplicaState& replica);

  // When something happens next; never, when there is nothing to do.
  double end() const { return end_; }
  bool idle() const { return work_ == Work::none && end_ == kNever; }
  // There may be something to do at `now`.
  void wake(double now) {
    if (idle()) end_ = now;
  }
  // Something arrived: a stretch that cares ends at the next boundary.
  void interrupt(double time);
  // The stretch goes on, but in two parts that meet at the first boundary from `time` on.
  void split(double time);
  // Takes the blocks that are gone by `time`, for who looks at the pool then.
  void settle(double time);
  // What happens at `end()` is the end of work, not only the time to plan.
  bool working() const { return work_ != Work::none; }
  // Carries on at `end()`: what was running is done, and the next step is planned, at once where
  // nothing else happens before `next_event`. True when something was running.
  bool advance(double next_event);

  const RunningSet& running() const { return running_; }
  double free_since() const { return free_since_; }
  // Blocks held and tokens made at a moment inside the present work, and who takes part in it.
  struct Moment {
    std::int64_t blocks = 0;
    double tokens = 0;
    std::int64_t sequences = 0;
  };
  Moment at(double time) const;

 private:
  enum class Work : std::uint8_t { none, stretch, step };
  // Decodes whose last token is later than the lane's last decode step.
  struct Newcomers {
    double time;
    double count;
  };

  Sequence& at(std::int32_t slot) { return replica_->sequences[std::size_t(slot)]; }
  std::int64_t context(const Sequence& sequence) const {
    return sequence.decoding ? sequence.context_base + running_.step : sequence.computed;
  }
  std::size_t bucket(std::int64_t context_base) const {
    const std::int64_t size = std::int64_t(blocks_by_phase_.size());
    if (phase_mask_ >= 0) return std::size_t(context_base & phase_mask_);
    const std::int64_t rest = context_base % size;
    return std::size_t(rest < 0 ? rest + size : rest);
  }
  std::int64_t blocks_held(const Sequence& sequence) const {
    if (sequence.reserved > 0) return sequence.reserved;
    const std::int64_t blocks = replica_->pool.blocks_for(context(sequence));
    return std::max({blocks, sequence.kv.shared, sequence.taken});
  }
  const ReplicaView& view();
  bool goes_on() const;

  // lane.cc and lane_stretch.cc: what runs
  void plan(double now);
  void begin_work(double now);
  void start(const StepPlan& plan, double now);
  void start_steady(double now);
  void start_stretch(double now);
  void start_step(const StepPlan& plan, double now);
  void end_stretch();
  void end_step();
  void finish_due(double time);
  std::int64_t steps_on_line(double above) const;
  double stretch_seconds(std::int64_t steps) const;
  std::int64_t steps_until(double time) const;
  void cut(std::int64_t steps);
  void add_decode_gaps(double start, double first_step);

  // lane_sets.cc: who runs
  void admit(const Admission& admission, double now);
  void preempt(std::int32_t slot, bool to_the_end);
  void begin_decoding(std::int32_t slot, double now);
  void stop_decoding(std::int32_t slot);
  void finish(std::int32_t slot, double now);
  void append_running(std::int32_t slot);
  void remove_running(std::int32_t slot);
  void skip_decodes(std::int64_t count);
  void count_next_blocks() { running_.next_blocks = blocks_by_phase_[bucket(-running_.step)]; }
  std::int64_t blocks_needed(std::int64_t steps) const;
  std::int64_t steps_that_fit(std::int64_t most) const;
  std::int64_t crossing_of(const Sequence& sequence) const {
    return replica_->window - 1 - sequence.context_base;
  }
  // Whether it fills its window before it ends: only then does the calendar of windows hold it.
  bool crosses(const Sequence& sequence) const {
    return crossing_of(sequence) <= sequence.finish_step;
  }
  void cross_windows();
  double longest_context();
  void count_waste(const Sequence& sequence);
  void recount();

  ReplicaState* replica_ = nullptr;
  RunningSet running_;
  std::optional<ReplicaView> view_;            // of the present run
  std::int64_t phase_mask_ = -1;               // of a block size that is a power of two
  std::vector<std::int64_t> blocks_by_phase_;  // growing decodes by context_base modulo block size
  double contexts_ = 0;                        // tokens the next decode of all attends to
  double windows_ = 0;                         // the same inside windows
  std::int64_t inside_window_ = 0;             // decodes that still fill their window
  std::int64_t prompt_tokens_ = 0;             // KV of prompts being read
  StepCalendar finishes_;                      // last tokens
  StepCalendar crossings_;                     // windows that are full
  LongestContext longest_;                     // among the decodes ...
  bool longest_stale_ = false;                 // ... but somebody left or was left out before time
  double last_decode_ = 0;                     // end of the last step in which all decoded
  std::vector<Newcomers> newcomers_;
  bool uneven_ = false;    // last tokens differ: they are noted in Sequence
  double free_since_ = 0;  // end of the last work

  Work work_ = Work::none;
  double start_ = 0, end_ = kNever;
  // of a stretch
  Stretch stretch_;
  bool on_floor_ = false;   // the host sets the pace
  double first_step_ = 0;   // seconds
  double rise_ = 0;         // of step time, from one to the next
  std::int64_t steps_ = 0;  // in this part
  std::int64_t left_ = 0;   // of the stretch after this part
  std::int64_t taken_ = 0;  // blocks of this part that are gone already
  Steady steady_ = Steady::no;
  // of a step
  std::vector<Chunk> chunks_;
  std::int64_t step_decodes_ = 0;
  bool all_decode_ = false;
};

}  // namespace engine
