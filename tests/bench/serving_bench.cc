// Speed of the serving simulation, in requests per CPU second:
//   cmake --build build/release --target llmsweep_bench && build/release/llmsweep_bench --benchmark_filter=Serving
// Llama-2-7B on an A100 of 80 GB, chat-length requests at 80% of its estimated capacity, fitted kernel
// times, breakdown on: the base of specs/sweeps/ten_thousand_served.yaml.
#include <memory>

#include "engine/base/random.h"
#include "tests/bench/served_points.h"

namespace {

using namespace bench;

void Serving(benchmark::State& state, PolicyName policy, bool stepping) {
  Scenario scenario = llama_on_a100(policy);
  scenario.serving.stepping = stepping;
  run(state, scenario, *served().resources);
}
BENCHMARK_CAPTURE(Serving, vllm_v1, policy_named("vllm_v1"), false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, vllm_v1_stepping, policy_named("vllm_v1"), true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, sarathi, policy_named("sarathi"), false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, sarathi_stepping, policy_named("sarathi"), true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, vllm_v0, policy_named("vllm_v0"), false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, sglang, policy_named("sglang"), false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, orca, policy_named("orca"), false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, no_evict, policy_named("no_evict"), false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Serving, static_batch, policy_named("static"), false)
    ->Unit(benchmark::kMillisecond);

// With an added layer that proposes three tokens.
void ServingSpeculation(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.speculation = {
      .method = SpeculationMethod::mtp, .tokens = 3, .acceptance = "0.8 0.7 0.6"};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingSpeculation)->Unit(benchmark::kMillisecond);

// The same, but every sequence draws what holds of it in every step: no stretch is longer than a step.
void ServingDrawnSpeculation(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.speculation = {.method = SpeculationMethod::mtp,
                          .tokens = 3,
                          .acceptance = "0.8 0.7 0.6",
                          .draws = AcceptanceDraws::drawn};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingDrawnSpeculation)->Unit(benchmark::kMillisecond);

// As many proposals as are best for those that decode.
void ServingDynamicSpeculation(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.speculation = {
      .method = SpeculationMethod::mtp, .tokens = 3, .acceptance = "0.8 0.7 0.6", .dynamic = true};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingDynamicSpeculation)->Unit(benchmark::kMillisecond);

// Two replicas that read prompts and two that write answers.
void ServingTwoPools(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.replicas = 2;
  scenario.prefill.present = true;
  fill_roles(scenario);
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingTwoPools)->Unit(benchmark::kMillisecond);

// The same, where blocks are set aside before a prompt is read, and its KV is pushed there layer by layer.
void ServingPushed(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.replicas = 2;
  scenario.prefill.present = true;
  scenario.transfer.initiative = TransferInitiative::push;
  scenario.transfer.mode = TransferMode::layers;
  fill_roles(scenario);
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingPushed)->Unit(benchmark::kMillisecond);

// Prompts and decodes of one step are attended to at the same time.
void ServingOverlapped(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("sarathi"));
  scenario.serving.mixed_attention = MixedAttention::overlapped;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingOverlapped)->Unit(benchmark::kMillisecond);

// Tokens queue in front of clients.
void ServingFrontEnd(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.host.front_end_per_message = Seconds{50e-6};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingFrontEnd)->Unit(benchmark::kMillisecond);

// Up to eight replicas that follow the load.
void ServingScaled(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.replicas = 8;
  scenario.serving.scaling.policy = ScalingPolicy::reactive;
  scenario.load.throughput_fraction = 0.4;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingScaled)->Unit(benchmark::kMillisecond);

// Eight replicas, each of which fails every few minutes: requests begin again elsewhere.
void ServingFailing(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.replicas = 8;
  scenario.serving.failures.mean_time_to_failure = Seconds{300};
  scenario.serving.failures.mean_time_to_repair = Seconds{30};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingFailing)->Unit(benchmark::kMillisecond);

