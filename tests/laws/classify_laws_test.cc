// Laws of images through convolutional networks.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "engine/evaluate.h"
#include "engine/model/network.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario images(const std::string& model, std::int64_t batch = 1,
                const std::string& device = "jetson-agx-orin") {
  Scenario scenario = toys::scenario();
  scenario.task = Task::classify;
  scenario.device = toys::shipped("devices", device).device;
  scenario.model = toys::shipped("models", model).model;
  scenario.quant.weights = scenario.quant.activations = Dtype::fp16;
  scenario.host = toys::no_host();
  scenario.classify.batch = batch;
  return scenario;
}

Metrics made(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

double flops(const Scenario& scenario) {
  double sum = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.op != OpName::pool) sum += row.work.flops.value;
  }
  return sum;
}

// Published with torchvision's weights: parameters to the last one, and multiply-adds an image.
TEST(ClassifyLaws, ANetworkDoesThePublishedArithmetic) {
  EXPECT_EQ(made(images("resnet-50")).parameters, 25557032);
  EXPECT_EQ(made(images("mobilenet-v2")).parameters, 3504872);
  EXPECT_NEAR(flops(images("resnet-50")) / (2 * 4.09e9), 1, 0.01);
  EXPECT_NEAR(flops(images("mobilenet-v2")) / (2 * 0.3e9), 1, 0.01);
}

// Weights are read once for all images of a batch, and few images do not fill a device.
TEST(ClassifyLaws, ImagesTogetherTakeLessThanOneByOne) {
  for (const char* model : {"resnet-50", "mobilenet-v2"}) {
    const double alone = made(images(model)).image_latency.value;
    double before = 0;
    for (const std::int64_t batch : {1, 2, 3, 8, 64, 256}) {
      const Metrics metrics = made(images(model, batch));
      const double time = metrics.image_latency.value;
      EXPECT_GT(time, before) << model << " " << batch;
      EXPECT_LE(time, double(batch) * alone) << model << " " << batch;
      EXPECT_NEAR(metrics.images_per_s * time, double(batch), 1e-6 * double(batch));
      before = time;
    }
  }
}

TEST(ClassifyLaws, NothingBeatsTheRoofline) {
  for (const char* model : {"resnet-50", "mobilenet-v2"}) {
    for (const std::int64_t batch : {1, 64}) {
      const Scenario scenario = images(model, batch);
      const Metrics metrics = made(scenario);
      const double arithmetic = flops(scenario) / scenario.device.peak.fp16.value;
      const double weights = metrics.parameters * 2 / scenario.device.memory_bandwidth.value;
      EXPECT_GE(metrics.image_latency.value, arithmetic);
      EXPECT_GE(metrics.image_latency.value, weights * 0.98) << "norms are folded into weights";
      EXPECT_LE(metrics.model_flops_utilization, 1);
    }
  }
}

TEST(ClassifyLaws, FasterDevicesAreNoSlower) {
  for (const char* device : {"jetson-agx-orin", "h100-sxm"}) {
    for (const char* model : {"resnet-50", "mobilenet-v2"}) {
      const Scenario scenario = images(model, 16, device);
      const double before = made(scenario).image_latency.value;
      for (void (*better)(Device&) :
           {+[](Device& d) { d.memory_bandwidth *= 2; }, +[](Device& d) { d.peak.fp16 *= 2; },
            +[](Device& d) { d.l2_capacity *= 2; }, +[](Device& d) { d.clock *= 1.5; }}) {
        Scenario faster = scenario;
        better(faster.device);
        EXPECT_LE(made(faster).image_latency.value, before * (1 + 1e-9)) << device << " " << model;
      }
    }
  }
}

// Filters of one channel do a hundredth of the arithmetic of whole ones, and move as much.
TEST(ClassifyLaws, DepthwiseLayersWaitForMemory) {
  const Outcome outcome = evaluate(images("mobilenet-v2", 64));
  bool seen = false;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op != OpName::depthwise) continue;
    seen = true;
    EXPECT_EQ(row.bound, Bound::memory);
  }
  EXPECT_TRUE(seen);
}

// A filter of 3 x 3 meets each value nine times. From memory it comes once.
TEST(ClassifyLaws, OverlappingFiltersReadAnImageOnce) {
  Scenario wide = images("resnet-50", 64), plain = wide;
  wide.model.network = "conv 64 from 64 side 56 kernel 3";
  plain.model.network = "conv 64 from 64 side 56";
  const Work three = evaluate(wide).kernels.at(0).work, one = evaluate(plain).kernels.at(0).work;
  EXPECT_NEAR(three.flops / one.flops, 9, 1e-9);
  EXPECT_NEAR(one.bytes.value, 2 * (2 * 64.0 * 64 * 56 * 56 + 64 * 64), 1);
  EXPECT_NEAR(three.bytes.value - one.bytes.value, 2 * 8 * 64 * 64, 1) << "larger filters alone";
}

