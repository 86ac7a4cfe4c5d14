// What evaluating one point gives: whether it works, its figures, and where the time went.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/base/tier.h"
#include "engine/step/kernel_row.h"

namespace engine {

enum class Status : std::uint8_t {
  ok,
  infeasible,   // cannot work on this hardware or with this parallelism
  unsupported,  // the engine does not model it yet
};
constexpr std::array<std::string_view, 3> enum_names(Status) {
  return {"ok", "infeasible", "unsupported"};
}

// A figure that a task does not produce stays NaN and becomes null in the tables.
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Figures of a point. The unit of a column follows from the member's type.
struct Metrics {
  Seconds step_time{kNoValue};
  Seconds ttft{kNoValue};
  Seconds tpot{kNoValue};
  Seconds e2e{kNoValue};
  Seconds compute_time{kNoValue};
  Seconds attention_time{kNoValue};
  Seconds communication_time{kNoValue};
  Seconds host_time{kNoValue};
  Seconds gap_time{kNoValue};
  TokensPerSecond output{kNoValue};
  TokensPerSecond total{kNoValue};
  TokensPerSecond per_device{kNoValue};
  double model_flops_utilization = kNoValue;
  double memory_bandwidth_utilization = kNoValue;
  double devices = kNoValue;
  double parameters = kNoValue;
  Bytes weights{kNoValue};
  Bytes kv_cache{kNoValue};
  Bytes kv_per_token{kNoValue};
  Bytes activations{kNoValue};
  Bytes reserved{kNoValue};
  Bytes memory_used{kNoValue};
  Bytes memory_free{kNoValue};
  double kv_capacity_tokens = kNoValue;
  double max_batch = kNoValue;
  double price_usd_per_mtok = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("step_time", self.step_time, "time of the step");
    visit("ttft", self.ttft, "time to first token");
    visit("tpot", self.tpot, "time per output token after the first, mean");
    visit("e2e", self.e2e, "from arrival to the last token");
    visit("compute_time", self.compute_time, "in kernels other than attention and collectives");
    visit("attention_time", self.attention_time, "in attention kernels");
    visit("communication_time", self.communication_time, "in collectives that nothing hides");
    visit("host_time", self.host_time, "the device waits for the host");
    visit("gap_time", self.gap_time, "idle between kernels of a graph");
    visit("output", self.output, "generated tokens, all replicas");
    visit("total", self.total, "prompt and generated tokens, all replicas");
    visit("per_device", self.per_device, "prompt and generated tokens, per device");
    visit("model_flops_utilization", self.model_flops_utilization,
          "arithmetic of the model over the devices' peak");
    visit("memory_bandwidth_utilization", self.memory_bandwidth_utilization,
          "bytes moved over the devices' peak");
    visit("devices", self.devices, "devices in use");
    visit("parameters", self.parameters, "parameters of the model");
    visit("weights", self.weights, "weights on the fullest device");
    visit("kv_cache", self.kv_cache, "KV cache in use on the fullest device");
    visit("kv_per_token", self.kv_per_token, "KV cache of one token on one device");
    visit("activations", self.activations, "activation peak on one device");
    visit("reserved", self.reserved, "context, graphs and communication buffers on one device");
    visit("memory_used", self.memory_used, "everything on the fullest device");
    visit("memory_free", self.memory_free, "left of the share the engine may fill");
    visit("kv_capacity_tokens", self.kv_capacity_tokens,
          "tokens the KV cache can hold, per replica");
    visit("max_batch", self.max_batch, "sequences of this length that fit, per replica");
    visit("price_usd_per_mtok", self.price_usd_per_mtok, "rent of the devices per million tokens");
  }
};

struct Outcome {
  Status status = Status::ok;
  std::string reason;
  Bound bound = Bound::compute;  // what most of the time waits for
  Tier tier = Tier::roofline;    // the least founded tier among the kernels
  bool extrapolated = false;
  Metrics metrics;
  std::vector<KernelRow> kernels;
};

}  // namespace engine
