#include "engine/draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/comm/sends.h"

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
  one.power_spread = other.power_spread;
  one.energy_scale = other.energy_scale;
  one.power_assumed = other.power_assumed;
  one.rent_assumed = other.rent_assumed;
  one.purchase = other.purchase;
  one.shared_memory = other.shared_memory;
  SystolicArray grid = other.array;
  grid.rows = one.array.rows;
  grid.columns = one.array.columns;
  if (grid.on()) grid.dataflow = one.array.dataflow;
  one.array = grid;
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
  // Beside the main model it is whole on the last stage, and as many stages as that has are taken for none stated.
  const bool inherited = !drafts_apart(scenario) && draft.parallel.pp == scenario.parallel.pp;
  if (draft.parallel.pp > 1 && !inherited) {
    return unsupported("a draft in stages (draft.parallel.pp > 1)");
  }
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
  const Speculation& settings = scenario.speculation;
  if (settings.acceptance.empty() && settings.acceptance_file.empty()) {
    return unsupported(
        "speculation.acceptance is not stated: it depends on the draft and on what is written; "
        "0.6 to 0.9 is common");
  }
  if (settings.method == SpeculationMethod::self && settings.draft_window == 0) {
    return unsupported(
        "speculation.method self needs speculation.draft_window: over all tokens the model would "
        "propose what it would write anyway, in the same time");
  }
  if (settings.method != SpeculationMethod::draft_model) return std::nullopt;
  return draft_model_problem(scenario);
}

// Tokens of a step that one sequence may have: beyond them attention is one of prompts.
constexpr std::int64_t kMostInTree = 1024;

// Classes of a served load that state none have the acceptance of all.
std::optional<Refusal> read_class_acceptances(const Scenario& scenario, Draft& draft) {
  draft.by_class.fill(draft.acceptance);
  if (scenario.task != Task::serve) return std::nullopt;
  const LoadClasses& classes = scenario.load.classes;
  const auto read = [&](const LoadClass& one, RequestClass which) -> std::optional<Refusal> {
    if (one.share <= 0 || one.acceptance.empty()) return std::nullopt;
    const auto own = read_acceptance(one.acceptance);
    if (!own) {
      return unsupported(fmt::format("load.classes.{}.acceptance is no list of numbers from 0 to 1",
                                     name_of(which)));
    }
    draft.by_class[std::size_t(which)] =
        with_candidates(*own, draft.tree, scenario.speculation.further_candidates);
    draft.classes_differ = true;
    return std::nullopt;
  };
  if (auto problem = read(classes.high, RequestClass::high)) return problem;
  return read(classes.low, RequestClass::low);
}

std::optional<Refusal> read_proposals(const Scenario& scenario, const Resources& resources,
                                      Draft& draft) {
  const Speculation& settings = scenario.speculation;
  const auto tree = read_tree(settings.tree);
  if (!tree) return unsupported("speculation.tree is no list of whole numbers from 1 to 64");
  draft.depth = settings.tokens;
  draft.tree = *tree;
  draft.tokens = tree->tokens(draft.depth);
  if (settings.method == SpeculationMethod::ngram && draft.tokens > draft.depth) {
    return unsupported("speculation.tree with method ngram: a lookup finds one continuation");
  }
  if (draft.tokens > kMostInTree) {
    return unsupported(fmt::format("speculation.tree has {} tokens in {} positions: {} at most",
                                   draft.tokens, draft.depth, kMostInTree));
  }
  std::optional<Acceptance> stated;
  if (settings.acceptance_file.empty()) {
    stated = read_acceptance(settings.acceptance);
    if (!stated) return unsupported("speculation.acceptance is no list of numbers from 0 to 1");
  } else {
    const auto file = resources.acceptances.find(settings.acceptance_file);
    if (file == resources.acceptances.end()) {
      return unsupported("speculation.acceptance_file was not loaded: " + settings.acceptance_file);
    }
    const auto rows = file->second.by_workload.find(settings.workload);
    if (rows == file->second.by_workload.end()) {
      std::string known;
      for (const auto& [name, unused] : file->second.by_workload) {
        known += (known.empty() ? "" : ", ") + name;
      }
      return unsupported(
          fmt::format("speculation.acceptance_file has no workload '{}': state "
                      "speculation.workload, one of {}",
                      settings.workload, known));
    }
    stated = rows->second;
  }
  draft.acceptance = with_candidates(*stated, draft.tree, settings.further_candidates);
  if (auto problem = read_class_acceptances(scenario, draft)) return problem;
  draft.expected = draft.classes_differ ? expected_over_classes(draft, scenario.load, draft.depth)
                                        : expected_tokens(draft.acceptance, draft.depth);
  draft.pace = expected_pace(draft.expected, draft.tokens);
  return std::nullopt;
}

