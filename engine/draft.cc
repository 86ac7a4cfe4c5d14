#include "engine/draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace engine {
namespace {

Refusal unsupported(std::string text) { return {ReasonClass::unsupported, std::move(text)}; }

// Equal but for what things are called, and what no figure follows from.
bool same_device(Device one, const Device& other) {
  one.name = other.name;
  one.measured_as = other.measured_as;
  one.vendor = other.vendor;
  one.scale_up.name = other.scale_up.name;
  one.scale_out.name = other.scale_out.name;
  one.host_link.name = other.host_link.name;
  one.idle_power = other.idle_power;
  one.purchase = other.purchase;
  return one == other;
}

std::optional<Refusal> draft_model_problem(const Scenario& scenario) {
  if (!scenario.draft.present) {
    return unsupported(
        "speculation.method draft_model needs a draft: state speculation.draft, the name of a "
        "model");
  }
  const Deployment& draft = scenario.draft.deployment;
  // Sizes that differ by padding are one vocabulary.
  const double own = double(draft.model.vocabulary), main = double(scenario.model.vocabulary);
  if (std::abs(own - main) > 0.01 * main) {
    return unsupported(
        fmt::format("draft.model has {} tokens in its vocabulary and model {}: what one proposes "
                    "means nothing to the other",
                    draft.model.vocabulary, scenario.model.vocabulary));
  }
  if (draft.parallel.pp > 1) return unsupported("a draft in stages (draft.parallel.pp > 1)");
  if (draft.parallel.dp != scenario.parallel.dp) {
    return Refusal{ReasonClass::divisibility,
                   fmt::format("draft.parallel.dp is {} and parallel.dp {}: every replica has a "
                               "draft of its own",
                               draft.parallel.dp, scenario.parallel.dp)};
  }
  if (!drafts_apart(scenario) && draft.parallel.tp > scenario.parallel.tp) {
    return Refusal{ReasonClass::divisibility,
                   fmt::format("draft.parallel.tp is {} and parallel.tp {}: the draft shares the "
                               "devices of its replica",
                               draft.parallel.tp, scenario.parallel.tp)};
  }
  return std::nullopt;
}

std::optional<Refusal> speculation_problem(const Scenario& scenario) {
  if (scenario.parallel.pp > 1) {
    return unsupported("speculation in a pipeline (parallel.pp > 1) is not modelled");
  }
  if (scenario.speculation.acceptance.empty()) {
    return unsupported(
        "speculation.acceptance is not stated: it depends on the draft and on what is written; "
        "0.6 to 0.9 is common");
  }
  if (scenario.speculation.method != SpeculationMethod::draft_model) return std::nullopt;
  return draft_model_problem(scenario);
}

// One layer more of the main model, behind the embedding and before the output head that it shares.
Deployment added_layer(const Scenario& scenario) {
  Deployment layer = scenario;
  layer.model.layers = 1;
  layer.model.moe.first_dense_layers = 0;
  layer.model.moe.every = 1;
  layer.model.window = 0;
  return layer;
}

// The draft model, in the engine of the main one.
Deployment draft_model(const Scenario& scenario) {
  Deployment draft = scenario.draft.deployment;
  draft.serving = scenario.serving;
  return draft;
}

Bytes weights_of(const Deployed& deployed) {
  return footprint_of(deployed.shard, deployed.spec->device, {}).weights;
}

// Weights that come to lie beside the main model's.
Bytes weights_beside(const Draft& draft, const Deployed& main) {
  const ModelSpec& model = *main.shard.model;
  const double tp = double(main.shard.parallel.tp);
  const double hidden = double(model.hidden);
  const double square = hidden * hidden, head = hidden * double(model.vocabulary) / tp;
  const double products =
      double(draft.products.heads) * (square + head) + (draft.products.joins > 0 ? 2 * square : 0);
  Bytes weights{2 * products};
  if (!draft.deployed || draft.apart) return weights;
  weights += weights_of(*draft.deployed);
  if (draft.products.joins > 0) {
    // An added layer shares both ends of the main model.
    const ParameterCounts counts = parameter_counts(draft.own->model);
    weights -= Bytes{2 * (counts.embedding + counts.output) / tp};
  }
  return weights;
}

std::optional<Refusal> deploy_model(const Scenario& scenario, const Calibrations& calibrations,
                                    double copies, Draft& draft) {
  const bool layer = scenario.speculation.method == SpeculationMethod::mtp;
  draft.own.emplace(layer ? added_layer(scenario) : draft_model(scenario));
  if (auto problem =
          deploy(*draft.own, scenario.calibration, calibrations, copies, draft.deployed.emplace()))
    return in_role("draft", std::move(*problem));
  draft.host = draft.own->host;
  return std::nullopt;
}

}  // namespace

