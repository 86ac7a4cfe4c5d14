#include "engine/feasibility.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/comm/links_needed.h"
#include "engine/kernels/gemm.h"
#include "engine/model/model_ops.h"

namespace engine {
namespace {

using Problem = std::optional<Refusal>;

Problem split_problem(const Scenario& scenario, const Fabric&) {
  auto problem = shard_problem(scenario.model, scenario.parallel);
  if (!problem) return std::nullopt;
  return Refusal{ReasonClass::divisibility, std::move(*problem)};
}

Problem format_problem(const Scenario& scenario, const Fabric&) {
  const Device& device = scenario.device;
  const Dtype dtype = compute_dtype(scenario.quant.weights, scenario.quant.activations);
  if (matrix_peak(device, dtype).value <= 0) {
    return Refusal{ReasonClass::format,
                   fmt::format("the device has no {0} matrix arithmetic (device.peak.{0} is 0)",
                               name_of(dtype))};
  }
  const Dtype wide = matrix_peak(device, Dtype::bf16).value > 0 ? Dtype::bf16 : Dtype::fp16;
  if (matrix_peak(device, wide).value > 0) return std::nullopt;
  return Refusal{ReasonClass::format,
                 "the device has no 16-bit matrix arithmetic, which attention and logits need"};
}

Problem cluster_problem(const Scenario& scenario, const Fabric& fabric) {
  const double devices = devices_in_use(scenario);
  if (fabric.most_devices == 0 || devices <= double(fabric.most_devices)) return std::nullopt;
  return Refusal{ReasonClass::cluster,
                 fmt::format("needs {} devices; the cluster has {}", devices, fabric.most_devices)};
}

Problem link_problem(const Scenario& scenario, const Fabric& fabric) {
  return links_problem(scenario.parallel, fabric);
}

// Sequences may not outgrow what the model is made for.
Problem too_long(const char* what, std::int64_t tokens, const ModelSpec& model) {
  if (model.max_context == 0 || tokens <= model.max_context) return std::nullopt;
  return Refusal{ReasonClass::context, fmt::format("{} ({}) exceeds model.max_context ({})", what,
                                                   tokens, model.max_context)};
}

Problem decode_problem(const StepShape& step, const ModelSpec& model) {
  if (auto problem = too_long("step.context", step.context, model)) return problem;
  const std::int64_t longest = step.longest_context;
  if (longest == 0) return std::nullopt;
  const auto contradiction = [](std::string text) {
    return Refusal{ReasonClass::context, std::move(text)};
  };
  if (longest < step.context) {
    return contradiction(
        fmt::format("step.longest_context ({}) is less than step.context, the mean ({})", longest,
                    step.context));
  }
  // The others have at least a token each.
  const std::int64_t most = step.batch * (step.context - 1) + 1;
  if (longest > most) {
    return contradiction(
        fmt::format("step.longest_context ({}) is more than {} sequences of {} tokens on average "
                    "allow ({})",
                    longest, step.batch, step.context, most));
  }
  return too_long("step.longest_context", longest, model);
}

Problem context_problem(const Scenario& scenario, const Fabric&) {
  const ModelSpec& model = scenario.model;
  switch (scenario.task) {
    case Task::step:
      if (scenario.step.phase == StepPhase::decode) return decode_problem(scenario.step, model);
      return too_long("step.cached + step.prompt", scenario.step.cached + scenario.step.prompt,
                      model);
    case Task::request:
      return too_long("request.cached + request.prompt + request.output",
                      scenario.request.cached + scenario.request.prompt + scenario.request.output,
                      model);
    case Task::serve:
      // Single requests that are too long are refused and counted; here it is all of them.
      if (scenario.load.arrivals == ArrivalKind::trace ||
          scenario.load.lengths.distribution != LengthKind::fixed) {
        return std::nullopt;
      }
      return too_long("load.lengths.prompt + load.lengths.output",
                      std::int64_t(scenario.load.lengths.prompt + scenario.load.lengths.output),
                      model);
  }
  return std::nullopt;
}

}  // namespace

double devices_in_use(const Scenario& scenario) {
  const double copies = scenario.task == Task::serve ? double(scenario.serving.replicas) : 1;
  return double(scenario.parallel.devices()) * copies;
}

std::optional<Refusal> feasibility_problem(const Scenario& scenario, const Fabric& fabric) {
  for (const auto problem_of :
       {split_problem, format_problem, cluster_problem, link_problem, context_problem}) {
    if (auto problem = problem_of(scenario, fabric)) return problem;
  }
  return std::nullopt;
}

}  // namespace engine
