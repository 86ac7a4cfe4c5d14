// What lies in a device's memory, and how many tokens of KV cache fit beside it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/units.h"
#include "engine/hardware/device.h"
#include "engine/model/model_ops.h"

namespace engine {

// What an engine's share of the memory is a share of.
enum class MemoryShare : std::uint8_t {
  whole,         // the device's memory; the model counts against it
  rest,          // what the model and its buffers leave
  model_and_kv,  // the device's memory, for weights and KV alone: buffers have what is outside
};
constexpr std::array<std::string_view, 3> enum_names(MemoryShare) {
  return {"whole", "rest", "model_and_kv"};
}

struct MemoryBudget {
  double utilization = 0.9;  // share of the memory that may be filled
  MemoryShare of = MemoryShare::whole;
  Bytes reserved;                 // context, graphs, communication buffers
  Bytes beside{0};                // weights of other models on the device
  std::int64_t step_tokens = 1;   // most tokens in one step
  std::int64_t step_sampled = 1;  // most sequences sampled in one step
  Bytes per_logit{4};             // held for each logit of that many sequences
};

// Terms of one device: the fullest one of the pipeline.
struct Footprint {
  Bytes weights;
  Bytes activations;
  Bytes reserved;
  Bytes budget;  // what may be filled
  // Left for the KV cache; negative when the model itself does not fit.
  Bytes left() const { return budget - weights - activations - reserved; }
};

Footprint footprint_of(const ModelShard& shard, const Device& device, const MemoryBudget& budget);

// KV cache of one sequence of `context` tokens on one device (the fullest stage).
Bytes kv_bytes(const ModelShard& shard, double context);

// As messages about memory say it: "79.65 GB".
std::string in_gb(Bytes bytes);

}  // namespace engine
