// Boards of one processor: what their datasheets order, times order, too.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

Scenario step_on(const std::string& device, StepPhase phase, std::int64_t batch) {
  Scenario scenario = toys::shipped("models", "llama-3.1-8b");
  scenario.device = toys::shipped("devices", device).device;
  scenario.quant.weights = scenario.quant.activations = scenario.quant.kv = Dtype::fp16;
  scenario.step = {.phase = phase, .batch = batch, .context = 2048, .prompt = 4096};
  return scenario;
}

double seconds(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics.step_time.value;
}

// A lower limit bites sooner: no board reads prompts faster than its twin with more power.
TEST(Relatives, LessPowerIsNeverFasterAtPrompts) {
  struct Twins {
    const char *less, *more;
  };
  for (const Twins& twins :
       {Twins{"a100-80gb-pcie", "a100-80gb-sxm"}, Twins{"a100-40gb-pcie", "a100-40gb-sxm"},
        Twins{"a30", "a100-40gb-pcie"}, Twins{"h100-pcie", "h100-nvl"},
        Twins{"h100-nvl", "h100-sxm"}, Twins{"h200-nvl", "h200-sxm"}, Twins{"h20", "h100-sxm"},
        Twins{"v100-pcie-16gb", "v100-sxm-32gb"}, Twins{"l40", "l40s"}, Twins{"l4", "l40"},
        Twins{"a10", "a40"}}) {
    Scenario less = step_on(twins.less, StepPhase::prefill, 1);
    Scenario more = step_on(twins.more, StepPhase::prefill, 1);
    less.device.memory_capacity = more.device.memory_capacity = Bytes{200e9};
    EXPECT_GT(seconds(less), seconds(more)) << twins.less << " and " << twins.more;
  }
}

// What a few rows take is the way of their weights, on a device with little arithmetic, too.
TEST(Relatives, BandwidthDecidesDecodesOfFewSequences) {
  for (const std::int64_t batch : {1, 4, 8}) {
    EXPECT_LT(seconds(step_on("h20", StepPhase::decode, batch)),
              seconds(step_on("h100-sxm", StepPhase::decode, batch)))
        << batch;
  }
}

// GDDR has no bits of its own for error correction: where it is on, a sixteenth of what is read are check bits. Cards of data
// centres have it on; GeForce and workstation cards, which have it off, reach what their pins carry.
TEST(Relatives, ErrorCorrectionTakesASixteenthOfGddr) {
  struct Card {
    const char* name;
    double pins, gigabits;
    bool corrected;
  };
  for (const Card& card :
       {Card{"a10", 384, 12.5, true}, Card{"a40", 384, 14.5, true}, Card{"l4", 192, 12.5, true},
        Card{"l40", 384, 18, true}, Card{"l40s", 384, 18, true}, Card{"t4", 256, 10, true},
        Card{"rtx-a6000", 384, 16, false}, Card{"rtx-4090", 384, 21, false},
        Card{"rtx-5090", 512, 28, false}}) {
    const double raw = card.pins * card.gigabits * 1e9 / 8;
    EXPECT_NEAR(toys::shipped("devices", card.name).device.memory_bandwidth.value,
                card.corrected ? raw * 15 / 16 : raw, raw * 2e-3)
        << card.name;
  }
}

}  // namespace
}  // namespace engine
