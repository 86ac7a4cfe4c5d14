// When a run is long enough: it goes on until its figures are precise, or its load ends.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

#include "engine/serving/figures/run_judge.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/settings/slo.h"
#include "engine/workload/request_source.h"

namespace engine {

// What a run is for. A search only needs a verdict on the SLO, which comes sooner. Of a neighbour, and of a model alone that it is
// compared with, rows have times to first tokens and per token only, so gaps between tokens and whole times are not kept.
enum class RunPurpose : std::uint8_t { figures, verdict, few_figures };

// What a run tells about its load and its own figures.
struct RunVerdict {
  Saturation saturation = Saturation::undecided;
  double throughput_error = kNever;  // half the width of its 95% interval, over its mean
  SloVerdict slo;
  bool settled = false;        // the measured part is of a system that had filled up
  bool fleet_seen = true;      // for long enough to tell its size, where a fleet follows the load
  bool failures_known = true;  // none are stated, or there were many of them
  double cache_drift = 0;      // CacheReads::drift of the measured part

  bool keeps_up() const {
    return saturation == Saturation::stable || saturation == Saturation::backlogged;
  }
  bool caches_level() const { return std::abs(cache_drift) <= kGrowing; }
  // Less and less has to be read: what looks like an overload may pass.
  bool caches_fill() const { return cache_drift < -kGrowing; }
  bool precise() const {
    return throughput_error <= kPrecise && (slo.precise || slo.known) && fleet_seen &&
           failures_known;
  }
  bool steady() const { return settled && keeps_up() && caches_level() && failures_known; }
};

// What a part tells about a fleet.
struct FleetSeen {
  bool size_known = true;      // how many replicas are on, where they follow the load
  bool failures_known = true;  // none are stated, or there were many of them
};

class Referee {
 public:
  struct Setup {
    const Slo* slo = nullptr;
    RunPurpose purpose = RunPurpose::figures;
    double capacity = 0;  // estimated, requests a second; 0: unknown
    std::function<FleetSeen(const MeasuredPart& part)> fleet;  // none: nothing comes, goes or fails
  };
  void start(const Setup& setup);
  // Whether the run goes on after this event. Arrivals stop where the system is overloaded.
  bool goes_on(ServingStats& stats, RequestSource& source) {
    return stats.watch().state() == RunWatch::State::running || decide(stats, source);
  }
  // The load has ended by itself.
  void end(ServingStats& stats);
  const RunVerdict& verdict() const { return verdict_; }

 private:
  bool decide(ServingStats& stats, RequestSource& source);
  bool is_hopeless(const RunVerdict& verdict) const;
  bool enough(const ServingStats& stats) const;
  RunVerdict judge(ServingStats& stats);

  Setup setup_;
  RunVerdict verdict_;
  bool stopped_ = false;  // no more arrivals: the run ends with this length
  LatencySamples samples_;
};

}  // namespace engine