bool speculates(const Scenario& scenario) {
  if (!scenario.speculation.on()) return false;
  if (scenario.task == Task::step) return scenario.step.phase == StepPhase::decode;
  return scenario.task == Task::request || scenario.task == Task::serve;
}

bool drafts_apart(const Scenario& scenario) {
  if (!speculates(scenario) || !scenario.draft.present) return false;
  if (scenario.speculation.method != SpeculationMethod::draft_model) return false;
  const Deployment& draft = scenario.draft.deployment;
  return !same_device(draft.device, scenario.device) ||
         !(fabric_of(draft.cluster, draft.device) == fabric_of(scenario.cluster, scenario.device));
}

DraftStep Draft::step(const Deployed& main, WorkMeter& work) const {
  DraftStep step;
  if (deployed) {
    const Deployed& ready = *deployed;
    step.model.emplace(
        StepContext{ready.spec->device, ready.fabric, ready.shard, host, ready.calibration, &work});
    step.steps = tokens;
  }
  if (products.heads > 0 || products.joins > 0) {
    step.beside.emplace(
        StepContext{main.spec->device, main.fabric, main.shard, host, main.calibration, &work});
    step.products = products;
  }
  step.fixed = fixed;
  step.per_sequence = per_sequence;
  return step;
}

std::optional<Refusal> ready_draft(const Scenario& scenario, const Calibrations& calibrations,
                                   double copies, Deployed& main, Draft& draft) {
  const Speculation& settings = scenario.speculation;
  if (auto problem = speculation_problem(scenario)) return problem;
  const auto acceptance = read_acceptance(settings.acceptance);
  if (!acceptance) return unsupported("speculation.acceptance is no list of numbers from 0 to 1");
  draft.tokens = settings.tokens;
  draft.expected = expected_tokens(*acceptance, draft.tokens);
  draft.pace = expected_pace(draft.expected, draft.tokens);
  draft.apart = drafts_apart(scenario);
  draft.host = scenario.host;
  switch (settings.method) {
    case SpeculationMethod::none:
      break;
    case SpeculationMethod::ngram:
      draft.per_sequence = settings.lookup_time;
      break;
    case SpeculationMethod::heads:
      draft.products.heads = draft.tokens;
      break;
    case SpeculationMethod::mtp:
      draft.products.joins = draft.tokens;
      [[fallthrough]];
    case SpeculationMethod::draft_model:
      if (auto problem = deploy_model(scenario, calibrations, copies, draft)) return problem;
      break;
  }
  draft.host.step_overhead = settings.draft_overhead;
  draft.host.step_per_sequence = draft.host.front_end_per_token = Seconds{0};
  if (draft.apart) {
    // Tokens go there and proposals come back: too small to count, but for the way.
    const LinkRates& there = draft.deployed->fabric.scale_out;
    if (there.bandwidth.value <= 0 || main.fabric.scale_out.bandwidth.value <= 0) {
      return Refusal{ReasonClass::links,
                     "no link joins the draft's devices with the main ones: both need "
                     "device.scale_out or cluster.scale_out"};
    }
    draft.fixed = std::max(there.latency, main.fabric.scale_out.latency) * 2;
  }
  main.guest.weights = weights_beside(draft, main);
  if (draft.deployed && !draft.apart) main.guest.shard = &draft.deployed->shard;
  return std::nullopt;
}

}  // namespace engine