TEST(ClassifyLaws, LayersAlikeAreOneLineOrMany) {
  Scenario times = images("resnet-50"), lines = times;
  times.model.network = "conv 64 from 64 side 56 kernel 3 times 3, linear 10";
  lines.model.network =
      "conv 64 from 64 side 56 kernel 3, conv 64 kernel 3, conv 64 kernel 3, linear 10";
  EXPECT_NEAR(made(times).image_latency / made(lines).image_latency, 1, 1e-12);
  EXPECT_EQ(made(times).parameters, made(lines).parameters);
  EXPECT_EQ(evaluate(lines).kernels.size(), evaluate(times).kernels.size());
}

// A shortcut is read while its sum is written; and it stays in memory until then.
TEST(ClassifyLaws, AShortcutIsReadOnce) {
  Scenario with = images("resnet-50", 64), without = with;
  with.model.network = "conv 64 from 64 side 56 add";
  without.model.network = "conv 64 from 64 side 56";
  const Bytes more =
      evaluate(with).kernels.at(0).work.bytes - evaluate(without).kernels.at(0).work.bytes;
  EXPECT_NEAR(more.value, 64 * 64 * 56 * 56 * 2, 1);
  EXPECT_NEAR((made(with).activations - made(without).activations).value, more.value, 1);
}

TEST(ClassifyLaws, NarrowFormatsAreFasterAndSmaller) {
  Scenario narrow = images("resnet-50", 16);
  const Metrics wide = made(narrow);
  narrow.quant.weights = narrow.quant.activations = Dtype::int8;
  const Metrics eight = made(narrow);
  EXPECT_LT(eight.image_latency, wide.image_latency);
  EXPECT_LT(eight.weights, wide.weights * 0.6);
  EXPECT_NEAR(eight.activations / wide.activations, 0.5, 1e-9);
}

// A device draws no less than at rest and no more than its limit.
TEST(ClassifyLaws, EnergyIsPowerTimesTime) {
  Scenario scenario = images("resnet-50", 8);
  scenario.device.tensor_power = Watts{0};
  EXPECT_TRUE(std::isnan(made(scenario).energy_j_per_image)) << "it states no powers";
  scenario.device.busy_power = Watts{20};
  scenario.device.tensor_power = Watts{30};
  scenario.device.memory_power = Watts{10};
  const Metrics metrics = made(scenario);
  const double seconds = metrics.image_latency.value / 8;
  EXPECT_GE(metrics.energy_j_per_image, seconds * scenario.device.busy_power.value);
  EXPECT_LE(metrics.energy_j_per_image, seconds * scenario.device.power_limit.value * (1 + 1e-9));
}

TEST(ClassifyLaws, ReplicasLookAtOtherImages) {
  Scenario scenario = images("resnet-50", 4);
  const Metrics one = made(scenario);
  scenario.parallel.dp = 4;
  EXPECT_EQ(made(scenario).image_latency, one.image_latency);
  EXPECT_NEAR(made(scenario).images_per_s / one.images_per_s, 4, 1e-9);
}

TEST(ClassifyLaws, WhatIsNoTaskForANetworkIsRefused) {
  const auto reason = [](const Scenario& scenario) {
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::unsupported);
    return outcome.reason;
  };
  Scenario step = images("resnet-50");
  step.task = Task::step;
  EXPECT_NE(reason(step).find("task: classify runs it"), std::string::npos);
  Scenario text = images("llama-3.2-1b");
  EXPECT_NE(reason(text).find("model.network"), std::string::npos);
  Scenario split = images("resnet-50");
  split.parallel.tp = 2;
  EXPECT_NE(reason(split).find("parallel.tp"), std::string::npos);
  Scenario apart = toys::scenario();
  apart.task = Task::request;
  apart.prefill.present = true;
  fill_roles(apart);
  apart.prefill.deployment.model = images("resnet-50").model;
  EXPECT_TRUE(reason(apart).starts_with("prefill: its model is a convolutional network"));
}

TEST(ClassifyLaws, ABatchThatDoesNotFitIsInfeasible) {
  const Outcome outcome = evaluate(images("resnet-50", 1 << 20));
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason_class, ReasonClass::memory);
}

}  // namespace
}  // namespace engine
