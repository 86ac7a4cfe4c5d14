// Laws of images by diffusion transformers.
#include <gtest/gtest.h>

#include <string_view>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario images(std::int64_t tokens) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::denoise;
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.model = toys::shipped("models", "dit-xl-2").model;
  scenario.model.max_context = 0;  // whatever it was trained for
  scenario.host = toys::no_host();
  scenario.denoise = {.tokens = tokens, .steps = 10};
  return scenario;
}

Metrics made(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

double flops(const Scenario& scenario) {
  double sum = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) sum += row.work.flops.value;
  return sum;
}

// Published: 118.64 and 524.60 billion multiply-adds a pass of DiT-XL/2 on 256 and 1,024 patches.
TEST(DenoiseLaws, APassDoesThePublishedArithmetic) {
  for (const auto& [patches, published] : {std::pair(256, 118.64e9), std::pair(1024, 524.60e9)}) {
    Scenario scenario = images(patches);
    scenario.denoise.steps = 1;
    EXPECT_NEAR(flops(scenario) / (2 * published), 1, 0.01) << patches;
  }
}

// An image that a model was not made for has no time, as a prompt has none.
TEST(DenoiseLaws, AModelMakesNoLargerImagesThanItCan) {
  Scenario scenario = images(1000);
  scenario.model.max_context = 1024;
  scenario.denoise.text = 24;
  made(scenario);
  scenario.denoise.text = 25;
  EXPECT_EQ(evaluate(scenario).reason,
            "denoise.tokens + denoise.text (1025) exceeds model.max_context (1024)");
}

TEST(DenoiseLaws, StepsAreAlike) {
  Scenario scenario = images(1024);
  const Metrics ten = made(scenario);
  EXPECT_NEAR(ten.image_latency.value, 10 * ten.step_time.value, 1e-12);
  scenario.denoise.steps = 50;
  const Metrics fifty = made(scenario);
  EXPECT_EQ(fifty.step_time, ten.step_time);
  EXPECT_NEAR(fifty.image_latency / ten.image_latency, 5, 1e-9);
  EXPECT_NEAR(fifty.image_latency_low / ten.image_latency_low, 5, 1e-9);
  EXPECT_NEAR(fifty.images_per_s * fifty.image_latency.value, 1, 1e-9);
}

// With guidance every image is in the batch twice.
TEST(DenoiseLaws, PassesAreImagesSideBySide) {
  Scenario guided = images(1024), more = guided;
  guided.denoise.batch = 4;
  guided.denoise.passes = 2;
  more.denoise.batch = 8;
  EXPECT_EQ(made(guided).image_latency, made(more).image_latency);
  EXPECT_NEAR(made(more).images_per_s / made(guided).images_per_s, 2, 1e-9);
}

// Text goes through all layers, and patches attend to it.
TEST(DenoiseLaws, TextIsTokensLikeOthers) {
  Scenario with = images(1024), longer = images(1101);
  with.denoise.text = 77;
  EXPECT_EQ(made(with).image_latency, made(longer).image_latency);
}

TEST(DenoiseLaws, NothingIsCachedAndNoWordIsChosen) {
  const Outcome outcome = evaluate(images(1024));
  EXPECT_EQ(outcome.metrics.kv_cache.value, 0);
  for (const KernelRow& row : outcome.kernels) {
    EXPECT_NE(row.op, OpName::embedding);
    EXPECT_NE(row.op, OpName::logits);
    EXPECT_NE(row.op, OpName::sampling);
    EXPECT_NE(row.bound, Bound::network) << "one device has nobody to send to";
  }
}

// What an image is conditioned on is projected once, however many tokens it has.
TEST(DenoiseLaws, ModulationFollowsImagesNotTokens) {
  const auto of = [](const Scenario& scenario) {
    double sum = 0;
    for (const KernelRow& row : evaluate(scenario).kernels) {
      if (row.op == OpName::modulation) sum += row.work.flops.value;
    }
    return sum;
  };
  Scenario many = images(256);
  many.denoise.batch = 3;
  EXPECT_GT(of(images(256)), 0);
  EXPECT_EQ(of(images(1024)), of(images(256)));
  EXPECT_NEAR(of(many) / of(images(256)), 3, 1e-9);
}

TEST(DenoiseLaws, DevicesShareAnImage) {
  const Metrics alone = made(images(16384));
  for (const auto share : {&Parallelism::tp, &Parallelism::cp}) {
    Scenario scenario = images(16384);
    scenario.parallel.*share = 4;
    const Metrics together = made(scenario);
    EXPECT_LT(together.image_latency, alone.image_latency);
    EXPECT_GT(together.image_latency * 4, alone.image_latency);
  }
  Scenario replicas = images(16384);
  replicas.parallel.dp = 4;
  EXPECT_EQ(made(replicas).image_latency, alone.image_latency);
  EXPECT_NEAR(made(replicas).images_per_s / alone.images_per_s, 4, 1e-9);
}

TEST(DenoiseLaws, FasterDevicesAreNoSlower) {
  const Scenario scenario = images(1024);
  const double before = made(scenario).image_latency.value;
  for (void (*better)(Device&) :
       {+[](Device& d) { d.memory_bandwidth *= 2; }, +[](Device& d) { d.peak.bf16 *= 2; },
        +[](Device& d) { d.clock *= 1.5; }}) {
    Scenario faster = scenario;
    better(faster.device);
    EXPECT_LE(made(faster).image_latency.value, before * (1 + 1e-9));
  }
}

TEST(DenoiseLaws, PipelinesAreRefused) {
  Scenario scenario = images(1024);
  scenario.parallel.pp = 2;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::unsupported);
  EXPECT_NE(outcome.reason.find("parallel.pp"), std::string::npos);
}

}  // namespace
}  // namespace engine
