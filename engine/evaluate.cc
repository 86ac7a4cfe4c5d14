#include "engine/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/chosen_calibration.h"
#include "engine/engine_kernels.h"
#include "engine/feasibility.h"
#include "engine/kernels/gemm.h"
#include "engine/memory/footprint.h"
#include "engine/report_price.h"
#include "engine/serve_task.h"
#include "engine/sound_figures.h"
#include "engine/step/interval.h"
#include "engine/step/step_time.h"

namespace engine {
namespace {

std::string in_gb(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB", bytes.value / 1e9);
  return text;
}

// What to say of a calibration that is not there.
std::string missing(const Scenario& scenario) {
  const CalibrationWish wish = calibration_wish(scenario);
  const std::string tier = "calibration.tier " + std::string(name_of(wish.tier)) + ": ";
  if (wish.tier != TierChoice::measured) {
    return wish.engine.empty() ? tier + "no such calibration is loaded"
                               : "serving.kernels: no calibration of the engine '" +
                                     std::string(wish.engine) + "' is loaded";
  }
  return wish.name.empty() ? tier + "no calibration was measured on such a device"
                           : tier + "there is no calibration '" + std::string(wish.name) + "'";
}

// The tokens and sequences a point holds in memory at once, and the largest step it takes.
struct Residency {
  std::int64_t sequences = 1;
  std::int64_t context = 1;
  std::int64_t step_tokens = 1;
  std::int64_t sampled = 1;
};

Residency serving_residency(const Scenario& scenario, const Resources& resources) {
  const TypicalRequest typical = typical_request(scenario, resources);
  const ServingSettings& serving = scenario.serving;
  const bool chunked = policy_of(serving.policy).budget == StepBudget::chunk;
  return {.sequences = 1,
          .context = std::max<std::int64_t>(1, std::int64_t(typical.prompt + typical.output)),
          .step_tokens = chunked ? std::max(serving.chunk, serving.max_num_seqs)
                                 : serving.max_num_batched_tokens,
          .sampled = serving.max_num_seqs};
}

// An engine that serves sets memory aside for the sampler's worst case; a step on its own has the
// logits in 32 bits.
Bytes per_logit_of(const Scenario& scenario) {
  return scenario.task == Task::serve ? scenario.serving.logit_memory : Bytes{4};
}

Residency residency_of(const Scenario& scenario, const Resources& resources) {
  if (scenario.task == Task::serve) return serving_residency(scenario, resources);
  if (scenario.task == Task::request) {
    const RequestShape& request = scenario.request;
    return {.sequences = request.batch,
            .context = request.cached + request.prompt + request.output,
            .step_tokens =
                std::min(request.batch * request.prompt, scenario.serving.max_num_batched_tokens),
            .sampled = request.batch};
  }
  const StepShape& step = scenario.step;
  if (step.phase == StepPhase::decode) {
    return {.sequences = step.batch,
            .context = step.context,
            .step_tokens = step.batch,
            .sampled = step.batch};
  }
  return {.sequences = step.batch,
          .context = step.cached + step.prompt,
          .step_tokens = step.batch * step.prompt,
          .sampled = step.batch};
}

void report_memory(const Footprint& footprint, const ModelShard& shard, const Residency& residency,
                   Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const Bytes sequence = kv_bytes(shard, double(residency.context));
  const Bytes used_kv = sequence * double(residency.sequences);
  metrics.weights = footprint.weights;
  metrics.activations = footprint.activations;
  metrics.reserved = footprint.reserved;
  metrics.kv_cache = used_kv;
  metrics.kv_per_token = sequence / double(residency.context);
  metrics.memory_used = footprint.weights + footprint.activations + footprint.reserved + used_kv;
  metrics.memory_free = footprint.left() - used_kv;
  const double fit = std::max(0.0, footprint.left() / sequence);
  metrics.kv_capacity_tokens = std::floor(fit * double(residency.context));
  metrics.max_batch = std::floor(fit);
  if (footprint.left().value < 0) {
    outcome.refuse(Status::infeasible,
                   {ReasonClass::memory,
                    "the model does not fit: weights " + in_gb(footprint.weights) +
                        ", activations " + in_gb(footprint.activations) + " and reserve " +
                        in_gb(footprint.reserved) + " exceed the budget of " +
                        in_gb(footprint.budget) + " by " + in_gb(footprint.left() * -1.0)});
  } else if (used_kv > footprint.left()) {
    outcome.refuse(
        Status::infeasible,
        {ReasonClass::memory, "the KV cache does not fit: " + std::to_string(residency.sequences) +
                                  " x " + std::to_string(residency.context) + " tokens need " +
                                  in_gb(used_kv) + ", " + in_gb(footprint.left()) +
                                  " are left beside weights of " + in_gb(footprint.weights)});
  }
}

// The tokens of one replica's steps.
struct TokenCounts {
  double prompt = 0;
  double generated = 0;
  double all = 0;  // that went through the model
};

// Time and work of everything the point did, and what follows from them.
void report_time(const Scenario& scenario, const StepTime& time, const TokenCounts& tokens,
                 Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const Seconds total = time.total();
  const double devices = double(scenario.parallel.devices());
  // Replicas work side by side, and a full pipeline has one batch in every stage.
  const double copies = double(scenario.parallel.dp * scenario.parallel.pp);
  metrics.compute_time = time.device.compute.exposed();
  metrics.attention_time = time.device.attention.exposed();
  metrics.communication_time = time.device.communication.exposed();
  metrics.gap_time = time.host.gap;
  metrics.host_time = time.host.launch + time.host.between;
  metrics.output = TokensPerSecond{tokens.generated * copies / total.value};
  metrics.total = TokensPerSecond{tokens.all * copies / total.value};
  metrics.per_device = metrics.total / devices;
  // The kernels of the stages in turn add up to one device's work over the pipeline's latency.
  const Dtype dtype = compute_dtype(scenario.quant.weights, scenario.quant.activations);
  metrics.model_flops_utilization =
      time.device.flops() / total / matrix_peak(scenario.device, dtype);
  metrics.memory_bandwidth_utilization =
      time.device.memory_bytes() / total / scenario.device.memory_bandwidth;
  report_price(scenario.device, TokensPerSecond{tokens.prompt * copies / total.value}, metrics);
  outcome.bound = time.saved.largest();
  outcome.tier = time.device.tier;
  outcome.extrapolated = time.device.extrapolated;
}

void evaluate_step(const Scenario& scenario, const StepContext& context, Outcome& outcome) {
  const StepShape& step = scenario.step;
  const bool decode = step.phase == StepPhase::decode;
  BatchShape batch;
  if (decode) {
    add_decode(batch, step.batch, step.context, scenario.model.window);
    if (step.longest_context > 0) batch.decode_longest = double(step.longest_context);
  } else {
    add_prefill(batch, step.batch, step.prompt, step.cached, scenario.model.window);
  }
  batch.sampled = step.batch;
  const StepTime time =
      step_time(batch, context, decode ? Phase::decode : Phase::prefill, &outcome.kernels);
  const Interval interval = interval_of(outcome.kernels);
  outcome.metrics.step_time = time.total();
  outcome.metrics.step_time_low = interval.low;
  outcome.metrics.step_time_high = interval.high;
  const double tokens = double(batch.tokens());
  report_time(scenario, time,
              {.prompt = decode ? 0 : tokens, .generated = double(step.batch), .all = tokens},
              outcome);
}

// Prompts longer than a step's token budget are read in chunks, one after another.
StepTime prompt_time(const Scenario& scenario, const StepContext& context, Breakdown& kernels) {
  const RequestShape& request = scenario.request;
  const std::int64_t budget =
      std::max<std::int64_t>(1, scenario.serving.max_num_batched_tokens / request.batch);
  StepTime sum;
  std::vector<KernelRow> rows;
  for (std::int64_t done = 0; done < request.prompt;) {
    const std::int64_t chunk = std::min(budget, request.prompt - done);
    BatchShape batch;
    add_prefill(batch, request.batch, chunk, request.cached + done, scenario.model.window);
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

void evaluate_request(const Scenario& scenario, const StepContext& context, Outcome& outcome) {
  const RequestShape& request = scenario.request;
  Breakdown kernels;
  const StepTime prompt = prompt_time(scenario, context, kernels);
  // The first token comes out of the prompt's last step; each later step sees one more.
  const StepTime decode = decode_time(request.batch, request.cached + request.prompt + 1,
                                      request.output - 1, context, kernels);
  outcome.kernels = std::move(kernels).take();
  StepTime all = prompt;
  all.add(decode);
  Metrics& metrics = outcome.metrics;
  const Interval first = interval_of(outcome.kernels, Phase::prefill);
  const Interval whole = interval_of(outcome.kernels);
  metrics.ttft = prompt.total();
  metrics.ttft_low = first.low;
  metrics.ttft_high = first.high;
  metrics.e2e = all.total();
  metrics.e2e_low = whole.low;
  metrics.e2e_high = whole.high;
  if (request.output > 1) {
    const double tokens = double(request.output - 1);
    const Interval later = interval_of(outcome.kernels, Phase::decode);
    metrics.tpot = decode.total() / tokens;
    metrics.tpot_low = later.low / tokens;
    metrics.tpot_high = later.high / tokens;
  }
  const double batch = double(request.batch);
  report_time(scenario, all,
              {.prompt = batch * double(request.prompt),
               .generated = batch * double(request.output),
               .all = batch * double(request.output + request.prompt)},
              outcome);
}

// Its memory is used again.
void clear(Outcome& outcome) {
  outcome.status = Status::ok;
  outcome.reason_class = ReasonClass::none;
  outcome.reason.clear();
  outcome.bound = Bound::compute;
  outcome.tier = Tier::roofline;
  outcome.extrapolated = false;
  outcome.metrics = Metrics{};
  outcome.saturation = Saturation::none;
  outcome.kernels.clear();
  outcome.requests.clear();
  outcome.timeline.clear();
}

void evaluate_task(const Scenario& scenario, const Resources& resources, const StepContext& context,
                   Outcome& outcome) {
  switch (scenario.task) {
    case Task::step:
      return evaluate_step(scenario, context, outcome);
    case Task::request:
      return evaluate_request(scenario, context, outcome);
    case Task::serve:
      return evaluate_serve(scenario, resources, context, outcome);
  }
}

void evaluate_point(const Scenario& scenario, const Resources& resources, WorkMeter& work,
                    Outcome& outcome) {
  const Parallelism& parallel = scenario.parallel;
  outcome.metrics.devices = devices_in_use(scenario);
  outcome.metrics.parameters = parameter_counts(scenario.model).total();
  if (parallel.cp > 1) {
    return outcome.refuse(
        Status::unsupported,
        {ReasonClass::unsupported, "context parallelism (parallel.cp > 1) is not modelled"});
  }
  const CalibrationChoice calibration = chosen_calibration(scenario, resources.calibrations);
  if (calibration.missing) {
    return outcome.refuse(Status::unsupported, {ReasonClass::calibration, missing(scenario)});
  }
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  if (auto problem = feasibility_problem(scenario, fabric)) {
    return outcome.refuse(Status::infeasible, std::move(*problem));
  }

  ModelShard shard = shard_of(scenario.model, parallel, scenario.quant);
  choose_kernels(scenario.serving, scenario.device, shard);
  const Residency residency = residency_of(scenario, resources);
  const Footprint footprint = footprint_of(shard, scenario.device,
                                           {.utilization = scenario.serving.memory_utilization,
                                            .of = scenario.serving.memory_share,
                                            .reserved = scenario.serving.reserved_memory,
                                            .step_tokens = residency.step_tokens,
                                            .step_sampled = residency.sampled,
                                            .per_logit = per_logit_of(scenario)});
  report_memory(footprint, shard, residency, outcome);
  if (outcome.status != Status::ok) return;
  evaluate_task(scenario, resources,
                {scenario.device, fabric, shard, scenario.host, calibration.calibration, &work},
                outcome);
}

}  // namespace

void evaluate_into(const Scenario& scenario, const Resources& resources, Outcome& outcome,
                   WorkMeter& work) {
  clear(outcome);
  work.begin_point();
  try {
    evaluate_point(scenario, resources, work, outcome);
    if (outcome.status != Status::ok) return;
    if (auto problem = figures_problem(scenario.task, outcome)) fail(outcome, std::move(*problem));
    return;
  } catch (const WorkExceeded&) {
    fail(outcome, {ReasonClass::budget,
                   fmt::format("takes more than {:g} units of work; --point-budget allows more",
                               work.budget())});
  } catch (const std::bad_alloc&) {
    fail(outcome, {ReasonClass::error, "this machine has not enough memory to evaluate the point"});
  } catch (const std::exception& error) {
    fail(outcome, {ReasonClass::error, error.what()});
  }
  forget_simulation();
}

void evaluate_into(const Scenario& scenario, const Resources& resources, Outcome& outcome) {
  WorkMeter work;
  evaluate_into(scenario, resources, outcome, work);
}

void evaluate_into(const Scenario& scenario, Outcome& outcome) {
  static const Resources none;
  evaluate_into(scenario, none, outcome);
}

Outcome evaluate(const Scenario& scenario, const Resources& resources) {
  Outcome outcome;
  evaluate_into(scenario, resources, outcome);
  return outcome;
}

Outcome evaluate(const Scenario& scenario) { return evaluate(scenario, Resources{}); }

}  // namespace engine
