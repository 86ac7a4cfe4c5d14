// How an inference engine is set up: the knobs an operator turns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

struct ServingSettings {
  static constexpr std::string_view library = "serving";

  std::string name = "default";
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t max_num_seqs = 256;
  std::int64_t block_size = 16;
  double memory_utilization = 0.9;
  Bytes reserved_memory{1e9};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of these settings", any_value);
    visit("max_num_batched_tokens", self.max_num_batched_tokens, "most tokens in one step",
          at_least(1));
    visit("max_num_seqs", self.max_num_seqs, "most sequences in one step", at_least(1));
    visit("block_size", self.block_size, "tokens in one KV block", at_least(1));
    visit("memory_utilization", self.memory_utilization,
          "share of the device's memory the engine may fill", between(0.01, 1));
    visit("reserved_memory", self.reserved_memory,
          "context, captured graphs and communication buffers of one device", non_negative);
  }
};

}  // namespace engine
