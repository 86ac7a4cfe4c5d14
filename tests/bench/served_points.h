// Served loads that benchmarks run again and again, as a sweep does.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "engine/evaluate.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "tests/support/paths.h"

namespace bench {

using namespace engine;  // NOLINT: a header of tests

inline const sweep::SweepSpec& served() {
  static const sweep::SweepSpec spec = [] {
    auto read = sweep::read_sweep(paths::specs("sweeps/ten_thousand_served.yaml"),
                                  sweep::Library({paths::specs()}));
    if (!read) {
      std::fputs(to_text(read.mistakes()).c_str(), stderr);
      std::abort();
    }
    return std::move(read).value();
  }();
  return spec;
}

inline Scenario llama_on_a100(PolicyName policy) {
  Scenario scenario = served().space.base();
  scenario.serving.policy = policy;
  scenario.load.requests = 5000;
  scenario.load.throughput_fraction = 0.8;
  return scenario;
}

// Kept from one benchmark to the next, as a thread of a sweep keeps it from point to point.
inline Scratch& kept_scratch() {
  static Scratch scratch;
  return scratch;
}

// Makes the next point another one than those before.
using Change = void (*)(Scenario& scenario);

inline void run(benchmark::State& state, Scenario scenario, const Resources& resources,
                Change change = nullptr) {
  Outcome outcome;
  WorkMeter work;
  Scratch& scratch = kept_scratch();
  for (auto _ : state) {
    if (change != nullptr) change(scenario);
    evaluate_into(scenario, resources, outcome, work, scratch);
    benchmark::DoNotOptimize(outcome.metrics.ttft_p99);
  }
  if (outcome.status != Status::ok) state.SkipWithError(outcome.reason.c_str());
  const double requests = outcome.metrics.requests_finished;
  state.counters["requests/s"] =
      benchmark::Counter(requests * double(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["batch"] = outcome.metrics.batch_mean;
  state.counters["steps/request"] = outcome.metrics.steps / requests;
}

}  // namespace bench
