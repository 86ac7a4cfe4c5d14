// What the lanes of a replica share: its queue, its sequences, its KV pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/figures/step_log.h"
#include "engine/serving/policies/batch_policy.h"
#include "engine/serving/sequences/admission_pace.h"
#include "engine/serving/sequences/draft_investment.h"
#include "engine/serving/sequences/fair_share.h"
#include "engine/serving/sequences/sequence_paces.h"
#include "engine/serving/sequences/turns.h"
#include "engine/step/pace.h"
#include "engine/step/step_table.h"

namespace engine {

class Lane;
class LockstepGroup;

using FewSlots = SmallList<std::int32_t, 2>;

// What every event looks at, before what few do: with many replicas every line of memory has to be fetched anew.
struct ReplicaState {
  const ServingSettings* settings = nullptr;
  Plan* plan = nullptr;
  StepTable* table = nullptr;
  ServingStats* stats = nullptr;
  PoolSums* sums = nullptr;
  StepPlan* scratch_plan = nullptr;  // of all replicas: it is made and carried out in one turn
  std::int64_t lanes = 1;
  std::int64_t window = 0;                    // 0: no sliding window
  std::int64_t state = 0;                     // of a sequence, in tokens, as in PoolSetup
  const SequencePaces* own_paces = nullptr;   // as in PoolSetup
  const LateReading* late_reading = nullptr;  // likewise
  LockstepGroup* group = nullptr;             // as in Replica::Setup
  StepLog* log = nullptr;                     // where work is written down; null: nowhere
  Turns turns;                                // as in PoolSetup
  std::int32_t number = 0;
  bool uneven = false;             // step times depend on the longest context
  bool carries = false;            // KV comes from another pool, or goes to one
  bool hands_over = false;         // who departs keeps its blocks until its KV is carried away
  bool tells_first_token = false;  // of sequences that come from another pool, when they come
  bool audit = false;              // recount everything at every step
  bool halted = false;             // it has failed: no lane plans
  // Paces are not drawn, no draft reads late, no cache grows old, nobody steps or takes turns with it, and no step is written
  // down.
  bool plain = true;

  Sequences sequences;
  std::int32_t slots = 0;              // of `sequences`, in use or
  SmallList<std::int32_t, 16> unused;  // to be used again
  WaitingQueue waiting;
  FewSlots landed;               // their KV has come: they decode from the next step on
  FewSlots departed;             // slots of those that are done here with the last event
  FewSlots forking;              // their prompts were read with the last event, for several answers
  WaitingQueue arriving;         // prompts were read elsewhere: they wait for blocks
  std::int64_t running = 0;      // over all lanes
  std::int64_t outstanding = 0;  // requests inside
  std::int64_t outstanding_tokens = 0;
  std::int64_t rest = 0;  // tokens of room that one may take beyond its own
  double tokens_made = 0;
  double idle_seconds = 0;  // of all lanes
  // Sequences whose KV is carried from here or to here: those that hold blocks and do not run, and their
  // blocks, shared ones not counted.
  std::int64_t parked = 0;
  std::int64_t parked_blocks = 0;
  std::int64_t awaiting = 0;  // not in the queue before their adapters or images are there
  KvPool pool;                // of which every event looks at the first line; from here on few do
  FairShare shares;
  AdmissionPace admissions;
  AdmissionPace rooms;       // of those that wait for blocks before their prompts are read
  double stage_free = 0;     // when the first pipeline stage takes the next batch
  std::int64_t longest = 1;  // tokens of the longest sequence
  Pace pace;
  const Lane* first_lane = nullptr;  // of `lanes` that stand side by side
  DraftPlace draft_place = DraftPlace::last_stage;
  DeploymentRole role = DeploymentRole::main;
  std::uint64_t seed = 0;
  std::span<const double> encode_seconds = {};  // as in PoolSetup

  // Whether the cache of a sequence that leaves is given up after that of others.
  bool pins(const Sequence& sequence) const {
    return settings->retention.policy == Retention::pinned && !sequence.closes;
  }
  // Of a sequence that comes from another pool, where that is told here.
  void tell_first_token(Sequence& sequence, double now) const {
    if (!tells_first_token) return;
    // Whoever goes on elsewhere after a failure has told it before.
    if (sequence.generated == 1) sequence.first_token = now;
    sequence.last_token = now;
  }
  bool more_to_come() const { return !landed.empty() || !arriving.empty(); }
  // Encodes the images of so many requests, of as many together as may be. Returns the seconds that takes.
  double encode(std::size_t requests) {
    sums->encoded += double(requests);
    sums->encoded_together.resize(encode_seconds.size());
    double seconds = 0;
    while (requests > 0) {
      const std::size_t together = std::min(requests, encode_seconds.size());
      seconds += encode_seconds[together - 1];
      sums->encoded_together[together - 1] += 1;
      requests -= together;
    }
    return seconds;
  }
};

}  // namespace engine
