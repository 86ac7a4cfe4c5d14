// Laws of experts that many devices share: their kernels, their places and the exchange between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "engine/comm/collective_time.h"
#include "engine/evaluate.h"
#include "engine/kernels/moe.h"
#include "engine/model/expert_places.h"
#include "engine/step/step_table.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// A toy of a generation the shipped parameters speak for.
Device generation(const char* architecture) {
  Device device = toys::gpu();
  device.architecture = architecture;
  device.shared_memory = Bytes{228.0 * 1024};
  device.scale_up.bandwidth = BytesPerSecond{400e9};
  device.scale_out.bandwidth = BytesPerSecond{50e9};
  return device;
}

Scenario shared_experts(std::int64_t devices) {
  Scenario scenario = toys::scenario();
  scenario.model = toys::mixture();
  scenario.model.moe.skew = 0;
  scenario.device.memory_capacity = Bytes{1e13};
  scenario.parallel.dp = scenario.parallel.ep = devices;
  return scenario;
}

// Rows of the exchanged experts of one device, which gets as many copies however many devices share them.
Moe exchanged(double tokens_of_a_device, std::int64_t devices, std::int64_t experts,
              std::int64_t top_k) {
  return {.tokens = tokens_of_a_device * double(devices),
          .hidden = 4096,
          .intermediate = 1536,
          .top_k = top_k,
          .experts = experts,
          .local_experts = experts / devices,
          .exchanged = true};
}

// Favourites are chosen by many tokens: fewer experts' weights are read than where all are chosen alike.
TEST(ExpertLaws, SkewedRoutersTouchNoMoreExpertsThanEvenOnes) {
  const Device device = generation("Hopper");
  for (const std::int64_t experts : {8, 64, 256}) {
    for (double tokens = 1; tokens <= 4096; tokens *= 2) {
      Moe op{.tokens = tokens,
             .hidden = 4096,
             .intermediate = 1536,
             .top_k = 2,
             .experts = experts,
             .local_experts = experts};
      const auto bytes = [&](double skew) {
        op.skew = skew;
        return moe_time(op, device, &toys::transfer()).bytes.value;
      };
      const double even = bytes(0);
      for (const double skew : {0.3, 0.6, 1.0, 1.2}) {
        EXPECT_LE(bytes(skew), even * (1 + 1e-12)) << experts << ' ' << tokens << ' ' << skew;
      }
    }
  }
}

// Also where each expert's rows fill a tile exactly: where everybody measures, and served steps are sampled.
// Tokens that choose at random leave some device with more than its share; the others wait for it.
TEST(ExpertLaws, TheFullestDeviceHasWhatChanceLeavesIt) {
  std::mt19937 random(7);
  for (const std::int64_t devices : {4, 16, 64}) {
    for (const std::int64_t tokens : {2, 8, 32, 256}) {
      constexpr std::int64_t kExperts = 256, kChosen = 8;
      std::vector<std::int64_t> all(kExperts);
      std::iota(all.begin(), all.end(), 0);
      double fullest = 0;
      constexpr int kDraws = 200;
      for (int draw = 0; draw < kDraws; ++draw) {
        std::vector<double> copies(std::size_t(devices), 0);
        for (std::int64_t token = 0; token < tokens; ++token) {
          std::vector<std::int64_t> chosen;
          std::ranges::sample(all, std::back_inserter(chosen), kChosen, random);
          for (const std::int64_t expert : chosen) ++copies[std::size_t(expert % devices)];
        }
        fullest += std::ranges::max(copies) / kDraws;
      }
      const Moe op{.tokens = double(tokens),
                   .top_k = kChosen,
                   .experts = kExperts,
                   .local_experts = kExperts / devices};
      const double mean = copies_on_a_device(op);
      EXPECT_NEAR(mean * fullest_device(op, 0) / fullest, 1, 0.12) << devices << " " << tokens;
    }
  }
}

