// What ships together: weights of half the bytes pay on every device that computes in them, with every engine's
// kernels. On one device, that is: cut among eight it does not hold everywhere, as four casts a layer then take longer
// than its small products save.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "engine/kernels/gemm.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

Resources with_engines() {
  Resources resources = toys::transfer_resources();
  const std::filesystem::path folder = paths::specs("calibration/engines");
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    auto own = parse_calibration(toys::file_text(file.path()), file.path());
    if (!own) {
      ADD_FAILURE() << to_text(own.mistakes());
      continue;
    }
    resources.calibrations.by_engine[file.path().stem().string()] =
        std::make_shared<const Calibration>(completed_by(std::move(own).value(), toys::transfer()));
  }
  return resources;
}

// Half of a layer's weights takes longer to read than casting the inputs of its four products, which launches do not hide.
bool reading_outweighs_casts(const Scenario& wide) {
  const ModelSpec& model = wide.model;
  const double inner = double(model.intermediate), hidden = double(model.hidden);
  const double heads = double((2 * model.heads + 2 * model.kv_heads) * model.head_dim);
  const Bytes half{(3 * inner + heads) * hidden};
  return half / wide.device.memory_bandwidth >
         4 * (wide.device.launch_latency + wide.host.kernel_gap);
}

TEST(NarrowWeights, DecodeIsNeverSlowerInFp8ThanInSixteenBits) {
  const Resources resources = with_engines();
  const sweep::Library library({paths::specs()});
  std::size_t compared = 0;
  for (const char* model : {"llama-3.1-8b", "llama-3.1-70b"}) {
    for (const std::string& serving : library.names("serving")) {
      for (const Device& device : toys::shipped_devices()) {
        Scenario wide = toys::shipped("models", model);
        wide.serving = toys::shipped("serving", serving).serving;
        wide.device = device;
        wide.calibration.tier = TierChoice::transfer;
        wide.step = {.phase = StepPhase::decode, .context = 500};
        if (!reading_outweighs_casts(wide)) continue;
        for (const std::int64_t batch : {1, 8, 64}) {
          wide.step.batch = batch;
          const Outcome before = evaluate(wide, resources);
          for (const std::int64_t group : {128, 1024}) {
            Scenario narrow = wide;
            narrow.quant = {.weights = Dtype::fp8, .activations = Dtype::fp8, .group = group};
            const Outcome after = evaluate(narrow, resources);
            if (before.status != Status::ok || after.status != Status::ok) continue;
            ++compared;
            EXPECT_LE(after.metrics.step_time.value, before.metrics.step_time.value)
                << model << " on " << device.name << " by " << serving << ", batch " << batch
                << ", group " << group;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 500u);
}

// Weights that are expanded on their way to 16-bit units save time of the memory: products of a long prompt have none to save.
TEST(NarrowWeights, AloneTheyMakeNoLongProductFaster) {
  struct Matrix {
    std::int64_t n, k;
  };
  for (const Device& device : toys::shipped_devices()) {
    for (const Matrix& matrix : {Matrix{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}) {
      for (const std::int64_t rows : {4096, 16384}) {
        Gemm product{.m = rows, .n = matrix.n, .k = matrix.k};
        const Seconds wide = gemm_time(product, device, &toys::transfer()).total();
        for (const Dtype weights : {Dtype::fp8, Dtype::int8, Dtype::int4, Dtype::fp4}) {
          product.weights = weights;
          const KernelTime narrow = gemm_time(product, device, &toys::transfer());
          if (narrow.tier == Tier::roofline) continue;
          EXPECT_GE(narrow.total().value, wide.value * (1 - 1e-12))
              << device.name << " " << name_of(weights) << " " << rows << " x " << matrix.n;
        }
      }
    }
  }
}

// Nor whole prompts, but for what a board that is held to its power limit has left where less is read.
TEST(NarrowWeights, AloneTheyMakeNoLongPromptFaster) {
  const Resources resources = toys::transfer_resources();
  for (const Device& device : toys::shipped_devices()) {
    Scenario point = toys::shipped("models", "llama-3.1-8b");
    point.device = device;
    point.calibration.tier = TierChoice::transfer;
    point.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 4096};
    const Outcome wide = evaluate(point, resources);
    if (wide.status != Status::ok || wide.tier == Tier::roofline) continue;
    for (const Dtype weights : {Dtype::fp8, Dtype::int8, Dtype::int4, Dtype::fp4}) {
      point.quant.weights = weights;
      EXPECT_GE(evaluate(point, resources).metrics.step_time.value,
                wide.metrics.step_time.value * 0.985)
          << device.name << " " << name_of(weights);
    }
  }
}

// Where a board is held to its power limit, too: what memory no longer hides was arithmetic before.
TEST(NarrowWeights, WhatIsFasterNeverSlowsThemDown) {
  struct Raised {
    const char* what;
    void (*raise)(Device& device, double factor);
  };
  const Raised fields[] = {
      {"memory_bandwidth",
       [](Device& d, double by) { d.memory_bandwidth = d.memory_bandwidth * by; }},
      {"l2_capacity", [](Device& d, double by) { d.l2_capacity = d.l2_capacity * by; }},
      {"starts", [](Device& d, double by) { d.launch_latency = d.launch_latency / by; }},
  };
  const Resources resources = toys::transfer_resources();
  for (const char* name : {"a100-80gb-pcie", "rtx-6000-ada", "rtx-pro-6000", "l4", "mi355x"}) {
    const Device device = toys::shipped("devices", name).device;
    for (const Dtype weights : {Dtype::int8, Dtype::int4, Dtype::fp4}) {
      for (const std::int64_t prompt : {150, 600, 1500, 20000}) {
        for (const Raised& field : fields) {
          Scenario point = toys::shipped("models", "llama-3.1-8b");
          point.calibration.tier = TierChoice::transfer;
          point.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = prompt};
          point.quant.weights = weights;
          double before = 1e9;
          for (const double factor : {0.1, 0.2, 0.3, 0.5, 0.77, 1.0, 1.5, 2.3, 4.0, 10.0}) {
            point.device = device;
            point.device.memory_capacity = Bytes{1e12};
            field.raise(point.device, factor);
            const double time = evaluate(point, resources).metrics.step_time.value;
            EXPECT_LE(time, before * (1 + 1e-9))
                << name << " " << name_of(weights) << ", " << prompt << " tokens: " << field.what
                << " raised to " << factor;
            before = time;
          }
        }
      }
    }
  }
}

// Kernels that start in different times take turns in being the fastest one.
TEST(NarrowWeights, OneTokenMoreIsNeverFaster) {
  for (const char* name : {"mi355x", "mi300x", "l4", "rtx-pro-6000"}) {
    const Device device = toys::shipped("devices", name).device;
    for (const Dtype weights : {Dtype::int8, Dtype::int4, Dtype::fp4}) {
      double before = 0;
      for (std::int64_t rows = 16; rows <= 4096; rows += 8) {
        const Gemm product{.m = rows, .n = 5376, .k = 10752, .weights = weights};
        const double time = gemm_time(product, device, &toys::transfer()).total().value;
        EXPECT_GE(time, before * (1 - 1e-9)) << name << " " << name_of(weights) << " " << rows;
        before = time;
      }
    }
  }
}

}  // namespace
}  // namespace engine
