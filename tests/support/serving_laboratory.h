// Runs a random served case below the front door.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "engine/serving/serving_sim.h"
#include "tests/support/random_load.h"

namespace toys {

using namespace engine;  // NOLINT: a header of tests

// With every sum recounted at every step.
struct Laboratory {
  toys::RandomCase made;
  Fabric fabric;
  ModelShard shard;
  StepContext context;
  ServingSim sim;
  std::vector<RequestRow> rows;
  Encoders::Setup encoders;  // that requests pass before all else
  RunPurpose purpose = RunPurpose::figures;
  const std::function<void(const ServingSim&)>* before_event = nullptr;

  explicit Laboratory(toys::RandomCase random)
      : made(std::move(random)),
        fabric(fabric_of(made.scenario.cluster, made.scenario.device)),
        shard(shard_of(made.scenario.model, made.scenario.parallel, made.scenario.quant)),
        context{made.scenario.device, fabric, shard, made.scenario.host} {}

  // The pool that the case describes.
  PoolSetup pool() const {
    return {.settings = made.scenario.serving,
            .context = context,
            .kv_blocks = made.scenario.serving.kv_blocks,
            .replicas = made.scenario.serving.replicas,
            .longest = made.scenario.model.max_context};
  }
  ServingStats::Summary run() {
    const PoolSetup only = pool();
    return run({&only, 1}, {});
  }
  ServingStats::Summary run(std::span<const PoolSetup> pools, const Journey& journey) {
    const Scenario& scenario = made.scenario;
    const LoadLevel level{.rate = scenario.load.rate.value, .clients = scenario.load.clients};
    rows.clear();
    sim.run({.pools = pools,
             .journey = journey,
             .encoders = encoders,
             .load = scenario.load,
             .trace = made.resources.find_trace("toy"),
             .slo = scenario.slo,
             .level = level,
             .plan = run_plan(scenario.load, level, made.resources.find_trace("toy")),
             .purpose = purpose,
             .seed = std::uint64_t(scenario.seed),
             .audit = true,
             .before_event = before_event,
             .output = scenario.output,
             .request_rows = &rows});
    return sim.stats().summary();
  }

  // Prompt and output of a request by itself, drawn or read once more.
  LengthPair lengths_of(std::int64_t number) const {
    const Trace& trace = *made.resources.find_trace("toy");
    const std::size_t row = std::size_t(number);
    if (made.scenario.load.arrivals == ArrivalKind::trace)
      return {trace.prompt[row], trace.output[row]};
    const std::uint64_t seed = std::uint64_t(made.scenario.seed);
    const Load& load = made.scenario.load;
    const LengthSampler sampler(load.lengths, seed, &trace);
    if (load.arrivals != ArrivalKind::closed) return sampler(number);
    // Drawn by client, and by how often it asked before.
    const std::int64_t clients = std::min(load.clients, load.requests);
    return sampler(number % clients + (number / clients << 32));
  }
  // Tokens of all requests, prompts with the history of their session in them.
  double offered_tokens() const {
    std::map<std::int64_t, std::int64_t> history;  // by session
    std::vector<RequestRow> in_order = rows;
    std::stable_sort(in_order.begin(), in_order.end(),
                     [](const auto& a, const auto& b) { return a.number < b.number; });
    double tokens = 0;
    for (const RequestRow& row : in_order) {
      const LengthPair own = lengths_of(row.number);
      std::int64_t before = 0;
      if (made.scenario.load.turns > 1) before = history[row.session];
      history[row.session] = before + own.prompt + own.output;
      tokens += double(before + own.prompt + own.output);
    }
    return tokens;
  }
};

}  // namespace toys
