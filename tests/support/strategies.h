// Training of shipped models on shipped devices by strategies drawn at random.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "engine/scenario.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace toys {

inline engine::Scenario step_of(const char* model, const char* device) {
  engine::Scenario scenario = shipped("models", model);
  scenario.task = engine::Task::train;
  scenario.device = shipped("devices", device).device;
  scenario.device.memory_capacity = engine::Bytes{1e14};
  scenario.host = no_host();
  scenario.calibration.tier = engine::TierChoice::transfer;
  scenario.train = {.sequence = 4096, .micro_batch = 1, .global_batch = 4};
  return scenario;
}

// A strategy drawn at random; many do not work.
class Strategies {
 public:
  template <class Choice, std::size_t count>
  Choice one_of(const std::array<Choice, count>& choices) {
    return choices[draw_() % count];
  }
  engine::Scenario next() {
    static constexpr std::array devices = {"h100-sxm", "h200-sxm", "a100-80gb-sxm", "mi300x",
                                           "h100-pcie"};
    static constexpr std::array models = {"llama-3.1-8b", "deepseek-v2-lite", "qwen3-30b-a3b",
                                          "gemma-2-9b"};
    engine::Scenario scenario = step_of(one_of(models), one_of(devices));
    scenario.parallel = {.tp = one_of(kDegrees), .pp = one_of(kDegrees), .dp = one_of(kDegrees)};
    if (scenario.model.moe.experts > 0) scenario.parallel.ep = one_of(kDegrees);
    engine::TrainSettings& train = scenario.train;
    train.sequence = one_of(std::array{512, 1024, 4096});
    train.micro_batch = one_of(std::array{1, 2});
    train.global_batch = train.micro_batch * scenario.parallel.dp * one_of(std::array{1, 4, 12});
    train.schedule = one_of(std::array{engine::Schedule::one_f_one_b, engine::Schedule::interleaved,
                                       engine::Schedule::zero_bubble, engine::Schedule::gpipe});
    if (train.schedule == engine::Schedule::interleaved) train.virtual_stages = 2;
    train.recompute = one_of(
        std::array{engine::Recompute::none, engine::Recompute::full, engine::Recompute::attention});
    train.zero = one_of(std::array{0, 1, 2, 3});
    train.sequence_parallel = scenario.parallel.tp > 1;
    train.tp_overlap = train.sequence_parallel && coin();
    train.batch_overlap = scenario.parallel.ep > 1 && coin();
    train.fused_gradients = coin();
    train.offload_activations = coin() && coin();
    train.offload_optimizer = scenario.parallel.pp == 1 && coin();
    if (coin()) train.link_jitter = 0.1;
    return scenario;
  }

 private:
  static constexpr std::array<std::int64_t, 3> kDegrees = {1, 2, 4};
  bool coin() { return draw_() % 2 == 0; }
  std::mt19937 draw_{11};
};

}  // namespace toys
