#include "engine/tasks/request/request_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/feasibility.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/power.h"
#include "engine/step/interval.h"
#include "engine/step/step_time.h"
#include "engine/tasks/handover.h"

namespace engine {
namespace {

MemoryDemand demand_of(const RequestShape& request, const ServingSettings& serving,
                       std::int64_t context) {
  return {.sequences = request.batch,
          .context = context,
          .step_tokens = std::min(request.batch * request.prompt, serving.max_num_batched_tokens),
          .sampled = request.batch};
}

// Prompts longer than a step's token budget are read in chunks, one after another.
StepTime prompt_time(const RequestShape& request, const Deployment& on, const StepContext& context,
                     Breakdown& kernels) {
  const std::int64_t budget =
      std::max<std::int64_t>(1, on.serving.max_num_batched_tokens / request.batch);
  StepTime sum;
  std::vector<KernelRow> rows;
  for (std::int64_t done = 0; done < request.prompt;) {
    const std::int64_t chunk = std::min(budget, request.prompt - done);
    BatchShape batch;
    add_prefill(batch, request.batch, chunk, request.cached + done, on.model.window);
    done += chunk;
    batch.sampled = done == request.prompt ? request.batch : 0;
    rows.clear();
    context.charge(kWorkOfAStep);
    const StepTime time = step_time(batch, context, Phase::prefill, &rows);
    sum.add(time);
    for (const KernelRow& row : rows) kernels.add(row);
  }
  return sum;
}

// A prefill deployment reads for as many replicas as there are.
std::optional<Refusal> pairing_problem(const Deployment& from, const Deployment& to) {
  if (from.parallel.dp == to.parallel.dp) return std::nullopt;
  return Refusal{ReasonClass::divisibility,
                 fmt::format("prefill.parallel.dp is {} and parallel.dp {}: every replica hands "
                             "its requests to one other",
                             from.parallel.dp, to.parallel.dp)};
}

// The prompts' part of a request, wherever it runs, and the way of its KV cache to the main deployment.
struct PromptPart {
  StepTime time;
  std::optional<KernelRow> carry;
  bool tells_first_token = false;  // only when the KV cache is there