// One layer more of the main model, behind the embedding and before the output head that it shares.
Deployment added_layer(const Scenario& scenario) {
  Deployment layer = scenario;
  layer.model.layers = 1;
  layer.model.mlp_layers = 0;
  layer.model.moe.first_dense_layers = 0;
  layer.model.moe.every = 1;
  layer.model.window = 0;
  // In a hybrid it attends.
  if (layer.model.scan.attention_layers > 0) layer.model.scan = {};
  return layer;
}

// The draft model, in the engine of the main one.
Deployment draft_model(const Scenario& scenario) {
  Deployment draft = scenario.draft.deployment;
  draft.serving = scenario.serving;
  return draft;
}

Deployment proposing_model(const Scenario& scenario) {
  const Speculation& settings = scenario.speculation;
  Deployment draft = scenario;
  if (settings.method == SpeculationMethod::mtp) draft = added_layer(scenario);
  if (settings.method == SpeculationMethod::draft_model) draft = draft_model(scenario);
  if (settings.method != SpeculationMethod::self) draft.parallel.pp = 1;
  if (settings.draft_window > 0) {
    ModelSpec& model = draft.model;
    model.window =
        model.window > 0 ? std::min(model.window, settings.draft_window) : settings.draft_window;
    model.full_attention_every = 0;
  }
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
  if (!draft.deployed || draft.apart || draft.is_main) return weights;
  weights += weights_of(*draft.deployed);
  if (draft.products.joins > 0) {
    // An added layer shares both ends of the main model, or in a pipeline the one that lies on its stage.
    const ParameterCounts counts = parameter_counts(draft.own->model);
    const double embedding = main.shard.parallel.pp > 1 ? 0 : counts.embedding;
    weights -= Bytes{2 * (embedding + counts.output) / tp};
  }
  return weights;
}

std::optional<Refusal> deploy_model(const Scenario& scenario, const Calibrations& calibrations,
                                    double copies, Draft& draft) {
  draft.own.emplace(proposing_model(scenario));
  if (auto problem =
          deploy(*draft.own, scenario.calibration, calibrations, copies, draft.deployed.emplace()))
    return in_role("draft", std::move(*problem));
  draft.host = draft.own->host;
  return std::nullopt;
}

}  // namespace

double expected_over_classes(const Draft& draft, const Load& load, std::int64_t positions) {
  double tokens = 0, steps = 0;
  const auto add = [&](double share, std::int64_t output, RequestClass which) {
    const double made = share * double(output > 0 ? output : load.lengths.output);
    tokens += made;
    steps += made / expected_tokens(draft.by_class[std::size_t(which)], positions);
  };
  const LoadClasses& classes = load.classes;
  add(classes.high.share, classes.high.output, RequestClass::high);
  add(classes.low.share, classes.low.output, RequestClass::low);
  add(std::max(0.0, 1 - classes.high.share - classes.low.share), 0, RequestClass::normal);
  return tokens / steps;
}

bool speculates(const Scenario& scenario) {
  if (!scenario.speculation.on()) return false;
  if (scenario.task == Task::step) return scenario.step.phase == StepPhase::decode;
  return scenario.task == Task::request || scenario.task == Task::serve;
}

std::int64_t proposed_tokens(const Scenario& scenario) {
  if (!speculates(scenario)) return 0;
  const std::int64_t depth = scenario.speculation.tokens;
  if (scenario.speculation.tree.empty()) return depth;
  const auto tree = read_tree(scenario.speculation.tree);
  return tree ? tree->tokens(depth) : depth;
}

bool drafts_apart(const Scenario& scenario) {
  if (!speculates(scenario) || !scenario.draft.present) return false;
  if (scenario.speculation.method != SpeculationMethod::draft_model) return false;
  const Deployment& draft = scenario.draft.deployment;
  return !same_device(draft.device, scenario.device) ||
         !(fabric_of(draft.cluster, draft.device) == fabric_of(scenario.cluster, scenario.device));
}

