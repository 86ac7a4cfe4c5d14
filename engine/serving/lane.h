// One engine loop: it carries out plans, a step at a time, and takes long stretches of decode steps in
// one go. A replica has one lane; a pipeline has one a stage, each with a batch in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/serving/batch_policy.h"
#include "engine/serving/decode_set.h"
#include "engine/serving/fair_share.h"
#include "engine/serving/serving_stats.h"
#include "engine/serving/stretch.h"
#include "engine/serving/token_gaps.h"
#include "engine/step/step_table.h"

namespace engine {

// What the lanes of a replica share.
struct ReplicaState {
  const ServingSettings* settings = nullptr;
  Plan* plan = nullptr;
  StepTable* table = nullptr;
  ServingStats* stats = nullptr;
  PoolSums* sums = nullptr;
  std::int32_t number = 0;
  std::int64_t lanes = 1;
  std::int64_t longest = 1;  // tokens of the longest sequence
  std::int64_t window = 0;   // 0: no sliding window
  Pace pace;
  bool uneven = false;      // step times depend on the longest context
  bool hands_over = false;  // who departs keeps its blocks until its KV is carried away
  bool audit = false;       // recount everything at every step

  std::vector<Sequence> sequences;
  std::int32_t slots = 0;            // of `sequences`, in use or
  std::vector<std::int32_t> unused;  // to be used again
  WaitingQueue waiting;
  FairShare shares;
  KvPool pool;
  std::int64_t running = 0;      // over all lanes
  std::int64_t outstanding = 0;  // requests inside
  std::int64_t outstanding_tokens = 0;
  // Sequences whose KV is carried from here or to here: those that hold blocks and do not run, and their
  // blocks, shared ones not counted.
  std::int64_t parked = 0;
  std::int64_t parked_blocks = 0;
  WaitingQueue arriving;             // prompts were read elsewhere: they wait for blocks
  std::vector<std::int32_t> landed;  // their KV has come: they decode from the next step on
  double tokens_made = 0;
  double idle_seconds = 0;             // of all lanes
  double stage_free = 0;               // when the first pipeline stage takes the next batch
  std::vector<std::int32_t> departed;  // slots of those that are done here with the last event
  StepPlan scratch_plan;

  bool more_to_come() const { return !landed.empty() || !arriving.empty(); }
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
  void interrupt(double time) {
    if (steady_ == Steady::until_arrival) stop_at(time);
  }
  // Any stretch ends at the next boundary: blocks come free, or somebody joins who has read elsewhere.
  void stop_at(double time);
  // The stretch goes on, but in two parts that meet at the first boundary from `time` on.
  void split(double time);
  // Takes the blocks that are gone by `time`, for who looks at the pool then.
  void settle(double time);
  // What happens at `end()` is the end of work, not only the time to plan.
  bool working() const { return work_ != Work::none; }
  // What ran until `end()` is done; those that depart are listed. False where nothing ran.
  bool end_work();
  // Begins what the policy says.
  void plan(double now);

  const RunningSet& running() const { return set_.running(); }
  double free_since() const { return free_since_; }
  // Blocks held and tokens made at a moment inside the present work, and who takes part in it.
  struct Moment {
    std::int64_t blocks = 0;
    double tokens = 0;
    std::int64_t sequences = 0;
  };
  Moment at(double time) const;
  const ReplicaView& view();

 private:
  enum class Work : std::uint8_t { none, stretch, step };

  Sequence& at(std::int32_t slot) { return replica_->sequences[std::size_t(slot)]; }
  bool goes_on() const;
  void begin_work(double now);
  void start(const StepPlan& plan, double now);
  void hold_prefixes(const StepPlan& plan);

  // Stretches
  void start_steady(double now);
  void start_stretch(double now);
  void end_stretch();
  void cut(std::int64_t steps);
  // Steps with prompts in them, or with some decodes left out
  void start_step(const StepPlan& plan, double now);
  std::int64_t leave_out(std::int64_t count, BatchShape& batch);
  double step_seconds(const BatchShape& batch);
  void end_step();
  template <class Visit>
  void each_decode(Visit visit);

  // Sequences come and go
  void admit(const Admission& admission, double now);
  void join_landed(double now);
  void begin_decoding(std::int32_t slot, double now);
  void preempt(std::int32_t slot, bool to_the_end);
  void finish_due();
  void finish(std::int32_t slot);
  void count_waste(const Sequence& sequence);
  void recount();

  ReplicaState* replica_ = nullptr;
  DecodeSet set_;
  TokenGaps gaps_;
  std::optional<ReplicaView> view_;  // of the present run
  double free_since_ = 0;            // end of the last work

  Work work_ = Work::none;
  double start_ = 0, end_ = kNever;
  // of a stretch
  Stretch stretch_;         // this part
  std::int64_t left_ = 0;   // steps after this part
  std::int64_t taken_ = 0;  // blocks of this part that are gone already
  Steady steady_ = Steady::no;
  // of a step
  std::vector<Chunk> chunks_;
  std::int64_t step_decodes_ = 0;
  bool all_decode_ = false;
};

}  // namespace engine