  Seconds carried() const { return carry ? carry->work.time : Seconds{0}; }
};

KernelRow carry_row(Seconds time, Bytes bytes, const Device& to) {
  KernelRow row{.phase = Phase::decode,
                .op = OpName::kv_transfer,
                .family = Family::send_recv,
                .bound = Bound::network,
                .work = {.calls = 1,
                         .time = time,
                         .low = time,
                         .high = time * kRooflineHigh,
                         .bytes = bytes,
                         .energy = power_at_rest(to) * time}};
  row.work.saved[Bound::network] = time;
  return row;
}

std::optional<Refusal> read_prompts(const TaskPoint& point, Breakdown& kernels, PromptPart& part) {
  const Scenario& scenario = point.scenario;
  const RequestShape& request = scenario.request;
  if (!scenario.prefill.present) {
    part.time = prompt_time(request, scenario, point.main.context(point.work), kernels);
    return std::nullopt;
  }
  const Deployment& reader = scenario.prefill.deployment;
  if (auto problem = handover_problem(reader, scenario)) return problem;
  if (auto problem = pairing_problem(reader, scenario)) return problem;
  Deployed deployed;
  if (auto problem =
          deploy(reader, scenario.calibration, point.resources.calibrations, 1, deployed))
    return in_role("prefill", std::move(*problem));
  const double here = devices_of(reader, 1), there = devices_of(scenario, 1);
  if (auto problem = cluster_problem(deployed, here, point.main, there)) return problem;
  const std::int64_t tokens = request.cached + request.prompt;
  const MemoryDemand demand = demand_of(request, reader.serving, tokens);
  if (auto problem = memory_problem(deployed, footprint_of(deployed, demand), demand))
    return in_role("prefill", std::move(*problem));
  Carry carry;
  if (auto problem = carry_of({.transfer = scenario.transfer,
                               .from = deployed,
                               .from_devices = here,
                               .to = point.main,
                               .to_devices = there,
                               .tokens = double(tokens)},
                              carry))
    return problem;
  Breakdown reading;
  part.time = prompt_time(request, reader, deployed.context(point.work), reading);
  for (KernelRow& row : std::move(reading).take()) {
    row.role = DeploymentRole::prefill;
    kernels.add(row);
  }
  if (request.output == 1) return std::nullopt;  // the prompt's last step gives the only token
  part.tells_first_token = carry.tells_first_token;
  const double batch = double(request.batch);
  const Seconds carried = exposed_carry(carry, batch * double(tokens), part.time.total());
  part.carry =
      carry_row(carried, kv_bytes(point.main.shard, double(tokens)) * batch, scenario.device);
  kernels.add(*part.carry);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> request_problem(const Scenario& scenario) {
  const RequestShape& request = scenario.request;
  return too_long("request.cached + request.prompt + request.output",
                  request.cached + request.prompt + request.output, scenario.model);
}

MemoryDemand request_demand(const Scenario& scenario, const Resources&, Scratch&) {
  const RequestShape& request = scenario.request;
  return demand_of(request, scenario.serving, request.cached + request.prompt + request.output);
}

void run_request(const TaskPoint& point, Outcome& outcome) {
  const RequestShape& request = point.scenario.request;
  Breakdown kernels;
  PromptPart prompt;
  if (auto problem = read_prompts(point, kernels, prompt)) {
    return outcome.refuse(std::move(*problem));
  }
  // The first token comes out of the prompt's last step; each later step sees one more.
  const StepTime decode = decode_time(request.batch, request.cached + request.prompt + 1,
                                      request.output - 1, point.main.context(point.work), kernels);
  outcome.kernels = std::move(kernels).take();
  StepTime all = prompt.time;
  all.add(decode);
  if (prompt.carry) {
    all.device.add(*prompt.carry);
    all.saved.add(prompt.carry->work.saved);
  }
  Metrics& metrics = outcome.metrics;
  const Interval first = interval_of(outcome.kernels, Phase::prefill);
  const Interval whole = interval_of(outcome.kernels);
  const Seconds told = prompt.tells_first_token ? prompt.carried() : Seconds{0};
  metrics.ttft = prompt.time.total() + told;
  metrics.ttft_low = first.low + told;
  metrics.ttft_high = first.high + told * kRooflineHigh;
  metrics.e2e = all.total();
  metrics.e2e_low = whole.low;
  metrics.e2e_high = whole.high;
  if (request.output > 1) {
    const double tokens = double(request.output - 1);
    const Interval later = interval_of(outcome.kernels, Phase::decode);
    metrics.tpot = (decode.total() + prompt.carried() - told) / tokens;
    metrics.tpot_low = (later.low - told) / tokens;
    metrics.tpot_high = (later.high - told * kRooflineHigh) / tokens;
  }
  const double batch = double(request.batch);
  report_time(point.scenario, all,
              {.prompt = batch * double(request.prompt),
               .generated = batch * double(request.output),
               .all = batch * double(request.output + request.prompt)},
              outcome);
  if (point.scenario.prefill.present) {
    report_shared_work(
        {{point.scenario.prefill.deployment, prompt.time.device}, {point.scenario, decode.device}},
        all.total(), metrics);
  }
}

std::string request_headline(const Scenario& scenario) {
  const RequestShape& request = scenario.request;
  std::string text = fmt::format("{} request(s): {} prompt tokens after {} cached, {} generated\n",
                                 request.batch, request.prompt, request.cached, request.output);
  if (scenario.prefill.present) {
    const Deployment& reader = scenario.prefill.deployment;
    text +=
        fmt::format("prompts are read on {} x {}\n", reader.parallel.devices(), reader.device.name);
  }
  return text;
}

}  // namespace engine
