#include "engine/step/step_time.h"

#include <algorithm>

#include "engine/comm/collective_time.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/power.h"

namespace engine {
namespace {

struct OpTime {
  Seconds time;
  Flops flops;
  Bytes bytes;
  Bound bound = Bound::compute;
  Algorithm algorithm = Algorithm::none;
  Tier tier = Tier::roofline;
  bool extrapolated = false;
  double low = 1;
  double high = 1;
  Savings saved;
};

OpTime from_kernel(const KernelTime& kernel) {
  return {.time = kernel.time,
          .flops = kernel.flops,
          .bytes = kernel.bytes,
          .bound = kernel.bound(),
          .tier = kernel.tier,
          .extrapolated = kernel.extrapolated,
          .low = kernel.low,
          .high = kernel.high,
          .saved = kernel.saved};
}

OpTime from_collective(const CollectiveTime& time) {
  Savings saved;
  saved[Bound::network] = time.total();
  return {.time = time.total(),
          .bytes = time.bytes,
          .bound = Bound::network,
          .algorithm = time.algorithm,
          .tier = time.tier,
          .extrapolated = time.extrapolated,
          .low = time.low,
          .high = time.high,
          .saved = saved};
}

OpTime op_time(const PlannedOp& planned, const StepContext& context) {
  if (const auto* op = std::get_if<Collective>(&planned.op)) {
    return from_collective(
        collective_time(*op, context.fabric, context.device, context.calibration));
  }
  if (const auto* op = std::get_if<ExpertExchange>(&planned.op)) {
    return from_collective(exchange_time(*op, context.fabric, context.device, context.calibration));
  }
  KernelTime kernel = kernel_time(planned.family, planned.op, context.device, context.calibration);
  sustain(kernel, planned.op, context.device);
  return from_kernel(kernel);
}

bool is_attention(Family family) {
  return family == Family::attn_prefill || family == Family::attn_decode ||
         family == Family::mla_prefill || family == Family::mla_decode;
}

// What the host adds to a step whose kernels are timed, and what the whole step would save.
void add_host(StepTime& step, std::int64_t sequences, LaunchMode mode, const HostSettings& host) {
  const DeviceTime& device = step.device;
  step.host = host_time(device.total(), device.launches, sequences, mode, host);
  step.saved =
      step_savings(device.saved, device.total(),
                   host_line({.launches = device.launches, .sequences = sequences}, mode, host));
}

}  // namespace

void DeviceTime::add(const DeviceTime& other, double times) {
  compute += other.compute * times;
  attention += other.attention * times;
  communication += other.communication * times;
  saved.add(other.saved, times);
  flops += other.flops * times;
  bytes += other.bytes * times;
  launches += other.launches * times;
  tier = std::min(tier, other.tier);
  extrapolated = extrapolated || other.extrapolated;
}

DeviceTime device_time(const OpList& ops, const StepContext& context, Phase phase,
                       std::vector<KernelRow>* rows) {
  DeviceTime sum;
  for (const PlannedOp& planned : ops) {
    const OpTime time = op_time(planned, context);
    const Seconds all_calls = time.time * planned.calls;
    const Flops flops = time.flops * planned.calls;
    const Bytes bytes = time.bytes * planned.calls;
    if (time.bound == Bound::network) {
      sum.communication += all_calls;
      sum.extrapolated = sum.extrapolated || time.extrapolated;
    } else {
      (is_attention(planned.family) ? sum.attention : sum.compute) += all_calls;
      sum.flops += flops;
      sum.bytes += bytes;
      sum.tier = std::min(sum.tier, time.tier);
      sum.extrapolated = sum.extrapolated || time.extrapolated;
    }
    sum.saved.add(time.saved, planned.calls);
    sum.launches += planned.calls;
    if (rows != nullptr) {
      rows->push_back({.phase = phase,
                       .op = planned.name,
                       .family = planned.family,
                       .algorithm = time.algorithm,
                       .bound = time.bound,
                       .tier = time.tier,
                       .extrapolated = time.extrapolated,
                       .low = all_calls * time.low,
                       .high = all_calls * time.high,
                       .calls = planned.calls,
                       .time = all_calls,
                       .flops = flops,
                       .bytes = bytes});
      rows->back().saved.add(time.saved, planned.calls);
    }
  }
  return sum;
}

void add_host_rows(const HostTime& host, double launches, double steps, Phase phase,
                   std::vector<KernelRow>& rows) {
  const double low = host.low, high = host.high;
  if (host.gap.value > 0) {
    rows.push_back({.phase = phase,
                    .op = OpName::gap,
                    .family = Family::gap,
                    .bound = Bound::host,
                    .low = host.gap * low,
                    .high = host.gap * high,
                    .calls = launches,
                    .time = host.gap});
  }
  const Seconds waiting = host.launch + host.between;
  if (waiting.value > 0) {
    rows.push_back({.phase = phase,
                    .op = OpName::host,
                    .family = Family::host,
                    .bound = Bound::host,
                    .low = waiting * low,
                    .high = waiting * high,
                    .calls = steps,
                    .time = waiting});
  }
}

StepTime step_time(BatchShape batch, const StepContext& context, Phase phase,
                   std::vector<KernelRow>* rows) {
  const bool decode_only = batch.prefill_tokens == 0;
  const std::int64_t sequences = batch.prefill_sequences + batch.decode_sequences;
  const LaunchMode mode = launch_mode(decode_only, batch.decode_sequences, context.host);
  if (mode == LaunchMode::replay) {
    batch.padding = captured_batch(batch.decode_sequences, context.host) - batch.decode_sequences;
  }
  OpList ops;
  token_ops(context.shard, batch, ops);
  attention_ops(context.shard, batch, ops);
  StepTime time;
  time.device = device_time(ops, context, phase, rows);
  add_host(time, sequences, mode, context.host);
  if (rows != nullptr) add_host_rows(time.host, time.device.launches, 1, phase, *rows);
  return time;
}

StepTime decode_time(std::int64_t sequences, std::int64_t context, std::int64_t steps,
                     const StepContext& step, std::vector<KernelRow>* rows) {
  StepTime sum;
  if (steps <= 0) return sum;
  const std::int64_t window = step.shard.model->window;
  const LaunchMode mode = launch_mode(true, sequences, step.host);
  BatchShape batch;
  batch.decode_sequences = batch.sampled = sequences;
  if (mode == LaunchMode::replay) batch.padding = captured_batch(sequences, step.host) - sequences;

  // Only attention changes from step to step: everything else is timed once.
  OpList ops;
  std::vector<KernelRow> fixed_rows;
  token_ops(step.shard, batch, ops);
  const DeviceTime fixed = device_time(ops, step, Phase::decode, &fixed_rows);

  std::vector<KernelRow> attention_rows, one_step;
  for (std::int64_t i = 0; i < steps; ++i) {
    step.charge(kWorkOfAStep);
    BatchShape growing;
    add_decode(growing, sequences, context + i, window);
    ops.clear();
    attention_ops(step.shard, growing, ops);
    one_step.clear();
    StepTime one;
    one.device = fixed;
    one.device.add(device_time(ops, step, Phase::decode, &one_step), 1);
    add_host(one, sequences, mode, step.host);
    sum.add(one);
    merge_rows(one_step, attention_rows);
  }
  if (rows != nullptr) {
    for (KernelRow& row : fixed_rows) row.add(KernelRow(row), double(steps - 1));
    merge_rows(fixed_rows, *rows);
    merge_rows(attention_rows, *rows);
    add_host_rows(sum.host, sum.device.launches, double(steps), Phase::decode, *rows);
  }
  return sum;
}

}  // namespace engine
