// The figures of a point that more than one task has, in groups. The unit of a column follows from the member's type.
#pragma once

#include "engine/base/no_value.h"
#include "engine/base/units.h"

namespace engine {

// How long it takes, and what the time goes to.
struct TimeFigures {
  Seconds step_time{kNoValue};
  Seconds ttft{kNoValue};
  Seconds tpot{kNoValue};
  Seconds e2e{kNoValue};
  Seconds step_time_low{kNoValue};
  Seconds step_time_high{kNoValue};
  Seconds ttft_low{kNoValue};
  Seconds ttft_high{kNoValue};
  Seconds tpot_low{kNoValue};
  Seconds tpot_high{kNoValue};
  Seconds e2e_low{kNoValue};
  Seconds e2e_high{kNoValue};
  Seconds compute_time{kNoValue};
  Seconds attention_time{kNoValue};
  Seconds communication_time{kNoValue};
  Seconds host_time{kNoValue};
  Seconds gap_time{kNoValue};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("step_time", self.step_time, "time of the step");
    visit("ttft", self.ttft, "time to first token");
    visit("tpot", self.tpot, "time per output token after the first, mean");
    visit("e2e", self.e2e, "time from arrival to the last token");
    visit("step_time_low", self.step_time_low,
          "lower end of the 90% interval of the time of the step");
    visit("step_time_high", self.step_time_high,
          "upper end of the 90% interval of the time of the step");
    visit("ttft_low", self.ttft_low,
          "lower end of the 90% interval of the time to first token (served loads: of its mean, "
          "with output.intervals)");
    visit("ttft_high", self.ttft_high,
          "upper end of the 90% interval of the time to first token (served loads: of its mean, "
          "with output.intervals)");
    visit("tpot_low", self.tpot_low,
          "lower end of the 90% interval of the time per output token (served loads: of its mean, "
          "with output.intervals)");
    visit("tpot_high", self.tpot_high,
          "upper end of the 90% interval of the time per output token (served loads: of its mean, "
          "with output.intervals)");
    visit("e2e_low", self.e2e_low,
          "lower end of the 90% interval of the time from arrival to the last token (served loads: "
          "of its mean, with output.intervals)");
    visit("e2e_high", self.e2e_high,
          "upper end of the 90% interval of the time from arrival to the last token (served loads: "
          "of its mean, with output.intervals)");
    visit("compute_time", self.compute_time,
          "time in kernels other than attention and collectives; task train: without the "
          "optimizer's");
    visit("attention_time", self.attention_time, "time in attention kernels");
    visit("communication_time", self.communication_time, "time in collectives that nothing hides");
    visit("host_time", self.host_time, "time in which the device waits for the host");
    visit("gap_time", self.gap_time, "idle time between kernels");
  }
};

// Tokens a second, and how much of the devices they use.
struct RateFigures {
  TokensPerSecond output{kNoValue};
  TokensPerSecond output_low{kNoValue};
  TokensPerSecond output_high{kNoValue};
  TokensPerSecond total{kNoValue};
  TokensPerSecond per_device{kNoValue};
  double model_flops_utilization = kNoValue;
  double memory_bandwidth_utilization = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("output", self.output,
          "generated tokens a second, all replicas; task serve: in the measured part");
    visit("output_low", self.output_low,
          "lower end of the 90% interval of generated tokens (served loads with output.intervals)");
    visit("output_high", self.output_high,
          "upper end of the 90% interval of generated tokens (served loads with output.intervals)");
    visit("total", self.total,
          "prompt and generated tokens, all replicas; task serve: in the measured part, cached "
          "prompt tokens included, recomputed ones once");
    visit("per_device", self.per_device, "prompt and generated tokens, per device");
    visit("model_flops_utilization", self.model_flops_utilization,
          "arithmetic of the model over the devices' peak; task train: nothing that is computed "
          "again; with speculation drafts and proposals that do not hold count, too");
    visit("memory_bandwidth_utilization", self.memory_bandwidth_utilization,
          "bytes that the devices' memories moved, without what caches held, over their peak");
  }
};

// Devices, and what lies in their memory.
struct MemoryFigures {
  double devices = kNoValue;
  double foreign_links = kNoValue;
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
  double second_copies = kNoValue;
  double expert_imbalance = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("devices", self.devices, "devices in use");
    visit("foreign_links", self.foreign_links,
          "1: devices of a node are joined by the cluster's links, for which they have no ports "
          "(link families differ); empty: by their own, or by links that any device can use");
    visit("parameters", self.parameters, "parameters of the model");
    visit("weights", self.weights, "weights on the fullest device");
    visit("kv_cache", self.kv_cache,
          "KV cache in use on the fullest device; task serve: all KV blocks, which the engine sets "
          "aside whether or not they are in use (kv_use)");
    visit("kv_per_token", self.kv_per_token, "KV cache of one token on one device");
    visit("activations", self.activations, "activation peak on one device");
    visit("reserved", self.reserved, "context, graphs and communication buffers on one device");
    visit("memory_used", self.memory_used,
          "all memory in use on the fullest device; task serve: or set aside for the KV cache");
    visit("memory_free", self.memory_free,
          "memory that is free on the fullest device, of the share that the engine may fill; below "
          "0: what is lacking, where the point does not fit");
    visit(
        "kv_capacity_tokens", self.kv_capacity_tokens,
        "tokens the KV cache can hold, per replica, in sequences of the mean length: states that a "
        "sequence keeps whatever its length take their room");
    visit("max_batch", self.max_batch,
          "largest batch of this length that fits, per replica, with one in each stage of a "
          "pipeline");
    visit("second_copies", self.second_copies,
          "second copies of experts in use, on all devices that share them (parallel.ep above 1): "
          "as parallel.redundant_experts states or parallel.expert_copies places them");
    visit("expert_imbalance", self.expert_imbalance,
          "tokens that the device with the most popular experts gets over the mean of those that "
          "share them, by model.moe.skew and second copies; chance comes on top, and all wait for "
          "it");
  }
};

// What it costs.
struct PriceFigures {
  DollarsPerSecond rent{kNoValue};
  double price_usd_per_mtok = kNoValue;
  double price_usd_per_mtok_prompt = kNoValue;
  double price_usd_per_mtok_output = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rent", self.rent,
          "rent of all devices in use; null: device.rent is not stated, so there are no prices");
    visit("price_usd_per_mtok", self.price_usd_per_mtok,
          "rent of all devices in use per million tokens, prompt and generated ones together");
    visit("price_usd_per_mtok_prompt", self.price_usd_per_mtok_prompt,
          "the whole rent per million prompt tokens; generated ones count nothing");
    visit("price_usd_per_mtok_output", self.price_usd_per_mtok_output,
          "the whole rent per million generated tokens; prompt tokens count nothing");
  }
};

}  // namespace engine
