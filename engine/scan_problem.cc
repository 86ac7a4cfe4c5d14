#include "engine/scan_problem.h"

#include <string>

#include "engine/draft.h"

namespace engine {
namespace {

bool draft_scans(const Scenario& scenario) {
  return speculates(scenario) && scenario.speculation.method == SpeculationMethod::draft_model &&
         scenario.draft.present && scenario.draft.deployment.model.scans();
}

bool some_model_scans(const Scenario& scenario) {
  return scenario.model.scans() || draft_scans(scenario);
}

bool shares_prompts(const Scenario& scenario) {
  return scenario.parallel.cp > 1 ||
         (scenario.prefill.present && scenario.prefill.deployment.parallel.cp > 1);
}

bool keeps_prefixes(const Scenario& scenario) {
  return scenario.serving.prefix_caching ||
         (scenario.prefill.present && scenario.prefill.deployment.serving.prefix_caching);
}

}  // namespace

std::optional<Refusal> scan_problem(const Scenario& scenario) {
  if (!some_model_scans(scenario)) return std::nullopt;
  const auto unsupported = [](const char* what) {
    return Refusal{ReasonClass::unsupported,
                   "not modelled where a model has scan layers (model.scan.state above 0): " +
                       std::string(what)};
  };
  if (speculates(scenario)) {
    return unsupported(
        "speculation, after which a state has to go back to the last token that held");
  }
  if (shares_prompts(scenario)) {
    return unsupported(
        "a sequence read by several devices (parallel.cp > 1), who would pass states on");
  }
  if (scenario.task == Task::serve && keeps_prefixes(scenario)) {
    return unsupported(
        "serving.prefix_caching: a state is that of a whole prefix, and cannot be cut where two "
        "prompts part");
  }
  return std::nullopt;
}

}  // namespace engine
