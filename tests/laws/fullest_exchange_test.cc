// An exchange of tokens with their experts lasts as long as it does for the device whose experts are sent most: by chance, and
// by routers that favour some.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "engine/comm/collective_time.h"
#include "engine/evaluate.h"
#include "engine/kernels/moe.h"
#include "engine/model/expert_places.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using Kernels = ExpertExchange::Kernels;
using Receiver = ExpertExchange::Receiver;
using Way = ExpertExchange::Way;

Device hopper() {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  device.scale_up.bandwidth = BytesPerSecond{400e9};
  device.scale_out.bandwidth = BytesPerSecond{50e9};
  return device;
}

ExpertExchange call(double tokens, std::int64_t ranks) {
  return {.tokens = tokens, .hidden = 4096, .top_k = 8, .experts = 256, .ranks = ranks};
}

// Every kind of exchange: by the datasheet and by fits, there and back, by each kind of kernels, on one node and on many.
template <class Check>
void each_exchange(Check&& check) {
  const Device device = hopper();
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (const Calibration* calibration :
       {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
    for (const Kernels kernels : {Kernels::fastest, Kernels::low_latency, Kernels::normal}) {
      for (const Way way : {Way::dispatch, Way::combine}) {
        for (const std::int64_t ranks : {2, 8, 16, 64, 256}) {
          for (const double tokens : {1.0, 32.0, 1024.0, 16384.0}) {
            ExpertExchange op = call(tokens, ranks);
            op.kernels = kernels;
            op.way = way;
            check(op, [&](const ExpertExchange& other) {
              return exchange_time(other, fabric, device, calibration);
            });
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(FullestExchange, TimeNeverFallsWithSkewAndNeverExceedsEverythingToOneDevice) {
  each_exchange([](ExpertExchange op, auto time) {
    op.receiver = Receiver::mean;
    const double mean = time(op).total().value;
    op.receiver = Receiver::fullest;
    double before = mean;
    for (const double skew : {0.0, 0.3, 0.7, 1.0, 1.5, 2.0, 10.0}) {
      op.skew = skew;
      const CollectiveTime found = time(op);
      EXPECT_GE(found.total().value, before * (1 - 1e-12)) << op.ranks << " " << op.tokens;
      EXPECT_LE(found.total().value, mean * double(op.ranks) * (1 + 1e-12));
      before = found.total().value;
    }
  });
}

TEST(FullestExchange, ManyTokensThatFavourNobodyAreExchangedAsOnAverage) {
  each_exchange([](ExpertExchange op, auto time) {
    op.tokens = 4e6;
    const double fullest = time(op).total().value;
    op.receiver = Receiver::mean;
    EXPECT_NEAR(fullest / time(op).total().value, 1, 2e-3) << op.ranks;
  });
}

// What is sent is the same whoever gets it; what the fullest device waits for longer is the rest of the whole.
TEST(FullestExchange, MeanAndExcessAreTheWhole) {
  each_exchange([](ExpertExchange op, auto time) {
    op.skew = 1;
    const CollectiveTime whole = time(op);
    op.receiver = Receiver::mean;
    const CollectiveTime mean = time(op);
    op.receiver = Receiver::excess;
    const CollectiveTime excess = time(op);
    EXPECT_NEAR((mean.total() + excess.total()) / whole.total(), 1, 1e-12);
    EXPECT_EQ(excess.bytes.value, 0);
    if (whole.algorithm == mean.algorithm) {
      EXPECT_EQ(whole.bytes, mean.bytes);
    }
  });
}

// Tokens of the measured tables choose at random among the experts of eight devices: their chance is in the fits.
TEST(FullestExchange, ChanceThatTablesHaveIsNotCountedTwice) {
  const Device device = hopper();
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (double tokens = 1; tokens < 1e5; tokens *= 3) {
    ExpertExchange op = call(tokens, 8);
    const Seconds fullest = exchange_time(op, fabric, device, &toys::transfer()).total();
    op.receiver = Receiver::mean;
    EXPECT_EQ(exchange_time(op, fabric, device, &toys::transfer()).total(), fullest) << tokens;
  }
}

// Two choices each; three quarters of all choices fall on one of two nodes, and 15 of 16 tokens reach it: of all tokens of two
// nodes that is 1.875 times what a node has.
TEST(FullestExchange, TokensReachTheFullestPlaceOnce) {
  EXPECT_NEAR(tokens_on_the_fullest({.places = 2, .open = 2, .fuller = 1.5}, 2), 1.875, 1e-12);
  for (const double places : {1.0, 2.0, 8.0, 64.0}) {
    for (double open = 1; open <= places; open *= 2) {
      for (const double draws : {1.0, 4.0, 8.0}) {
        EXPECT_NEAR(tokens_on_the_fullest({.places = places, .open = open}, draws),
                    places_reached(open, draws), 1e-9);
        double before = 0;
        for (double fuller = 1; fuller <= places; fuller *= 1.1) {
          const double tokens =
              tokens_on_the_fullest({.places = places, .open = open, .fuller = fuller}, draws);
          EXPECT_GE(tokens, before);
          EXPECT_LE(tokens, places * (1 + 1e-12));  // all of them
          before = tokens;
        }
      }
    }
  }
}

// Drawn: tokens of eight devices choose among 64 experts, and go once to each device that holds one of them.
TEST(FullestExchange, FewTokensLeaveADeviceWithMoreByChance) {
  std::mt19937 random(11);
  constexpr int devices = 8, choices = 4, draws = 400;
  for (const int tokens : {2, 16, 128}) {
    double fullest = 0;
    for (int draw = 0; draw < draws; ++draw) {
      std::vector<double> reached(devices, 0);
      for (int token = 0; token < tokens * devices; ++token) {
        std::vector<bool> there(devices, false);
        for (int i = 0; i < choices; ++i) there[random() % devices] = true;
        for (std::size_t i = 0; i < devices; ++i) reached[i] += there[i] ? 1 : 0;
      }
      fullest += *std::ranges::max_element(reached) / draws;
    }
    ExpertExchange op = call(tokens, devices);
    op.top_k = choices;
    const double fuller = fullest_of(op, devices);
    const double counted =
        tokens *
        tokens_on_the_fullest({.places = devices, .open = devices, .fuller = fuller}, choices);
    EXPECT_NEAR(counted / fullest, 1, 0.1) << tokens;
  }
}

TEST(FullestExchange, StepsAndTrainingWaitForSkewedExperts) {
  Scenario step = toys::scenario();
  step.model = toys::mixture();
  step.device.memory_capacity = Bytes{1e13};
  step.parallel.dp = step.parallel.ep = 16;
  step.parallel.expert_copies = ExpertCopies::fewest;
  step.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 4096};
  Scenario trained = toys::training();
  trained.model = toys::mixture();
  trained.parallel = {.dp = 16, .ep = 16};
  trained.train.global_batch = 128;
  trained.train.overlap = false;
  Scenario copies = trained;
  copies.train.dispatcher = Dispatcher::alltoall;
  double steps = 0, trainings = 0, single = 0, bytes = 0;
  for (const double skew : {0.0, 0.5, 1.0, 2.0}) {
    step.model.moe.skew = trained.train.routing_skew = copies.train.routing_skew = skew;
    const Outcome found = evaluate(step);
    ASSERT_EQ(found.status, Status::ok) << found.reason;
    const double communication = found.metrics.communication_time.value;
    EXPECT_GT(communication, 1.05 * steps) << skew;
    steps = communication;
    const double here = toys::figures_of(trained).expert_exchange_time.value;
    EXPECT_GT(here, 1.05 * trainings) << skew;
    trainings = here;
    const double there = toys::figures_of(copies).expert_exchange_time.value;
    EXPECT_GT(there, 1.05 * single) << skew;
    single = there;
    // Nobody sends more for it.
    double sent = 0;
    for (const KernelRow& row : found.kernels) {
      if (row.family == Family::all_to_all) sent += row.work.bytes.value;
    }
    if (bytes > 0) {
      EXPECT_NEAR(sent / bytes, 1, 1e-12);
    }
    bytes = sent;
  }
}

// What is exchanged by favour is computed by favour, on the datasheet's rates as on fitted ones.
TEST(FullestExchange, SkewedExpertsTakeLongerByTheDatasheet) {
  Moe op{.tokens = 65536,
         .hidden = 4096,
         .intermediate = 2048,
         .top_k = 8,
         .experts = 256,
         .local_experts = 8,
         .exchanged = true};
  const double even = moe_time(op, hopper(), nullptr).total().value;
  double before = even;
  for (const double skew : {0.5, 1.0, 2.0}) {
    op.skew = skew;
    const double time = moe_time(op, hopper(), nullptr).total().value;
    EXPECT_GT(time, 1.05 * before) << skew;
    EXPECT_LE(time, even * copies_on_the_fullest(op) / copies_on_a_device(op) * 1.05) << skew;
    before = time;
  }
}

// Copies that meet on a device are kept there: by chance alone some device has more of few tokens than of many, each.
TEST(FullestExchange, FewTokensLeaveADeviceWithMoreToKeep) {
  Scenario scenario = toys::training();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 16, .ep = 16};
  const auto kept_of_a_token = [&](std::int64_t tokens) {
    scenario.train.sequence = tokens;
    return toys::figures_of(scenario).kept_activation_memory.value / double(tokens);
  };
  const double many = kept_of_a_token(8192), some = kept_of_a_token(256), few = kept_of_a_token(16);
  EXPECT_GT(some, many * 1.001);
  EXPECT_GT(few, some * 1.01);
  EXPECT_LT(few, many * 2);
}

}  // namespace
}  // namespace engine
