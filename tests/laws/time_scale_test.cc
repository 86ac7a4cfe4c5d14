// Nature has no second: where everything that a scenario states is twice as fast and comes twice as often, every time that it takes is
// half as long, every rate twice as high, and nothing else changes. A time that is written down in a formula instead of a field breaks it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tests/support/paths.h"

namespace {

using engine::Leaf;
using engine::Metrics;
using engine::Outcome;
using engine::Scenario;

// By the datasheet: what was measured has seconds of its own. A power of two is exact.
constexpr double kFaster = 4;
constexpr std::string_view kServed = R"(
base:
  task: serve
  calibration.tier: roofline
  device: h100-sxm
  model: llama-3.1-8b
  serving: {from: vllm-v1, kv_blocks: 1500}
  slo: {ttft_p99: 500 ms, tpot_p99: 20 ms}
  load: {rate: 12 req/s, requests: 300, lengths: {distribution: lognormal, prompt: 500, output: 120, prompt_cv: 0.8, output_cv: 0.8}}
axes:
  - concat:
      - {name: plain}
      - {name: until it is known, base: {load: {requests: auto, rate: 4 req/s}}}
      - {name: sglang, base: {serving: {from: sglang, kv_blocks: 24000}}}
      - {name: tensorrt, base: {serving: {from: tensorrt-llm, kv_blocks: 800}}}
      - {name: closed, base: {load: {arrivals: closed, clients: 20, think_time: 300 ms, ramp: 1 s}}}
      - {name: pools, base: {serving.replicas: 2, prefill: {}, transfer: {mode: layers}}}
      - {name: pushed, base: {prefill: {}, transfer: {initiative: push}}}
      - {name: sessions, base: {serving.tiers: {host: 20 GB, disk: 50 GB}, load: {rate: 2 req/s, turns: 4, think_time: 2 s, shared_prefix: 200}}}
      - {name: store, base: {serving: {replicas: 2, tiers: {store: 50 GB, peer: 2 GB, write: eviction}}, load: {rate: 3 req/s, turns: 4, think_time: 2 s}}}
      - {name: kept for a time, base: {serving.retention: {policy: ttl, ttl: 3 s}, load: {rate: 2 req/s, turns: 4, think_time: 2 s}}}
      - {name: classes, base: {serving: {max_num_seqs: 8, ordering: slo, preemption: as_policy, admission: {shed_late: true, max_queue: 50}}, load: {tenants: 2, classes: {high: {share: 0.3, ttft: 300 ms}, low: {share: 0.3, ttft: 4 s}}}}}
      - {name: scaled, base: {serving: {replicas: 4, scaling: {policy: predictive, min_replicas: 1, target: 6, interval: 2 s, cold_start: 4 s, cooldown: 8 s}}}}
      - {name: seldom, base: {serving: {replicas: 2, scaling: {policy: reactive, min_replicas: 0, target: 6, interval: 1 s, cold_start: 2 s, cooldown: 4 s}}, load: {rate: 0.1 req/s, requests: 60}}}
      - {name: failing, base: {serving: {replicas: 3, failures: {mean_time_to_failure: 10 s, mean_time_to_repair: 3 s}}}}
      - {name: drafts, base: {speculation: {method: draft_model, draft: llama-3.2-1b, tokens: 3, acceptance: [0.8, 0.6], dynamic: true}}}
      - {name: adapters, base: {serving.lora: {slots: 4}, load: {adapters: 9, adapter_skew: 1}}}
      - {name: answers, base: {load: {samples: 3, rate: 4 req/s}}}
      - {name: neighbour, base: {neighbour: {model: llama-3.2-3b, load: {rate: 4 req/s}}, sharing: {mode: time_slices}, load: {rate: 4 req/s}}}
      - {name: clocked, base: {serving: {clock: {mode: slo}}, load: {rate: 4 req/s}}}
      - {name: experts, base: {model: qwen3-30b-a3b, parallel: {dp: 4, ep: 4}, load: {rate: 8 req/s}}}
      - {name: pipeline, base: {model: llama-3.1-70b, parallel: {tp: 4, pp: 2}, serving.kv_blocks: auto, load: {rate: 3 req/s}}}
      - {name: step, base: {task: step, parallel: {tp: 8}, step: {batch: 40, context: 900}}}
      - {name: prompt, base: {task: step, parallel: {tp: 16}, step: {phase: prefill, prompt: 4000}, host.mode: eager}}
      - {name: request, base: {task: request, request: {batch: 2, prompt: 3000, output: 20}, prefill: {parallel: {cp: 2}}}}
      - {name: train, base: {task: train, parallel: {tp: 2, pp: 4, dp: 4}, train: {sequence: 2048, global_batch: 64, zero: 1, device_mtbf: 1e8 s, tokens: 1e12, jitter: 0.02}}}
      - {name: sharded, base: {task: train, parallel: {dp: 16}, train: {sequence: 2048, global_batch: 32, zero: 3, recompute: full}}}
)";

