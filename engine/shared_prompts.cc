#include "engine/shared_prompts.h"

#include "engine/deploy.h"
#include "engine/draft.h"
#include "engine/model/context_ops.h"

namespace engine {
namespace {

using Problem = std::optional<Refusal>;

Problem reader_problem(const Deployment& reader) {
  const Parallelism& parallel = reader.parallel;
  if (parallel.cp == 1) return std::nullopt;
  if (parallel.ep > parallel.tp) {
    return Refusal{ReasonClass::unsupported,
                   "devices that read a prompt together (parallel.cp > 1) and exchange tokens with "
                   "other replicas' experts (parallel.ep > parallel.tp) are modelled for task "
                   "train only"};
  }
  return sharing_problem(reader.model, parallel, reader.serving.context, "serving.context");
}

Problem main_problem(const Scenario& scenario) {
  if (scenario.parallel.cp == 1) return std::nullopt;
  if (scenario.task == Task::denoise) return reader_problem(scenario);
  if (scenario.task != Task::step) {
    return Refusal{ReasonClass::unsupported,
                   "parallel.cp > 1: devices read prompts together, and do not generate together; "
                   "state prefill.parallel.cp, a deployment that reads prompts and hands its KV "
                   "cache over"};
  }
  if (scenario.step.phase == StepPhase::decode) {
    return Refusal{ReasonClass::unsupported,
                   "parallel.cp > 1: a decode step has one token a sequence, which devices cannot "
                   "share; step.phase: prefill works"};
  }
  return reader_problem(scenario);
}

}  // namespace

std::optional<Refusal> shared_prompts_problem(const Scenario& scenario) {
  if (scenario.task == Task::train) return std::nullopt;
  if (auto problem = main_problem(scenario)) return problem;
  const bool reads_apart = scenario.task != Task::step && scenario.prefill.present;
  if (reads_apart) {
    if (auto problem = reader_problem(scenario.prefill.deployment)) {
      return in_role("prefill", std::move(*problem));
    }
  }
  if (drafts_apart(scenario) && scenario.draft.deployment.parallel.cp > 1) {
    return in_role("draft", {ReasonClass::unsupported,
                             "parallel.cp > 1: tokens that are proposed cannot be shared"});
  }
  return std::nullopt;
}

}  // namespace engine