TEST(ExpertLaws, OneTokenMoreIsNoCliff) {
  for (const char* architecture : {"Ampere", "Hopper", "Blackwell"}) {
    const Device device = generation(architecture);
    for (const std::int64_t experts : {32, 128}) {
      Moe op{.hidden = 2880,
             .intermediate = 2880,
             .top_k = 4,
             .experts = experts,
             .local_experts = experts};
      const auto time = [&](double tokens) {
        op.tokens = tokens;
        return moe_time(op, device, &toys::transfer()).total().value;
      };
      for (double tokens = 128; tokens <= 8192; tokens *= 2) {
        // A tile more for every expert is a whole wave at the worst: 1 token of 128 may bring a 64th of it.
        EXPECT_LE(time(tokens), time(tokens - 1) * (1 + 4 / tokens)) << architecture << tokens;
      }
    }
  }
}

// But for chance: the fullest of more devices is fuller.
TEST(ExpertLaws, AtConstantWorkADeviceWiderIsNeverSlower) {
  for (const char* architecture : {"Ampere", "Hopper", "Blackwell", ""}) {
    const Device device = generation(architecture);
    for (const Calibration* calibration :
         {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
      for (const Dtype format : {Dtype::bf16, Dtype::fp8}) {
        for (double tokens = 1; tokens <= 16384; tokens = std::ceil(tokens * 1.7)) {
          double before = 1e9;
          for (std::int64_t devices = 2; devices <= 256; devices *= 2) {
            Moe op = exchanged(tokens, devices, 256, 8);
            op.weights = op.activations = format;
            const double time = moe_time(op, device, calibration).total().value;
            const double least = time / fullest_device(op, 0);
            EXPECT_LE(least, before * (1 + 1e-3))
                << architecture << " " << tokens << " tokens, " << devices << " devices";
            before = least;
          }
        }
      }
    }
  }
}

TEST(ExpertLaws, AfterTheExchangeADeviceHasOnlyWhatWasSentToIt) {
  // The time of a device's experts follows from the copies it gets, not from tokens elsewhere.
  const Device device = generation("Hopper");
  Moe near = exchanged(100, 8, 64, 4);
  near.balanced = true;
  Moe far = near;  // twice the devices and experts: as many copies and experts here
  far.tokens *= 2;
  far.experts *= 2;
  for (const Calibration* calibration :
       {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
    EXPECT_NEAR(
        moe_time(far, device, calibration).total() / moe_time(near, device, calibration).total(), 1,
        1e-12);
  }
}

TEST(ExpertLaws, AttentionInParallelSendsEveryTokenOnce) {
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    Parallelism parallel{.tp = tp, .dp = 16 / tp, .ep = 16};
    const ModelSpec model = toys::mixture();
    BatchShape batch;
    add_decode(batch, 64, 1024, 0);
    OpList ops;
    token_ops(shard_of(model, parallel, {}), batch, ops);
    double sent = 0;
    for (const PlannedOp& planned : ops) {
      const auto* op = std::get_if<ExpertExchange>(&planned.op);
      if (op != nullptr && op->way == ExpertExchange::Way::dispatch) sent += op->tokens;
    }
    EXPECT_EQ(sent * double(tp), 64) << tp;
  }
}

TEST(ExpertLaws, AnyNumberOfDevicesSharesTheExperts) {
  // Sixteen experts; second copies fill up what is left over.
  for (std::int64_t devices = 1; devices <= 40; ++devices) {
    Scenario scenario = shared_experts(devices);
    scenario.parallel.expert_copies = ExpertCopies::fewest;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << devices << " " << outcome.reason;
    EXPECT_TRUE(std::isfinite(outcome.metrics.step_time.value)) << devices;
    const ExpertPlaces places = expert_places(scenario.model, scenario.parallel);
    EXPECT_EQ(places.local * devices, places.placed) << devices;
    EXPECT_EQ(places.placed - places.redundant, 16) << devices;
    EXPECT_LT(places.redundant, devices);
  }
}

TEST(ExpertLaws, SecondCopiesTakeMemory) {
  Scenario scenario = shared_experts(8);
  const Outcome plain = evaluate(scenario);
  scenario.parallel.redundant_experts = 16;
  const Outcome doubled = evaluate(scenario);
  const double expert = 3.0 * 4096 * 4096 * 2;
  EXPECT_NEAR((doubled.metrics.weights - plain.metrics.weights).value, 10 * 2 * expert, 1);
}

TEST(ExpertLaws, SecondCopiesNeverMakeTheBusiestBusier) {
  for (double largest = 1.1; largest < 1e6; largest *= 3) {
    double before = 1e9;
    for (double share = 0; share <= 3; share += 0.05) {
      const double busiest = busiest_copy(largest, share);
      EXPECT_GE(busiest, 1 / (1 + share));
      EXPECT_LE(busiest, before * (1 + 1e-12)) << largest << " " << share;
      before = busiest;
    }
  }
}

// Gives second copies away one by one, each to whoever's copies are the busiest.
double busiest_by_hand(double largest, int experts, int second_copies) {
  std::vector<double> loads, copies(std::size_t(experts), 1.0);
  double sum = 0;
  for (int i = 0; i < experts; ++i) {
    loads.push_back(std::pow(largest, (i + 0.5) / experts));
    sum += loads.back();
  }
  double busiest = 0;
  for (int given = 0; given <= second_copies; ++given) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (loads[i] / copies[i] > loads[at] / copies[at]) at = i;
    }
    busiest = loads[at] / copies[at];
    copies[at] += 1;
  }
  return busiest / (sum / experts);
}

