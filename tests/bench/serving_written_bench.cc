// Speed of the serving simulation with one mechanism on, of loads as they are written in sweeps: requests per CPU second.
#include <map>
#include <string>

#include "tests/bench/served_points.h"

namespace {

using namespace bench;

// Read once, so that step times of one run serve the next.
void ServingAsWritten(benchmark::State& state, const char* base, Change change = nullptr) {
  const auto read_now = [base] {
    return sweep::read_sweep_text(std::string("base: {task: serve, ") + base + "}\naxes: []\n",
                                  paths::specs("benchmark.yaml"), sweep::Library({paths::specs()}));
  };
  static std::map<std::string, decltype(read_now())> known;
  if (!known.contains(base)) known.emplace(base, read_now());
  const auto& read = known.at(base);
  if (!read) return state.SkipWithError(to_text(read.mistakes()).c_str());
  run(state, read->space.base(), *read->resources, change);
}
// Images that encoders beside the replica turn into tokens of prompts.
BENCHMARK_CAPTURE(ServingAsWritten, images,
                  R"(device: h100-sxm, model: llama-3.1-8b, serving: vllm-v1,
  host: vllm-v1, load: {rate: 4 req/s, requests: 5000, images: 6, image_tokens: 576, image_patches: 2304,
  lengths: {distribution: lognormal, prompt: 200, output: 200}}, encode: {device: l40s, serving: {replicas: 4},
  model: {layers: 27, hidden: 1152, heads: 16, kv_heads: 16, head_dim: 72, intermediate: 4304, mlp: plain,
  vocabulary: 1, tied_embeddings: true, rotary: false, max_context: unlimited}})")
    ->Unit(benchmark::kMillisecond);
// The same, where other replicas read the prompts: three pools.
BENCHMARK_CAPTURE(ServingAsWritten, encode_prefill_decode,
                  R"(device: h100-sxm, model: llama-3.1-8b, serving: {from: vllm-v1, replicas: 2},
  host: vllm-v1, load: {rate: 4 req/s, requests: 5000, images: 6, image_tokens: 576, image_patches: 2304,
  lengths: {distribution: lognormal, prompt: 200, output: 200}}, prefill: {serving: {replicas: 2}},
  encode: {device: l40s, serving: {replicas: 4},
  model: {layers: 27, hidden: 1152, heads: 16, kv_heads: 16, head_dim: 72, intermediate: 4304, mlp: plain,
  vocabulary: 1, tied_embeddings: true, rotary: false, max_context: unlimited}})")
    ->Unit(benchmark::kMillisecond);
// A small model that proposes tokens.
BENCHMARK_CAPTURE(ServingAsWritten, draft_model,
                  R"(device: h100-sxm, model: llama-3.1-8b, serving: vllm-v1, host: vllm-v1,
  speculation: {method: draft_model, draft: llama-3.2-1b, tokens: 3, acceptance: [0.8, 0.7, 0.6]},
  load: {from: chat, throughput_fraction: 0.8, requests: 5000})")
    ->Unit(benchmark::kMillisecond);
// A second model on the same device. Both loads are others than at the points before, or only the neighbour's is, or how they
// share: what is known of either model alone serves the next point.
void change_a_little(double& value) {
  static double points = 0;
  value *= 1 + 1e-9 * ++points;
}
void ServingNeighbour(benchmark::State& state, Change change) {
  ServingAsWritten(state, R"(device: h200-sxm, model: llama-3.1-8b, host: vllm-v1,
  serving: vllm-v1, load: {from: chat, rate: 8 req/s, requests: 5000}, neighbour: {model: llama-3.2-3b},
  sharing: {share: 0.6, memory: 0.6})",
                   change);
}
BENCHMARK_CAPTURE(ServingNeighbour, both_loads, [](Scenario& scenario) {
  change_a_little(scenario.load.rate.value);
  change_a_little(scenario.neighbour.load.rate.value);
})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ServingNeighbour, its_load, [](Scenario& scenario) {
  change_a_little(scenario.neighbour.load.rate.value);
})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ServingNeighbour, sharing, [](Scenario& scenario) {
  change_a_little(scenario.sharing.switch_time.value);
})->Unit(benchmark::kMillisecond);
// Thirty-two replicas that share experts.
BENCHMARK_CAPTURE(ServingAsWritten, lockstep,
                  R"(device: h100-sxm, cluster: dgx-h100-32-nodes, model: deepseek-v3,
  quant: {weights: fp8, activations: fp8}, parallel: {dp: 32, ep: 32}, host: sglang, serving: {from: sglang,
  router: least_tokens}, load: {rate: 4 req/s, requests: 5000, lengths: {distribution: lognormal, prompt: 500,
  output: 200}})")
    ->Unit(benchmark::kMillisecond);
// The same in two pools, each of which shares experts.
BENCHMARK_CAPTURE(ServingAsWritten, lockstep_two_pools,
                  R"(device: h100-sxm, cluster: dgx-h100-32-nodes, model: deepseek-v3,
  quant: {weights: fp8, activations: fp8}, parallel: {dp: 32, ep: 32}, host: sglang, serving: {from: sglang,
  router: least_tokens}, prefill: {parallel: {dp: 32, ep: 32}}, load: {rate: 4 req/s, requests: 5000,
  lengths: {distribution: lognormal, prompt: 500, output: 200}})")
    ->Unit(benchmark::kMillisecond);
// A day of 512 H100s: 64 replicas of eight, Llama 3.1 70B, ten million requests. Once, whatever is asked for:
//   build/release/llmsweep_bench --benchmark_filter=ServingFleetDay
void ServingFleetDay(benchmark::State& state) {
  ServingAsWritten(state, R"(device: h100-sxm, model: llama-3.1-70b, parallel: {tp: 8},
  host: vllm-v1, serving: {from: vllm-v1, replicas: 64, router: least_outstanding}, load: {from: chat,
  arrivals: curve, requests: 10000000, curve: "0:60, 21600:100, 32400:170, 68400:120, 79200:80"})");
}
BENCHMARK(ServingFleetDay)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
