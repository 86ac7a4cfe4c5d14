// Laws of how tokens get to experts on other devices: by kernels made for few or many of them, or to all devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/comm/collective_time.h"
#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/random_load.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr ExpertTravel kTravels[] = {ExpertTravel::automatic, ExpertTravel::low_latency,
                                     ExpertTravel::normal, ExpertTravel::gathered};

Scenario shared_experts(ExpertTravel travel) {
  Scenario scenario = toys::scenario();
  scenario.model = toys::mixture();
  scenario.device.architecture = "Hopper";
  scenario.device.memory_capacity = Bytes{1e13};
  scenario.device.scale_up.bandwidth = BytesPerSecond{400e9};
  scenario.device.scale_out.bandwidth = BytesPerSecond{50e9};
  scenario.parallel.dp = scenario.parallel.ep = 8;
  scenario.serving.expert_exchange = travel;
  scenario.step = {.batch = 32, .context = 100};
  return scenario;
}

// Seconds of the exchange of one step.
double exchange_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  double seconds = 0;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op == OpName::expert_dispatch || row.op == OpName::expert_combine) {
      seconds += row.work.time.value;
    }
  }
  EXPECT_GT(seconds, 0);
  return seconds;
}

TEST(ExpertTravel, WhatIsGatheredIsAnAllGatherAndAReduceScatterOfAllTokens) {
  const Device device = toys::gpu();
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (const double tokens : {1.0, 40.0, 3000.0}) {
    ExpertExchange op{.tokens = tokens,
                      .hidden = 4096,
                      .top_k = 8,
                      .experts = 64,
                      .skew = 1,
                      .ranks = 4,
                      .value_bytes = 2,
                      .kernels = ExpertExchange::Kernels::gathered};
    const auto whole = [&](Pattern pattern) {
      return collective_time({.pattern = pattern, .bytes = tokens * 4 * 4096 * 2, .ranks = 4},
                             fabric, device, nullptr)
          .total();
    };
    EXPECT_EQ(exchange_time(op, fabric, device, nullptr).total(), whole(Pattern::all_gather));
    op.way = ExpertExchange::Way::combine;
    EXPECT_EQ(exchange_time(op, fabric, device, nullptr).total(), whole(Pattern::reduce_scatter));
    // Nobody waits for the device of popular experts.
    op.receiver = ExpertExchange::Receiver::excess;
    EXPECT_EQ(exchange_time(op, fabric, device, nullptr).total(), Seconds{0});
  }
}

// NVFP4 is gathered as it is multiplied, with a scale for 16 values; DeepSeek's blocks are made after it; per-token fp8 before.
TEST(ExpertTravel, WhatIsGatheredIsNarrowWhereItsScalesAreForATokenOrForFew) {
  const auto gathered = [](Dtype format, std::int64_t group) {
    Scenario scenario = shared_experts(ExpertTravel::gathered);
    scenario.quant.weights = scenario.quant.activations = format;
    scenario.quant.group = group;
    scenario.device.peak.fp8 = scenario.device.peak.fp4 = scenario.device.peak.bf16;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    const auto row = std::ranges::find(outcome.kernels, OpName::expert_dispatch, &KernelRow::op);
    return row == outcome.kernels.end() ? 0 : row->work.bytes.value;
  };
  const double wide = gathered(Dtype::bf16, 128);
  EXPECT_GT(wide, 0);
  EXPECT_NEAR(gathered(Dtype::fp4, 16) / wide, (0.5 + 1.0 / 16) / 2, 1e-12);
  EXPECT_NEAR(gathered(Dtype::fp4, 32) / wide, (0.5 + 1.0 / 32) / 2, 1e-12);
  EXPECT_NEAR(gathered(Dtype::fp8, 32) / wide, (1 + 1.0 / 32) / 2, 1e-12);
  EXPECT_EQ(gathered(Dtype::fp8, 128), wide);
  EXPECT_NEAR(gathered(Dtype::fp8, 1024) / wide, 0.5, 1e-12);
}

// TensorRT-LLM sends 16 bits through DeepEP's kernels where others send blocks of fp8. Other formats, and what comes back, are as before.
TEST(ExpertTravel, BlocksThatAreMadeWhereTheyArriveTravelInSixteenBits) {
  const auto sent = [](ExpertTravel travel, Dtype format, std::int64_t group, bool narrow,
                       OpName op) {
    Scenario scenario = shared_experts(travel);
    scenario.quant.weights = scenario.quant.activations = format;
    scenario.quant.group = group;
    scenario.serving.narrow_exchange = narrow;
    scenario.device.peak.fp8 = scenario.device.peak.fp4 = scenario.device.peak.bf16;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    const auto row = std::ranges::find(outcome.kernels, op, &KernelRow::op);
    return row == outcome.kernels.end() ? 0 : row->work.bytes.value;
  };
  for (const ExpertTravel travel : kTravels) {
    const auto dispatched = [&](Dtype format, std::int64_t group, bool narrow) {
      return sent(travel, format, group, narrow, OpName::expert_dispatch);
    };
    const double wide = dispatched(Dtype::bf16, 128, true);
    EXPECT_EQ(dispatched(Dtype::fp8, 128, false), wide);
    if (travel != ExpertTravel::gathered) {
      EXPECT_LT(dispatched(Dtype::fp8, 128, true), 0.6 * wide);
    }
    for (const std::int64_t group : {16, 1024}) {
      EXPECT_EQ(dispatched(Dtype::fp8, group, false), dispatched(Dtype::fp8, group, true)) << group;
    }
    EXPECT_EQ(dispatched(Dtype::fp4, 16, false), dispatched(Dtype::fp4, 16, true));
    EXPECT_EQ(sent(travel, Dtype::fp8, 128, false, OpName::expert_combine),
              sent(travel, Dtype::fp8, 128, true, OpName::expert_combine));
  }
}