// Urgent requests preempt others, and late ones are turned away.
void ServingClasses(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.ordering = Ordering::priority;
  scenario.serving.preemption = Preemption::priority;
  scenario.serving.admission.shed_late = true;
  scenario.load.classes = {.high = {.share = 0.3, .ttft = Seconds{0.5}},
                           .low = {.share = 0.4, .ttft = Seconds{60}}};
  scenario.load.throughput_fraction = 1.2;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingClasses)->Unit(benchmark::kMillisecond);

// Eight tenants, each of whose requests belongs to one of three classes.
void ServingTenantClasses(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.ordering = Ordering::slo;
  scenario.load.tenants = 8;
  scenario.load.tenant_skew = 1;
  scenario.load.classes = {.high = {.share = 0.3, .ttft = Seconds{0.5}},
                           .low = {.share = 0.4, .ttft = Seconds{60}}};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingTenantClasses)->Unit(benchmark::kMillisecond);

// Sessions of four turns, two calls each but the first, whose cache outlives that of others.
void ServingSessions(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  scenario.serving.retention.policy = Retention::pinned;
  scenario.load.turns = 4;
  scenario.load.branches = 2;
  scenario.load.think_time = Seconds{5};
  scenario.load.throughput_fraction = 0.5;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingSessions)->Unit(benchmark::kMillisecond);

// Conversations of four turns, and room below the memory of the device, from which later turns load what was given up.
void ServingTiers(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  scenario.serving.tiers.host = Bytes{64e9};
  scenario.load.turns = 4;
  scenario.load.think_time = Seconds{5};
  scenario.load.throughput_fraction = 0.5;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingTiers)->Unit(benchmark::kMillisecond);

// The same on four replicas that share a store, which has everything that can be shared, or what their caches give up.
void ServingStore(benchmark::State& state, TierWrite write) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  scenario.serving.replicas = 4;
  scenario.serving.router = router_named("least_outstanding");
  scenario.serving.tiers.store = Bytes{256e9};
  scenario.serving.tiers.write = write;
  scenario.load.turns = 4;
  scenario.load.think_time = Seconds{5};
  scenario.load.throughput_fraction = 0.5;
  run(state, scenario, *served().resources);
}
BENCHMARK_CAPTURE(ServingStore, through, TierWrite::through)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ServingStore, eviction, TierWrite::eviction)->Unit(benchmark::kMillisecond);

// A hundred adapters, a quarter of which have a place on the device.
void ServingAdapters(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.adapters = 100;
  scenario.serving.lora.slots = 25;
  scenario.load.throughput_fraction = 0.6;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingAdapters)->Unit(benchmark::kMillisecond);

// Four answers to every prompt: what is counted are requests, each of which is four sequences.
void ServingSamples(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.samples = 4;
  scenario.serving.prefix_caching = true;
  scenario.load.throughput_fraction = 0.2;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingSamples)->Unit(benchmark::kMillisecond);

// Eight tenants of unequal weight, served in turn.
void ServingTenants(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.ordering = Ordering::fair_share;
  scenario.load.tenants = 8;
  scenario.load.tenant_skew = 1;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingTenants)->Unit(benchmark::kMillisecond);

// Every step at the lowest clock that keeps the promise.
void ServingClocks(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.clock.mode = ClockMode::slo;
  scenario.slo.tpot.p95 = Seconds{0.1};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingClocks)->Unit(benchmark::kMillisecond);

// Trees of proposals: two candidates for the first two positions.
void ServingTrees(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.speculation = {
      .method = SpeculationMethod::mtp, .tokens = 3, .acceptance = "0.8 0.7 0.6", .tree = "2 2 1"};
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingTrees)->Unit(benchmark::kMillisecond);

// The price of a request does not depend on how many there are.
void ServingByCount(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.requests = state.range(0);
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingByCount)
    ->Arg(1000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond);

void ServingFixedLengths(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.lengths.distribution = LengthKind::fixed;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingFixedLengths)->Unit(benchmark::kMillisecond);