DraftStep Draft::step(const Deployed& main, WorkMeter& work, std::int64_t positions) const {
  DraftStep step;
  step.reads_prompts = !is_main;
  step.has_adapters = is_main;
  step.place = place();
  if (deployed) {
    const Deployed& ready = *deployed;
    step.model.emplace(
        StepContext{ready.spec->device, ready.fabric, ready.shard, host, ready.calibration, &work});
    for (std::int64_t i = 0; i < positions; ++i) {
      const std::int64_t queries = i == 0 ? 1 : tree.width(i - 1);
      if (step.rounds.empty() || step.rounds.back().queries != queries) {
        step.rounds.push_back({.queries = queries, .before = tree.tokens(i)});
      }
      ++step.rounds.back().steps;
    }
  }
  if (positions == 0) return step;
  if (products.heads > 0 || products.joins > 0) {
    step.beside.emplace(
        StepContext{main.spec->device, main.fabric, main.shard, host, main.calibration, &work});
    if (products.heads > 0) step.products.heads = positions;
    if (products.joins > 0) step.products.joins = positions;
  }
  step.fixed = fixed;
  step.per_sequence = per_sequence;
  return step;
}

std::optional<Refusal> ready_draft(const Scenario& scenario, const Resources& resources,
                                   double copies, Deployed& main, Draft& draft) {
  const Speculation& settings = scenario.speculation;
  if (auto problem = speculation_problem(scenario)) return problem;
  if (auto problem = read_proposals(scenario, resources, draft)) return problem;
  draft.apart = drafts_apart(scenario);
  draft.host = scenario.host;
  switch (settings.method) {
    case SpeculationMethod::none:
      break;
    case SpeculationMethod::ngram:
      draft.per_sequence = settings.lookup_time;
      break;
    case SpeculationMethod::heads:
      draft.products.heads = draft.depth;
      break;
    case SpeculationMethod::mtp:
      draft.products.joins = draft.depth;
      [[fallthrough]];
    case SpeculationMethod::self:
    case SpeculationMethod::draft_model:
      draft.is_main = settings.method == SpeculationMethod::self;
      if (auto problem = deploy_model(scenario, resources.calibrations, copies, draft))
        return problem;
      break;
  }
  draft.host.step_overhead = settings.draft_overhead;
  draft.host.step_per_sequence = draft.host.front_end_per_message = Seconds{0};
  draft.host.step_per_kv_token = Seconds{0};
  if (draft.apart) {
    // Tokens go there and proposals come back: too small to count, but for the way.
    const Deployed& there = *draft.deployed;
    const SendWay out{main.fabric.scale_out}, back{there.fabric.scale_out};
    if (!out.possible() || !back.possible()) {
      return Refusal{ReasonClass::links,
                     "no link joins the draft's devices with the main ones: both need "
                     "device.scale_out or cluster.scale_out"};
    }
    draft.fixed = std::max(sends_over(out, main.spec->device, main.calibration).line.start,
                           sends_over(back, there.spec->device, there.calibration).line.start) *
                  2;
  }
  main.guest.weights = weights_beside(draft, main);
  main.states = draft.tokens + 1;
  if (draft.deployed) draft.deployed->states = main.states;
  if (draft.deployed && !draft.apart && !draft.is_main) main.guest.shard = &draft.deployed->shard;
  return std::nullopt;
}

namespace {

// The point as it would be if the readers answered, too.
Scenario with_readers_as_main(const Scenario& scenario) {
  Scenario point = scenario;
  const Deployment& readers = scenario.prefill.deployment;
  static_cast<Deployment&>(point) = readers;
  Deployment& draft = point.draft.deployment;
  draft.device = readers.device;
  draft.cluster = readers.cluster;
  draft.host = readers.host;
  // As many devices of its replica as in the main deployment, or all of them as there.
  const std::int64_t tp = draft.parallel.tp;
  const bool all = tp == scenario.parallel.tp;
  const std::int64_t ep = draft.parallel.ep;
  draft.parallel = readers.parallel;
  if (all) return point;
  draft.parallel.tp = std::min(tp, readers.parallel.tp);
  draft.parallel.ep = std::min(ep, draft.parallel.tp * readers.parallel.dp);
  return point;
}

}  // namespace

std::optional<Refusal> ready_beside_readers(const Scenario& scenario, const Resources& resources,
                                            double copies, Deployed& readers, Draft& draft) {
  const Scenario point = with_readers_as_main(scenario);
  if (auto problem = ready_draft(point, resources, copies, readers, draft)) return problem;
  // Nothing is verified there, so there is one state.
  readers.states = draft.deployed->states = 1;
  return std::nullopt;
}

}  // namespace engine