// Exponents of time, by the symbol of a unit.
int time_exponent(std::string_view symbol) {
  if (symbol == "s") return 1;
  for (const std::string_view rate : {"Hz", "B/s", "FLOP/s", "W", "USD/h", "req/s", "tok/s"}) {
    if (symbol == rate) return -1;
  }
  return 0;
}

Scenario faster(Scenario scenario) {
  for (const Leaf& leaf : engine::leaf_table().leaves) {
    if (leaf.kind != engine::LeafKind::quantity) continue;
    const int exponent = time_exponent(leaf.unit.symbol);
    if (exponent == 0) continue;
    const double value = std::get<double>(get_leaf(scenario, leaf));
    set_leaf(scenario, leaf, value * std::pow(kFaster, -exponent));
  }
  return scenario;
}

// What a figure is in the faster world, where it was 1: by its type, or by its name where it is a plain number.
template <class Figure>
double expected_factor(std::string_view name) {
  if constexpr (engine::IsQuantity<Figure>) {
    return std::pow(kFaster, -time_exponent(engine::UnitOf<Figure>::unit.symbol));
  } else {
    if (name == "device_hours") return 1 / kFaster;
    const bool rate = name.ends_with("_per_s") || name.find("_per_s_") != std::string_view::npos;
    return rate ? kFaster : 1;
  }
}

template <class Figure>
double number_of(const Figure& figure) {
  if constexpr (engine::IsQuantity<Figure>) {
    return figure.value;
  } else {
    return double(figure);
  }
}

TEST(TimeScale, AFasterWorldIsTheSameWorld) {
  const sweep::Library library({paths::specs("")});
  const auto spec = sweep::read_sweep_text(kServed, paths::specs("scales.yaml"), library);
  ASSERT_TRUE(spec) << engine::to_text(spec.mistakes());
  sweep::PointBuilder builder(spec->space);
  sweep::Point point;
  for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
    builder.build(i, point);
    const std::string& name = spec->space.label_columns()[0].values[std::size_t(point.labels[0])];
    const Outcome slow = engine::evaluate(point.scenario, *spec->resources);
    const Outcome fast = engine::evaluate(faster(point.scenario), *spec->resources);
    ASSERT_EQ(slow.status, engine::Status::ok) << name << ": " << slow.reason;
    ASSERT_EQ(fast.status, engine::Status::ok) << name << ": " << fast.reason;
    std::vector<double> before;
    const auto keep = [&](std::string_view, const auto& figure, auto&&...) {
      before.push_back(number_of(figure));
    };
    Metrics::groups(slow.metrics, [&](auto, auto&& visit) { visit(keep); });
    std::size_t next = 0;
    const auto compare = [&](std::string_view figure_name, const auto& figure, auto&&...) {
      using Figure = std::decay_t<decltype(figure)>;
      const double was = before[next++],
                   is = number_of(figure) / expected_factor<Figure>(figure_name);
      if (std::isnan(was) && std::isnan(is)) return;
      EXPECT_NEAR(is, was, 1e-6 * std::abs(was)) << name << ": " << figure_name;
    };
    Metrics::groups(fast.metrics, [&](auto, auto&& visit) { visit(compare); });
  }
}

// A search tries rates on a grid of its own, and ends within its tolerance.
TEST(TimeScale, AFasterWorldHasItsCapacity) {
  const sweep::Library library({paths::specs("")});
  for (const char* engine : {"vllm-v1", "sglang", "tensorrt-llm"}) {
    const std::string text =
        "base: {task: serve, calibration.tier: roofline, device: h100-sxm, model: llama-3.1-8b, "
        "serving: " +
        std::string(engine) +
        ", load: {from: chat, requests: 1000}, capacity: {slo: {ttft_mean: 300 ms, tpot_p99: 30 "
        "ms}, "
        "tolerance: 0.02}}\n";
    const auto spec = sweep::read_sweep_text(text, paths::specs("scales.yaml"), library);
    ASSERT_TRUE(spec) << engine::to_text(spec.mistakes());
    sweep::PointBuilder builder(spec->space);
    sweep::Point point;
    builder.build(0, point);
    const Outcome slow = engine::evaluate(point.scenario, *spec->resources);
    const Outcome fast = engine::evaluate(faster(point.scenario), *spec->resources);
    ASSERT_EQ(slow.status, engine::Status::ok) << slow.reason;
    EXPECT_NEAR(fast.metrics.capacity / slow.metrics.capacity / kFaster, 1, 0.04) << engine;
  }
}

}  // namespace