TEST(ExpertLaws, TheBusiestCopyIsWhatAPlannerLeaves) {
  for (const double largest : {30.0, 1000.0, 30000.0}) {
    for (const int second : {8, 32, 64, 128}) {
      const double by_hand = busiest_by_hand(largest, 256, second);
      EXPECT_NEAR(busiest_copy(largest, second / 256.0) / by_hand, 1, 0.1)
          << largest << " " << second;
    }
  }
}

TEST(ExpertLaws, SecondCopiesEvenOutFavourites) {
  // One expert a device, skewed: everyone waits for the busiest. With as many copies again they wait less.
  const Device device = generation("Hopper");
  Moe op = exchanged(512, 64, 64, 4);
  op.skew = 1;
  const double waiting = moe_time(op, device, &toys::transfer()).total().value;
  op.experts = 128;
  op.redundant = 64;
  op.local_experts = 2;
  EXPECT_LT(moe_time(op, device, &toys::transfer()).total().value, waiting);
}

// Decodes alone are exchanged by other kernels than prompts, in the tables of served steps, too.
TEST(ExpertLaws, ServedStepsExchangeAsSingleStepsDo) {
  const Scenario scenario = shared_experts(16);
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  ModelShard whole = shard_of(scenario.model, scenario.parallel, {}), halves = whole;
  halves.two_halves = true;
  const Calibration* none = nullptr;
  for (const auto& [shard, calibration] :
       {std::pair{whole, none}, {whole, &toys::transfer()}, {halves, none}}) {
    const StepContext context{scenario.device, fabric, shard, scenario.host, calibration};
    StepTable table;
    table.reset(context);
    BatchShape decodes, prompt;
    add_decode(decodes, 16, 1024, 0);
    add_prefill(prompt, 1, 512, 0, 0);
    decodes.sampled = 16;
    prompt.sampled = 1;
    const double total = 16.0 * 1024;
    DecodeLine line;
    table.decode_line({.sequences = 16, .context = total}, line);
    const auto alone = [&](const BatchShape& batch, Phase phase) {
      return step_time(batch, context, phase, nullptr).total().value;
    };
    EXPECT_NEAR(line.step(total, 0) / alone(decodes, Phase::decode), 1, 1e-9);
    EXPECT_NEAR(table.run_mixed(prompt) / alone(prompt, Phase::prefill), 1, 1e-9);
  }
}

TEST(ExpertLaws, OneTokenHasNoTwoHalves) {
  Scenario scenario = shared_experts(16);
  scenario.step = {.batch = 1, .context = 100};
  const Outcome whole = evaluate(scenario);
  scenario.serving.two_batch_overlap = true;
  EXPECT_EQ(evaluate(scenario).kernels, whole.kernels);
}

