#include "engine/scan_problem.h"

namespace engine {
namespace {

bool shares_prompts(const Scenario& scenario) {
  return scenario.parallel.cp > 1 ||
         (scenario.prefill.present && scenario.prefill.deployment.parallel.cp > 1);
}

}  // namespace

std::optional<Refusal> scan_problem(const Scenario& scenario) {
  if (!scenario.model.scans() || !shares_prompts(scenario)) return std::nullopt;
  return Refusal{
      ReasonClass::unsupported,
      "not modelled where a model has scan layers (model.scan.state above 0): a sequence "
      "read by several devices (parallel.cp > 1), who would pass states on"};
}

}  // namespace engine
