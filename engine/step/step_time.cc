#include "engine/step/step_time.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/comm/collective_time.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/power.h"
#include "engine/step/overlap.h"
#include "engine/step/stand_ins.h"

namespace engine {
namespace {

KernelRow collective_row(const CollectiveTime& time, const StepContext& context, double calls) {
  const Seconds all_calls = time.total() * (calls * context.links_longer);
  KernelRow row{.algorithm = time.algorithm,
                .bound = Bound::network,
                .tier = time.tier,
                .extrapolated = time.extrapolated,
                .work = {.calls = calls,
                         .time = all_calls,
                         .low = all_calls * time.low,
                         .high = all_calls * time.high,
                         .bytes = time.bytes * calls,
                         .energy = power_at_rest(context.device) * all_calls}};
  row.work.saved[Bound::network] = all_calls;
  return row;
}

// No more than memory carries while it has part in a kernel: the rest is found in the cache.
Bytes from_memory(const KernelTime& time, const Device& device) {
  return std::min(time.bytes, device.memory_bandwidth * std::min(time.memory, time.time));
}

KernelRow kernel_row(const KernelTime& time, Joules energy, const Device& device, double calls) {
  const Seconds all_calls = time.time * calls;
  KernelRow row{.bound = time.bound(),
                .tier = time.tier,
                .extrapolated = time.extrapolated,
                .work = {.calls = calls,
                         .time = all_calls,
                         .low = all_calls * time.low,
                         .high = all_calls * time.high,
                         .flops = time.flops * calls,
                         .bytes = time.bytes * calls,
                         .from_memory = from_memory(time, device) * calls,
                         .energy = energy * calls}};
  row.work.saved.add(time.saved, calls);
  return row;
}

// Of each call no more than `least` adds to the step; the rest passes beside something else. That is no stream of a group: streams do not
// share memory's bandwidth there, and what this runs beside may be as long as other replicas' tokens make it.
void hide_floor(Seconds least, const Device& device, KernelRow& row) {
  Work& work = row.work;
  const Seconds adds = std::min(work.time, least * work.calls);
  const double share = work.time.value > 0 ? adds / work.time : 0;
  work.hidden = work.time - adds;
  work.low *= share;
  work.high *= share;
  for (Seconds& part : work.saved.by_part) part *= share;
  draw_beside(work.hidden, device, work.energy);
}

// An operation at another clock.
class PlannedAgain final : public Reclocked {
 public:
  PlannedAgain(const PlannedOp& planned, const Calibration* calibration)
      : planned_(planned), calibration_(calibration) {}
  KernelTime on(const Device& slower) const override {
    return kernel_time(planned_.family, planned_.op, slower, calibration_);
  }

