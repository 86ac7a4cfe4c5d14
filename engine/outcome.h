// What evaluating one point gives: whether it works, its figures, and where the time went.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/refusal.h"
#include "engine/base/tier.h"
#include "engine/base/units.h"
#include "engine/serving/saturation.h"
#include "engine/serving/serving_rows.h"
#include "engine/step/kernel_row.h"

namespace engine {

enum class Status : std::uint8_t {
  ok,
  infeasible,   // cannot work on this hardware or with this parallelism
  unsupported,  // the engine does not model it yet
  failed,       // the evaluation broke off, or gave figures that cannot be true
};
constexpr std::array<std::string_view, 4> enum_names(Status) {
  return {"ok", "infeasible", "unsupported", "failed"};
}

// A figure that a task does not produce stays NaN and becomes null in the tables.
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Figures of a point. The unit of a column follows from the member's type.
struct Metrics {
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
  TokensPerSecond output{kNoValue};
  TokensPerSecond output_low{kNoValue};
  TokensPerSecond output_high{kNoValue};
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
  DollarsPerSecond rent{kNoValue};
  double price_usd_per_mtok = kNoValue;
  double price_usd_per_mtok_prompt = kNoValue;
  double price_usd_per_mtok_output = kNoValue;
  Seconds ttft_p50{kNoValue};
  Seconds ttft_p90{kNoValue};
  Seconds ttft_p95{kNoValue};
  Seconds ttft_p99{kNoValue};
  Seconds tpot_p50{kNoValue};
  Seconds tpot_p90{kNoValue};
  Seconds tpot_p95{kNoValue};
  Seconds tpot_p99{kNoValue};
  Seconds itl{kNoValue};
  Seconds itl_p50{kNoValue};
  Seconds itl_p90{kNoValue};
  Seconds itl_p95{kNoValue};
  Seconds itl_p99{kNoValue};
  Seconds e2e_p50{kNoValue};
  Seconds e2e_p90{kNoValue};
  Seconds e2e_p95{kNoValue};
  Seconds e2e_p99{kNoValue};
  Seconds queue{kNoValue};
  Seconds queue_p50{kNoValue};
  Seconds queue_p90{kNoValue};
  Seconds queue_p95{kNoValue};
  Seconds queue_p99{kNoValue};
  RequestsPerSecond offered{kNoValue};
  RequestsPerSecond throughput{kNoValue};
  RequestsPerSecond throughput_low{kNoValue};
  RequestsPerSecond throughput_high{kNoValue};
  RequestsPerSecond goodput{kNoValue};
  RequestsPerSecond capacity{kNoValue};
  TokensPerSecond output_per_user{kNoValue};
  TokensPerSecond total_per_user{kNoValue};
  TokensPerSecond output_per_device{kNoValue};
  double slo_attainment = kNoValue;
  double slo_met = kNoValue;
  double slo_probability = kNoValue;
  double requests_finished = kNoValue;
  double requests_refused = kNoValue;
  double preemptions = kNoValue;
  double recomputed_tokens = kNoValue;
  double prefix_hit_rate = kNoValue;
  double batch_mean = kNoValue;
  double concurrency = kNoValue;
  double utilization = kNoValue;
  double kv_blocks = kNoValue;
  double kv_use = kNoValue;
  double kv_peak = kNoValue;
  double kv_waste = kNoValue;
  double steps = kNoValue;
  Seconds makespan{kNoValue};
  double capacity_monotone = kNoValue;
  Seconds measured_from{kNoValue};
  Seconds measured_until{kNoValue};
  double requests_measured = kNoValue;
  double steady = kNoValue;
  double precision_met = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("step_time", self.step_time, "time of the step");
    visit("ttft", self.ttft, "time to first token");
    visit("tpot", self.tpot, "time per output token after the first, mean");
    visit("e2e", self.e2e, "from arrival to the last token");
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
          "time in kernels other than attention and collectives");
    visit("attention_time", self.attention_time, "time in attention kernels");
    visit("communication_time", self.communication_time, "time in collectives that nothing hides");
    visit("host_time", self.host_time, "time in which the device waits for the host");
    visit("gap_time", self.gap_time, "idle time between kernels");
    visit("output", self.output,
          "generated tokens a second, all replicas; task serve: in the measured part");
    visit("output_low", self.output_low,
          "lower end of the 90% interval of generated tokens (served loads with output.intervals)");
    visit("output_high", self.output_high,
          "upper end of the 90% interval of generated tokens (served loads with output.intervals)");
    visit("total", self.total,
          "prompt and generated tokens, all replicas; task serve: in the measured part, cached "
          "prompt "
          "tokens included, recomputed ones once");
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
    visit("rent", self.rent,
          "rent of all devices in use; null: device.rent is not stated, so there are no prices");
    visit("price_usd_per_mtok", self.price_usd_per_mtok,
          "rent of all devices in use per million tokens, prompt and generated ones together");
    visit("price_usd_per_mtok_prompt", self.price_usd_per_mtok_prompt,
          "the whole rent per million prompt tokens; generated ones count nothing");
    visit("price_usd_per_mtok_output", self.price_usd_per_mtok_output,
          "the whole rent per million generated tokens; prompt tokens count nothing");
    visit("ttft_p50", self.ttft_p50, "task serve: time to first token, p50");
    visit("ttft_p90", self.ttft_p90, "task serve: time to first token, p90");
    visit("ttft_p95", self.ttft_p95, "task serve: time to first token, p95");
    visit("ttft_p99", self.ttft_p99, "task serve: time to first token, p99");
    visit("tpot_p50", self.tpot_p50, "task serve: time per output token after the first, p50");
    visit("tpot_p90", self.tpot_p90, "task serve: time per output token after the first, p90");
    visit("tpot_p95", self.tpot_p95, "task serve: time per output token after the first, p95");
    visit("tpot_p99", self.tpot_p99, "task serve: time per output token after the first, p99");
    visit("itl", self.itl, "task serve: time between two tokens, mean");
    visit("itl_p50", self.itl_p50, "task serve: time between two tokens, p50");
    visit("itl_p90", self.itl_p90, "task serve: time between two tokens, p90");
    visit("itl_p95", self.itl_p95, "task serve: time between two tokens, p95");
    visit("itl_p99", self.itl_p99, "task serve: time between two tokens, p99");
    visit("e2e_p50", self.e2e_p50, "task serve: from arrival to the last token, p50");
    visit("e2e_p90", self.e2e_p90, "task serve: from arrival to the last token, p90");
    visit("e2e_p95", self.e2e_p95, "task serve: from arrival to the last token, p95");
    visit("e2e_p99", self.e2e_p99, "task serve: from arrival to the last token, p99");
    visit("queue", self.queue, "task serve: from arrival to the first step it is part of, mean");
    visit("queue_p50", self.queue_p50,
          "task serve: from arrival to the first step it is part of, p50");
    visit("queue_p90", self.queue_p90,
          "task serve: from arrival to the first step it is part of, p90");
    visit("queue_p95", self.queue_p95,
          "task serve: from arrival to the first step it is part of, p95");
    visit("queue_p99", self.queue_p99,
          "task serve: from arrival to the first step it is part of, p99");
    visit("offered", self.offered, "task serve: requests that arrive in the measured part");
    visit("throughput", self.throughput, "task serve: requests finished in the measured part");
    visit(
        "throughput_low", self.throughput_low,
        "lower end of the 90% interval of requests finished (served loads with output.intervals)");
    visit(
        "throughput_high", self.throughput_high,
        "upper end of the 90% interval of requests finished (served loads with output.intervals)");
    visit("goodput", self.goodput,
          "task serve: requests finished in the measured part, within the limits of slo");
    visit("capacity", self.capacity, "task serve: highest rate that meets capacity.slo");
    visit("output_per_user", self.output_per_user,
          "task serve: generated tokens of one user, between the first and the last");
    visit("total_per_user", self.total_per_user,
          "task serve: prompt and generated tokens of one user, from arrival to the last token");
    visit("output_per_device", self.output_per_device, "task serve: generated tokens, per device");
    visit("slo_attainment", self.slo_attainment,
          "task serve: share of the measured requests within the limits of slo");
    visit("slo_met", self.slo_met,
          "task serve: 1 when every stated percentile is within its limit");
    visit("slo_probability", self.slo_probability,
          "task serve, output.intervals: probability that slo_met is 1, as far as kernel times are "
          "known");
    visit("requests_finished", self.requests_finished,
          "task serve: requests answered, over the whole run");
    visit("requests_refused", self.requests_refused,
          "task serve: requests that could never fit, over the whole run");
    visit("preemptions", self.preemptions,
          "task serve: times a running request was put back, over the whole run");
    visit("recomputed_tokens", self.recomputed_tokens,
          "task serve: tokens whose KV was lost by preemption, over the whole run");
    visit("prefix_hit_rate", self.prefix_hit_rate,
          "task serve: share of prompt tokens found in the cache, over the whole run");
    visit("batch_mean", self.batch_mean,
          "task serve: sequences in a step, mean over the steps of the whole run");
    visit("concurrency", self.concurrency, "task serve: requests inside, mean over the whole run");
    visit("utilization", self.utilization,
          "task serve: share of the time a step was running, over the whole run");
    visit("kv_blocks", self.kv_blocks, "KV blocks of a replica");
    visit("kv_use", self.kv_use,
          "task serve: share of the KV cache with tokens in it, mean over the whole run");
    visit("kv_peak", self.kv_peak,
          "task serve: largest share of KV blocks in use, over the whole run");
    visit("kv_waste", self.kv_waste,
          "task serve: share of the room held by decodes that had no token in it, over the whole "
          "run");
    visit("steps", self.steps, "task serve: engine steps of the whole run");
    visit("makespan", self.makespan,
          "task serve: length of the whole run: from the start to the last answer that counts");
    visit("capacity_monotone", self.capacity_monotone,
          "task serve: 1 when no lower rate that was tried missed capacity.slo");
    visit(
        "measured_from", self.measured_from,
        "task serve: end of the warm-up; rates, and latencies of requests that arrive, are counted "
        "from here");
    visit("measured_until", self.measured_until,
          "task serve: end of the measured part, as a rule the last arrival");
    visit("requests_measured", self.requests_measured,
          "task serve: answered requests that arrived in the measured part: latencies are theirs");
    visit(
        "steady", self.steady,
        "task serve: 1 when the measured part is of a system that had filled up and keeps up with "
        "its load; 0 for overload, traces, curves and load.measure: whole");
    visit("precision_met", self.precision_met,
          "task serve: 1 when the throughput is known to 2% (95% interval from batch means), and "
          "each limit of slo to 2% or met or missed beyond doubt; null for whole runs");
  }
};

struct Outcome {
  Status status = Status::ok;
  ReasonClass reason_class = ReasonClass::none;
  std::string reason;
  Bound bound = Bound::compute;  // what saves most time if it is free
  Tier tier = Tier::roofline;    // the least founded tier among the kernels
  bool extrapolated = false;
  Saturation saturation = Saturation::none;
  Metrics metrics;
  std::vector<KernelRow> kernels;
  std::vector<RequestRow> requests;   // only where output.requests asks for them
  std::vector<TimelineRow> timeline;  // only where output.timeline does

  void refuse(Status why, Refusal refusal) {
    status = why;
    reason_class = refusal.reason_class;
    reason = std::move(refusal.text);
  }
};

// Rows of an outcome that are written to a table of their own, beside points. A new table is a row struct
// with a field list, a member of Outcome and a line of the list below.
template <class Row>
struct DetailTable {
  std::string_view name;
  std::vector<Row> Outcome::*rows;
};
constexpr std::tuple kDetailTables{
    DetailTable{"kernels", &Outcome::kernels},
    DetailTable{"requests", &Outcome::requests},
    DetailTable{"timeline", &Outcome::timeline},
};

}  // namespace engine