// Two machines in turn: no step time of one point serves the next.
void ServingAnotherMachineEachTime(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.requests = state.range(0);
  Scenario other = scenario;
  other.device.memory_bandwidth = other.device.memory_bandwidth * 1.01;
  Outcome outcome;
  WorkMeter work;
  Scratch& scratch = kept_scratch();
  bool first = true;
  for (auto _ : state) {
    evaluate_into(first ? scenario : other, *served().resources, outcome, work, scratch);
    first = !first;
    benchmark::DoNotOptimize(outcome.metrics.ttft_p99);
  }
  state.counters["requests/s"] = benchmark::Counter(
      double(state.range(0)) * double(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(ServingAnotherMachineEachTime)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond);

// Few arrivals: most steps are one of a long stretch.
void ServingLightLoad(benchmark::State& state, bool stepping) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.throughput_fraction = 0.1;
  scenario.serving.stepping = stepping;
  run(state, scenario, *served().resources);
}
BENCHMARK_CAPTURE(ServingLightLoad, closed_form, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ServingLightLoad, stepping, true)->Unit(benchmark::kMillisecond);

// Pipeline stages share the blocks and take single steps, closed form or not.
void ServingPipeline(benchmark::State& state) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.parallel.pp = state.range(0);
  scenario.load.throughput_fraction = 0.2;
  run(state, scenario, *served().resources);
}
BENCHMARK(ServingPipeline)->Arg(1)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);

// The price of a request does not depend on how many replicas there are: 50 requests for each.
void ServingReplicas(benchmark::State& state, RouterName router) {
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.serving.router = router;
  scenario.serving.replicas = state.range(0);
  scenario.load.requests = 50 * state.range(0);
  if (router_of(router).reads_caches) {
    // Conversations of four turns behind one of ten system prompts.
    scenario.serving.prefix_caching = true;
    scenario.load.shared_prefix = 256;
    scenario.load.prefix_groups = 10;
    scenario.load.turns = 4;
  }
  run(state, scenario, *served().resources);
}
BENCHMARK_CAPTURE(ServingReplicas, round_robin, router_named("round_robin"))
    ->RangeMultiplier(10)
    ->Range(1, 10'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ServingReplicas, least_outstanding, router_named("least_outstanding"))
    ->RangeMultiplier(10)
    ->Range(1, 10'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ServingReplicas, prefix_aware, router_named("prefix_aware"))
    ->RangeMultiplier(10)
    ->Range(1, 10'000)
    ->Unit(benchmark::kMillisecond);

// Conversations in the shape of a recorded trace: prompts of a dozen hashed blocks, a third of which
// an earlier prompt began with.
void ServingPrefixTrace(benchmark::State& state) {
  auto trace = std::make_shared<Trace>();
  trace->block_tokens = 128;
  trace->first_block.push_back(0);
  double time = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    time += 0.1 * exponential(1, Stream::arrivals, i);
    const auto prompt = std::int32_t(200 + 2000 * uniform(1, Stream::prompt_lengths, i));
    trace->arrival.push_back(time);
    trace->prompt.push_back(prompt);
    trace->output.push_back(std::int32_t(20 + 300 * uniform(1, Stream::output_lengths, i)));
    const std::uint64_t session = std::uint64_t(500 * uniform(1, Stream::sessions, i));
    for (std::int64_t end = 128, block = 0; end < prompt + 128; end += 128, ++block) {
      const bool shared = end <= prompt / 3;
      trace->blocks.push_back(mixed_seed(shared ? session : 1000 + i, std::uint64_t(block)));
    }
    trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
  }
  Resources resources = *served().resources;
  resources.traces["trace"] = trace;
  Scenario scenario = llama_on_a100(policy_named("vllm_v1"));
  scenario.load.arrivals = ArrivalKind::trace;
  scenario.load.throughput_fraction = 0;
  scenario.load.trace = "trace";
  scenario.load.requests = 0;
  scenario.serving.prefix_caching = true;
  run(state, scenario, resources);
}
BENCHMARK(ServingPrefixTrace)->Unit(benchmark::kMillisecond);

}  // namespace