 private:
  const PlannedOp& planned_;
  const Calibration* calibration_;
};

// One kernel of a pass, which is held to the power limit with the others.
KernelRow row_of_pass(const KernelTime& time, const Reclocked& again, const PlannedOp& planned,
                      const Device& device) {
  const Drawn drawn = drawn_by(time, planned.op, device);
  KernelRow row = kernel_row(time, drawn.total(), device, planned.calls);
  if (!states_power(device)) return row;
  row.work.clocked = clocked_time(time, again, device) * planned.calls;
  row.work.by_busy = drawn.busy * planned.calls;
  row.work.by_memory = drawn.memory * planned.calls;
  return row;
}

// All calls of an op, on its own.
KernelRow op_row(const PlannedOp& planned, const StepContext& context) {
  const Device& device = context.device;
  if (const auto* op = std::get_if<Collective>(&planned.op)) {
    return collective_row(collective_time(*op, context.fabric, device, context.calibration),
                          context, planned.calls);
  }
  if (const auto* op = std::get_if<ExpertExchange>(&planned.op)) {
    return collective_row(exchange_time(*op, context.fabric, device, context.calibration), context,
                          planned.calls);
  }
  KernelTime time = kernel_time(planned.family, planned.op, device, context.calibration);
  const PlannedAgain again(planned, context.calibration);
  KernelRow row;
  if (context.power_limit == PowerLimit::passes) {
    row = row_of_pass(time, again, planned, device);
  } else {
    const Seconds burst = time.time;
    const Joules energy = sustain(time, again, planned.op, device).energy;
    row = kernel_row(time, energy, device, planned.calls);
    row.work.limited = (time.time - burst) * planned.calls;
  }
  if (planned.hides_floor) hide_floor(time.least, device, row);
  return row;
}

// All calls of an op, of which one may be known.
KernelRow row_of_calls(const PlannedOp& planned, const StepContext& context, CallRows* known) {
  if (known == nullptr) return op_row(planned, context);
  KernelRow row = known->next(planned, [&] {
    PlannedOp one = planned;
    one.calls = 1;
    return op_row(one, context);
  });
  Work all;
  all.add(row.work, planned.calls);
  row.work = all;
  return row;
}

KernelRow named_row(const PlannedOp& planned, const StepContext& context, Phase phase,
                    CallRows* known) {
  KernelRow row = row_of_calls(planned, context, known);
  row.phase = phase;
  row.op = planned.name;
  row.family = planned.family;
  return row;
}

// Ops that run beside others: first each on its own, then what they add together.
template <class Take>
void each_stream_row(const OpList& ops, const StepContext& context, Phase phase, CallRows* known,
                     Take&& take) {
  constexpr std::size_t most = 32;
  std::array<StreamRow, most> made;
  std::size_t count = 0;
  for (const PlannedOp& planned : ops) {
    if (planned.beside.group == 0) continue;
    check(planned.beside.stream < kMostStreams, "a group has that many streams");
    check(count < most, "a step has few operations beside others");
    made[count++] = {planned.beside, named_row(planned, context, phase, known)};
  }
  const std::span<StreamRow> streams(made.data(), count);
  overlap(streams, context.device);
  for (StreamRow& stream : streams) {
    draw_beside(stream.row.work.hidden, context.device, stream.row.work.energy);
    take(stream.row);
  }
}

// Hands the row of each op to take(row), with what it hides behind others taken into account.
template <class Take>
void each_row(const OpList& ops, const StepContext& context, Phase phase, CallRows* known,
              Take&& take) {
  bool streams = false;
  if (known != nullptr) known->begin_list();
  for (const PlannedOp& planned : ops) {
    if (planned.beside.group != 0) {
      streams = true;
    } else {
      take(named_row(planned, context, phase, known));
    }
  }
  if (streams) each_stream_row(ops, context, phase, known, take);
}

// What the host adds to a step whose kernels are timed, and what the whole step would save.
void add_host(StepTime& step, StepWork work, LaunchMode mode, const HostSettings& host) {
  const Seconds device = step.device.total();
  work.launches = step.device.launches();
  step.host = host_time(device, work, mode, host);
  step.saved = step_savings(step.device.saved(), device, host_line(work, mode, host));
}

// What `steps` steps would save that differ in context only: the host's maximum is taken of their mean.
Savings mean_step_savings(const DeviceTime& all, double steps, StepWork work, LaunchMode mode,
                          const HostSettings& host) {
  Savings mean, saved;
  mean.add(all.saved(), 1 / steps);
  work.launches = all.launches() / steps;
  saved.add(step_savings(mean, all.total() / steps, host_line(work, mode, host)), steps);
  return saved;
}

}  // namespace

void DeviceTime::add(const KernelRow& row, double times) {
  const bool network = row.bound == Bound::network;
  (network ? communication : is_attention(row.family) ? attention : compute).add(row.work, times);
  if (!network) tier = std::min(tier, row.tier);
  extrapolated = extrapolated || row.extrapolated;
}

void DeviceTime::add(const DeviceTime& other, double times) {
  compute.add(other.compute, times);
  attention.add(other.attention, times);
  communication.add(other.communication, times);
  tier = std::min(tier, other.tier);
  extrapolated = extrapolated || other.extrapolated;
}

Savings DeviceTime::saved() const {
  Savings sum = compute.saved;
  sum.add(attention.saved);
  sum.add(communication.saved);
  return sum;
}

DeviceTime device_time(const OpList& ops, const StepContext& context, Phase phase,
                       std::vector<KernelRow>* rows, CallRows* known) {
  DeviceTime sum;
  each_row(ops, context, phase, known, [&](const KernelRow& row) {
    sum.add(row);
    if (rows != nullptr) rows->push_back(row);
  });
  return sum;
}

void add_host_rows(const HostTime& host, const HostCalls& calls, Watts power, Phase phase,
                   std::vector<KernelRow>& rows) {
  const auto add = [&](OpName op, Family family, double count, Seconds time) {
    if (time.value <= 0) return;
    rows.push_back({.phase = phase,
                    .op = op,
                    .family = family,
                    .bound = Bound::host,
                    .work = {.calls = count,
                             .time = time,
                             .low = time * host.low,
                             .high = time * host.high,
                             .energy = power * time}});
  };
  add(OpName::gap, Family::gap, calls.launches, host.gap);
  add(OpName::host, Family::host, calls.steps, host.launch + host.between);
}

void add_wait_row(Seconds time, double steps, Phase phase, std::vector<KernelRow>& rows) {
  if (time.value <= 0) return;
  rows.push_back({.phase = phase,
                  .op = OpName::neighbour,
                  .family = Family::host,
                  .bound = Bound::host,
                  .work = {.calls = steps, .time = time, .low = time, .high = time}});
}

StepTime ops_time(const OpList& ops, StepWork work, LaunchMode mode, const StepContext& context,
                  Phase phase, std::vector<KernelRow>* rows) {
  StepTime time;
  if (rows != nullptr) rows->reserve(rows->size() + ops.size() + 2);  // two rows of the host
  time.device = device_time(ops, context, phase, rows);
  add_host(time, work, mode, context.host);
  if (rows != nullptr) {
    add_host_rows(time.host, {.launches = time.device.launches(), .steps = 1},
                  power_at_rest(context.device), phase, *rows);
  }
  return time;
}

LaunchMode step_ops(BatchShape batch, const StepContext& context, OpList& ops) {
  const bool decode_only = batch.prefill_tokens == 0;
  const DecodeSize decodes{batch.decode_sequences, batch.decode_queries};
  const LaunchMode mode = launch_mode(decode_only, decodes, context.host);
  if (mode == LaunchMode::replay) {
    batch.padding = captured_tokens(decodes, context.host) - decodes.tokens();
  }
  token_ops(context.shard, batch, ops);
  attention_ops(context.shard, batch, ops);
  return mode;
}

StepTime step_time(const BatchShape& batch, const StepContext& context, Phase phase,
                   std::vector<KernelRow>* rows) {
  OpList ops;
  const LaunchMode mode = step_ops(batch, context, ops);
  const std::int64_t sequences = batch.prefill_sequences + batch.decode_sequences;
  const double kv_tokens = batch.prefill_kv_tokens + batch.decode_kv_tokens;
  const double layers = batch.prefill_tokens > 0 ? double(context.shard.layers.all()) : 0;
  const StepWork work{.layers = layers, .sequences = sequences, .kv_tokens = kv_tokens};
  return ops_time(ops, work, mode, context, phase, rows);
}

StepTime decode_time(const DecodeRun& run, const StepContext& step, Breakdown& rows) {
  StepTime sum;
  if (run.steps <= 0) return sum;
  const std::int64_t window = step.shard.model->window;
  BatchShape batch;
  batch.decode_sequences = run.sequences;
  batch.decode_queries = run.pace.queries;
  batch.adapters = run.adapters;
  const DecodeSize decodes{batch.decode_sequences, batch.decode_queries};
  batch.sampled = decodes.tokens();
  const LaunchMode mode = launch_mode(true, decodes, step.host);
  if (mode == LaunchMode::replay) {
    batch.padding = captured_tokens(decodes, step.host) - decodes.tokens();
  }

  // Only attention changes from step to step: everything else is timed once.
  OpList ops;
  std::vector<KernelRow> one_step;
  token_ops(step.shard, batch, ops);
  const double steps = double(run.steps) * run.times;
  const DeviceTime fixed = device_time(ops, step, Phase::decode, &one_step);
  const Seconds fixed_time = fixed.total();
  for (const KernelRow& row : one_step) rows.add(row, steps);

  // Attention of the steps that stand for all, step after step.
  struct Timed {
    HostTime host;
    double kv_tokens = 0;
    std::size_t rows_end = 0;
  };
  std::vector<Timed> timed;
  std::vector<KernelRow> attention_rows;
  const std::vector<StandIn> list = stand_ins(run.pace, run.steps, [&](std::int64_t i) {
    step.charge(kWorkOfAStep);
    BatchShape growing;
    add_decode(growing, run.sequences, run.context + run.pace.made_by(i), window);
    growing.decode_queries = run.pace.queries;
    ops.clear();
    attention_ops(step.shard, growing, ops);
    Seconds time = fixed_time;
    StepWork work{.launches = fixed.launches(),
                  .sequences = run.sequences,
                  .kv_tokens = growing.decode_kv_tokens};
    each_row(ops, step, Phase::decode, nullptr, [&](const KernelRow& row) {
      time += row.work.exposed();
      work.launches += row.work.calls;
      attention_rows.push_back(row);
    });
    timed.push_back(
        {host_time(time, work, mode, step.host), work.kv_tokens, attention_rows.size()});
    return (time + timed.back().host.total()).value;
  });
  Breakdown attention;
  double kv_tokens = 0;  // of one step of each kind, summed
  std::size_t next = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const double times = list[i].stands_for;
    kv_tokens += timed[i].kv_tokens * times;
    sum.host.add(timed[i].host, times * run.times);
    for (; next < timed[i].rows_end; ++next) {
      if (times > 0) attention.add(attention_rows[next], times * run.times);
    }
  }
  sum.device.add(fixed, steps);
  for (const KernelRow& row : attention.rows()) {
    sum.device.add(row);
    rows.add(row);
  }
  const StepWork mean{.sequences = run.sequences, .kv_tokens = kv_tokens / double(run.steps)};
  sum.saved = mean_step_savings(sum.device, steps, mean, mode, step.host);
  one_step.clear();
  add_host_rows(sum.host, {.launches = sum.device.launches(), .steps = steps},
                power_at_rest(step.device), Phase::decode, one_step);
  for (const KernelRow& row : one_step) rows.add(row);
  return sum;
}

}  // namespace engine
