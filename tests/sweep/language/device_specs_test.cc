// Every shipped device, link and cluster says where its figures come from, and its figures agree with one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/evaluate.h"
#include "engine/hardware/device.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// "  bf16: 125 TFLOP/s    # source": a figure and where it comes from.
bool says_a_figure(const std::string& line) {
  const std::size_t colon = line.find(": ");
  if (line.empty() || line[0] == '#' || colon == std::string::npos) return false;
  const std::string value = line.substr(colon + 2, line.find('#') - colon - 2);
  const bool named = line.starts_with("name:") || line.starts_with("from:") ||
                     line.starts_with("architecture:") || line.starts_with("family:") ||
                     line.starts_with("scale_") || line.starts_with("host_link:");
  return !named && std::ranges::any_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

TEST(DeviceSpecs, EveryFigureHasASource) {
  for (const char* library : {"devices", "links", "clusters"}) {
    for (const auto& entry : std::filesystem::directory_iterator(paths::specs(library))) {
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        if (!says_a_figure(line)) continue;
        EXPECT_NE(line.find('#'), std::string::npos) << entry.path().filename() << ": " << line;
      }
    }
  }
}

// A tensor core does no more wide products a clock than narrow ones, a cache is faster than memory, and a board at rest draws less than
// busy ones, which keep their limit at half of their clock when they wait for memory.
TEST(DeviceSpecs, NarrowFormatsAreNoSlower) {
  for (const Device& device : toys::shipped_devices()) {
    const MatrixPeaks& peak = device.peak;
    const double half = std::max(peak.bf16.value, peak.fp16.value);
    EXPECT_LE(peak.fp32.value, half) << device.name;
    for (const FlopsPerSecond narrow : {peak.fp8, peak.fp4}) {
      EXPECT_TRUE(narrow.value == 0 || narrow.value >= half) << device.name;
    }
    EXPECT_TRUE(peak.fp4.value == 0 || peak.fp4 >= peak.fp8) << device.name;
    EXPECT_GT(device.l2_bandwidth, device.memory_bandwidth) << device.name;
    EXPECT_GT(device.multiprocessors, 0) << device.name;
    EXPECT_GT(device.power_limit, device.idle_power) << device.name;
    EXPECT_GT(device.tensor_power.value, 0) << device.name << ": nothing would slow it down";
    EXPECT_GT(device.busy_power, device.idle_power) << device.name;
    const Watts above_rest = device.busy_power - device.idle_power + device.memory_power;
    EXPECT_LE(device.idle_power + above_rest * 0.25, device.power_limit) << device.name;
  }
}

// Nothing sends faster than the memory it reads from.
TEST(DeviceSpecs, LinksAreSlowerThanMemory) {
  for (const Device& device : toys::shipped_devices()) {
    for (const Link& link : {device.scale_up, device.scale_out, device.host_link}) {
      EXPECT_LT(link.bandwidth, device.memory_bandwidth) << device.name << " " << link.name;
    }
    if (device.scale_up.bandwidth.value > 0) {
      EXPECT_GE(device.scale_up.bandwidth, device.scale_out.bandwidth) << device.name;
    }
  }
}

// A decode step of one sequence reads all weights: it takes as long as memory needs for them, and no device more than three times that.
// A prompt of 4,096 tokens takes a quarter to all of the peak.
TEST(DeviceSpecs, AnEightBillionModelTakesWhatMemoryAndPeakNeed) {
  Scenario scenario;
  scenario.task = Task::step;
  scenario.model = toys::shipped("models", "llama-3.1-8b").model;
  scenario.host = toys::shipped("hosts", "none").host;
  for (const Device& device : toys::shipped_devices()) {
    scenario.device = device;
    scenario.device.memory_capacity = std::max(device.memory_capacity, Bytes{64e9});
    const Dtype wide = device.peak.bf16.value > 0 ? Dtype::bf16 : Dtype::fp16;
    scenario.quant.weights = scenario.quant.activations = scenario.quant.kv = wide;
    scenario.step = {.phase = StepPhase::decode, .batch = 1, .context = 512};
    const Outcome decode = evaluate(scenario, toys::transfer_resources());
    ASSERT_EQ(decode.status, Status::ok) << device.name << ": " << decode.reason;
    // Rows of the embedding are looked up, not read.
    const double read = 7.5e9 * 2 / device.memory_bandwidth.value;
    EXPECT_GE(decode.metrics.step_time.value, read) << device.name;
    EXPECT_LE(decode.metrics.step_time.value, 3 * read) << device.name;
    scenario.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 4096};
    const Metrics prefill = evaluate(scenario, toys::transfer_resources()).metrics;
    EXPECT_GE(prefill.model_flops_utilization, 0.25) << device.name;
    EXPECT_LE(prefill.model_flops_utilization, 1) << device.name;
  }
}

}  // namespace
}  // namespace engine
