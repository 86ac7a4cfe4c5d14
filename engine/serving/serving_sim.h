// The discrete-event simulation of a served load: requests arrive, a router spreads them over
// replicas, replicas run steps. Events in the order of (time, arrivals first, replica). It goes on until
// its figures are precise enough, or the load ends.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/replica.h"
#include "engine/serving/router.h"
#include "engine/serving/run_judge.h"
#include "engine/serving/serving_stats.h"
#include "engine/serving/slo.h"
#include "engine/serving/timeline.h"
#include "engine/step/step_table.h"
#include "engine/workload/request_source.h"

namespace engine {

// What a run is for: a verdict on the SLO is enough for a search, and comes sooner.
enum class RunPurpose : std::uint8_t { figures, verdict };

// What a run tells about its load and its own figures.
struct RunVerdict {
  Saturation saturation = Saturation::undecided;
  double throughput_error = kNever;  // half the width of its 95% interval, over its mean
  SloVerdict slo;

  bool precise() const { return throughput_error <= kPrecise && (slo.precise || slo.decided); }
};

// Everything referred to outlives the run.
struct ServingProblem {
  const ServingSettings& settings;
  const Load& load;
  const Trace* trace = nullptr;
  const Slo& slo;
  const StepContext& context;
  LoadLevel level;
  RunPlan plan;
  RunPurpose purpose = RunPurpose::figures;
  double capacity = 0;         // estimated, requests a second; 0: unknown
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
  const ServingStats& stats() const { return stats_; }
  StepTable& table() { return table_; }
  RequestMemory& memory() { return memory_; }
  const std::vector<Replica>& replicas() const { return replicas_; }
  double makespan() const { return makespan_; }
  double idle_seconds() const { return idle_seconds_; }
  const RunVerdict& verdict() const { return verdict_; }
  // Units (requests or sessions) of the length at which the run was long enough.
  std::int64_t units() const { return stats_.watch().units(); }

 private:
  void start(const ServingProblem& problem);
  void arrive(const ServingProblem& problem, RequestSource& source);
  // Whether the run goes on after this event.
  bool goes_on(const ServingProblem& problem, RequestSource& source);
  bool enough(const ServingProblem& problem) const;
  RunVerdict judge(const ServingProblem& problem);
  std::size_t next_replica() const;
  double next_event_but(std::size_t replica) const;
  void mark(double time);
  double next_mark() const;

  StepTable table_;
  ServingStats stats_;
  std::vector<Replica> replicas_;
  RequestMemory memory_;
  Request request_;
  RouteFunction route_ = nullptr;
  std::int64_t routed_ = 0;
  std::int64_t longest_output_ = 0;  // of those that arrived
  double makespan_ = 0;
  double idle_seconds_ = 0;
  RunVerdict verdict_;
  bool stopped_ = false;  // no more arrivals: the run ends with this length
  LatencySamples samples_;
  Timeline timeline_;
};

}  // namespace engine