// A step in two halves waits for the longer of what it computes and what it exchanges, and never for less than either;
// work and bytes on the way are all there.
TEST(ExpertLaws, TwoHalvesHideTheShorterOfComputingAndExchanging) {
  for (const double network : {1e-3, 0.1, 1.0, 1e6}) {
    for (const std::int64_t batch : {2, 64, 512}) {
      Scenario scenario = shared_experts(16);
      scenario.device = generation("Hopper");
      scenario.device.memory_capacity = Bytes{1e13};
      scenario.device.scale_up.bandwidth = scenario.device.scale_up.bandwidth * network;
      scenario.device.scale_out.bandwidth = scenario.device.scale_out.bandwidth * network;
      scenario.step = {.batch = batch, .context = 100};
      const Outcome plain = evaluate(scenario);
      scenario.serving.two_batch_overlap = true;
      const Outcome halves = evaluate(scenario);
      ASSERT_EQ(halves.status, Status::ok) << halves.reason;
      double streams[2] = {}, exposed = 0, plain_bytes = 0, bytes = 0;
      for (const KernelRow& row : halves.kernels) {
        const bool exchange = row.family == Family::all_to_all;
        const bool beside = exchange || row.work.calls >= 2;  // a layer's kernels run twice
        if (beside && row.op != OpName::attention && row.family != Family::gap) {
          streams[exchange ? 1 : 0] += row.work.time.value;
          exposed += row.work.exposed().value;
        }
        if (exchange) bytes += row.work.bytes.value;
      }
      for (const KernelRow& row : plain.kernels) {
        if (row.family == Family::all_to_all) plain_bytes += row.work.bytes.value;
      }
      EXPECT_NEAR(exposed, std::max(streams[0], streams[1]), 1e-9 * exposed)
          << network << " " << batch;
      EXPECT_NEAR(bytes / plain_bytes, 1, 1e-9);
      // Where the exchange is long, most of the smaller part is gained.
      if (network == 0.1 && batch == 512) {
        EXPECT_LT(halves.metrics.step_time, plain.metrics.step_time);
      }
      // Where it takes no time, two halves are no faster than one whole.
      if (network == 1e6) {
        EXPECT_GE(halves.metrics.step_time.value, plain.metrics.step_time.value * (1 - 1e-3));
      }
    }
  }
}

TEST(ExpertLaws, ATokenThatKeepsToFewGroupsIsSentNoSlower) {
  const Device device = generation("Hopper");
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (const Calibration* calibration :
       {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
    for (std::int64_t ranks = 2; ranks <= 256; ranks *= 2) {
      for (double tokens = 1; tokens <= 8192; tokens *= 8) {
        double before = 0;
        for (const std::int64_t top : {1, 2, 4, 8}) {
          const ExpertExchange op{.tokens = tokens,
                                  .hidden = 7168,
                                  .top_k = 8,
                                  .experts = 256,
                                  .groups = 8,
                                  .top_groups = top,
                                  .ranks = ranks};
          const double time = exchange_time(op, fabric, device, calibration).total().value;
          EXPECT_GE(time, before * (1 - 1e-12)) << ranks << " " << tokens << " " << top;
          before = time;
        }
      }
    }
  }
}

TEST(ExpertLaws, AnExchangeSendsNoMoreThanEveryCopy) {
  const Device device = generation("Hopper");
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (std::int64_t ranks = 2; ranks <= 256; ranks += 7) {
    const ExpertExchange op{
        .tokens = 100, .hidden = 4096, .top_k = 8, .experts = 256, .ranks = ranks};
    const double every_copy = 100 * 8 * 4096 * 2.0;
    const CollectiveTime time = exchange_time(op, fabric, device, nullptr);
    EXPECT_LE(time.bytes.value, every_copy * 2) << ranks;  // received once, forwarded once
    EXPECT_GT(time.bytes.value, 0) << ranks;
  }
}

}  // namespace
}  // namespace engine
