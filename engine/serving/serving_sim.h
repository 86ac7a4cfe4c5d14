// The discrete-event simulation of a served load: requests arrive, a router spreads them over
// replicas, replicas run steps. Events in the order of (time, arrivals first, replica).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/replica.h"
#include "engine/serving/router.h"
#include "engine/serving/serving_stats.h"
#include "engine/serving/slo.h"
#include "engine/serving/timeline.h"
#include "engine/step/step_table.h"
#include "engine/workload/request_source.h"

namespace engine {

// Everything referred to outlives the run.
struct ServingProblem {
  const ServingSettings& settings;
  const Load& load;
  const Trace* trace = nullptr;
  const Slo& slo;
  const StepContext& context;
  LoadLevel level;
  std::int64_t kv_blocks = 1;  // of a replica
  std::int64_t replicas = 1;
  std::int64_t longest = 1;  // tokens of the longest sequence
  std::uint64_t seed = 0;
  StepScale scale = kAsPredicted;
  bool audit = false;  // recount every sum at every step
  OutputSettings output;
  std::vector<RequestRow>* request_rows = nullptr;
  std::vector<TimelineRow>* timeline_rows = nullptr;
};

// Kept from one run to the next, its memory is used again; results do not depend on what ran before.
class ServingSim {
 public:
  void run(const ServingProblem& problem);

  ServingStats& stats() { return stats_; }
  StepTable& table() { return table_; }
  RequestMemory& memory() { return memory_; }
  const std::vector<Replica>& replicas() const { return replicas_; }
  double makespan() const { return makespan_; }
  double idle_seconds() const { return idle_seconds_; }

 private:
  std::size_t next_replica() const;
  double next_event_but(std::size_t replica) const;
  void mark(double time);
  double next_mark() const;

  StepTable table_;
  ServingStats stats_;
  std::vector<Replica> replicas_;
  RequestMemory memory_;
  Request request_;
  double makespan_ = 0;
  double idle_seconds_ = 0;

  // Moments at which stretches are split: the edges of the measured window, and timeline rows.
  double window_begin_ = 0, window_end_ = 0;
  Timeline timeline_;
};

}  // namespace engine