TEST(ExpertTravel, WhatIsGatheredDoesNotDependOnWhoIsChosen) {
  const auto time = [](ExpertTravel travel, std::int64_t chosen, double skew) {
    Scenario scenario = shared_experts(travel);
    scenario.model.moe.top_k = chosen;
    scenario.model.moe.skew = skew;
    return exchange_of(scenario);
  };
  EXPECT_EQ(time(ExpertTravel::gathered, 1, 0), time(ExpertTravel::gathered, 4, 1));
  EXPECT_LT(time(ExpertTravel::low_latency, 1, 0), time(ExpertTravel::low_latency, 4, 0));
}

// A device is sent its own tokens' choices, or everybody's tokens: the wider the group, the more of the latter.
TEST(ExpertTravel, WideGroupsGatherMore) {
  const auto over = [](std::int64_t devices) {
    Scenario gathered = shared_experts(ExpertTravel::gathered);
    gathered.parallel.dp = gathered.parallel.ep = devices;
    gathered.step.batch = 512 * devices;
    Scenario sent = gathered;
    sent.serving.expert_exchange = ExpertTravel::normal;
    return exchange_of(gathered) / exchange_of(sent);
  };
  EXPECT_LT(over(2), over(8));
}

TEST(ExpertTravel, AutomaticIsTheFaster) {
  const auto time = [](ExpertTravel travel, bool prompts) {
    Scenario scenario = shared_experts(travel);
    if (prompts) scenario.step = {.phase = StepPhase::prefill, .batch = 8, .prompt = 700};
    return exchange_of(scenario);
  };
  for (const bool prompts : {false, true}) {
    EXPECT_LE(
        time(ExpertTravel::automatic, prompts),
        std::min(time(ExpertTravel::low_latency, prompts), time(ExpertTravel::normal, prompts)));
  }
}

// Kernels for many tokens forward them from node to node, which begins late and pays where there are many: of a prompt's thousands
// of tokens the start is a small part, of a decode's few it is most.
TEST(ExpertTravel, KernelsForManyTokensBeginLateBetweenNodes) {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  device.scale_up.bandwidth = BytesPerSecond{400e9};
  device.scale_out.bandwidth = BytesPerSecond{50e9};
  const Fabric fabric = fabric_of(Cluster{}, device);
  using Kernels = ExpertExchange::Kernels;
  for (const auto way : {ExpertExchange::Way::dispatch, ExpertExchange::Way::combine}) {
    const auto time = [&](double tokens, std::int64_t ranks, Kernels kernels) {
      ExpertExchange op{.tokens = tokens,
                        .hidden = 7168,
                        .top_k = 8,
                        .experts = 256,
                        .ranks = ranks,
                        .value_bytes = 2,
                        .kernels = kernels};
      op.way = way;
      return exchange_time(op, fabric, device, &toys::transfer());
    };
    for (const double tokens : {1.0, 4.0, 16.0, 32.0}) {
      const Seconds inside = time(tokens, 8, Kernels::normal).total();
      const Seconds between = time(tokens, 16, Kernels::normal).total();
      EXPECT_GT(between, 2 * inside) << tokens;
      EXPECT_LT(time(tokens, 16, Kernels::low_latency).total(), between) << tokens;
    }
    const Seconds many = time(8192, 16, Kernels::normal).total();
    EXPECT_LT(time(1, 16, Kernels::normal).total(), 0.1 * many);
    EXPECT_LT(many, time(8192, 16, Kernels::low_latency).total());
  }
}

TEST(ExpertTravel, WhoSharesNoExpertsBetweenReplicasHasNone) {
  for (const ExpertTravel travel : kTravels) {
    Scenario scenario = shared_experts(travel);
    scenario.parallel = {.tp = 4, .dp = 2, .ep = 4};
    const Outcome outcome = evaluate(scenario);
    scenario.serving.expert_exchange = ExpertTravel::automatic;
    EXPECT_EQ(outcome.kernels, evaluate(scenario).kernels);
  }
}

// Also where replicas that share experts step together, each with a batch of its own.
TEST(ExpertTravel, SteppingAndClosedFormAgree) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    toys::RandomCase made = toys::random_case(number);
    Scenario& scenario = made.scenario;
    scenario.model = toys::mixture();
    scenario.parallel = {.tp = 1, .dp = 4, .ep = 4};
    scenario.serving.expert_exchange = kTravels[number % 4];
    scenario.load.warmup = scenario.load.window = Seconds{0};
    const auto makespan = [&](bool stepping) {
      scenario.serving.stepping = stepping;
      const Outcome outcome = evaluate(scenario, made.resources);
      EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
      return outcome.metrics.makespan.value;
    };
    const double stepped = makespan(true);
    EXPECT_NEAR(makespan(false) / stepped, 1, 1e-9) << "case " << number;
  }
}

}  // namespace
}  // namespace engine
