#include "engine/tasks/serve/serve_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "engine/base/refusal.h"
#include "engine/feasibility.h"
#include "engine/serving/capacity_search.h"
#include "engine/serving/serving_sim.h"
#include "engine/tasks/serve/adapter_contention.h"
#include "engine/tasks/serve/kv_room.h"
#include "engine/tasks/serve/load_seen.h"
#include "engine/tasks/serve/nothing_measured.h"
#include "engine/tasks/serve/report_fleet.h"
#include "engine/tasks/serve/serve_interval.h"
#include "engine/tasks/serve/serve_log.h"
#include "engine/tasks/serve/serve_pools.h"
#include "engine/tasks/serve/serve_report.h"
#include "engine/tasks/serve/slo_judgement.h"
#include "engine/tasks/serve/typical_request.h"
#include "engine/workload/request_source.h"

namespace engine {

std::uint64_t load_seed(const Scenario& scenario) {
  return mixed_seed(mixed_seed(0, std::uint64_t(scenario.seed)), std::uint64_t(scenario.replicate));
}

namespace {

const Trace* trace_of(const Scenario& scenario, const Resources& resources) {
  return scenario.load.trace.empty() ? nullptr : resources.find_trace(scenario.load.trace);
}

DrawnLoad drawn_load(const Scenario& scenario, const Resources& resources, Scratch& scratch) {
  return {.load = scenario.load,
          .trace = trace_of(scenario, resources),
          .seed = load_seed(scenario),
          .memory = scratch.serving().memory()};
}

// A point set up and ready to be simulated at any level of load.
struct Setting {
  const Scenario& scenario;
  const ServePools& pools;
  const Trace* trace;
  CapacityEstimate capacity;
  Slo judged;              // what runs are judged by
  StepLog* log = nullptr;  // of the run whose figures become rows; null: it is not asked for
  Contention* contention = nullptr;  // found by every run; null: nothing shares adapters
};

// One run of it. Rows besides the figures go to `rows`, where there is one.
struct Run {
  LoadLevel level;
  RunPlan plan;
  RunPurpose purpose = RunPurpose::figures;
  StepScale scale = kAsPredicted;
  Outcome* rows = nullptr;
};

void simulate_pools(const Setting& setting, const Run& run, std::span<const PoolSetup> pools,
                    const Journey& journey, ServingSim& sim) {
  const Scenario& scenario = setting.scenario;
  const Slo& slo = served_slo(scenario);
  sim.run({.pools = pools,
           .journey = journey,
           .encoders = setting.pools.encoders(run.scale),
           .load = scenario.load,
           .trace = setting.trace,
           .slo = slo,
           .judged = &setting.judged,
           .level = run.level,
           .plan = run.plan,
           .purpose = run.purpose,
           .capacity = setting.capacity.requests,
           .seed = load_seed(scenario),
           .scale = run.scale,
           .output = scenario.output,
           .request_rows = run.rows != nullptr ? &run.rows->requests : nullptr,
           .timeline_rows = run.rows != nullptr ? &run.rows->timeline : nullptr,
           .step_log = run.rows != nullptr ? setting.log : nullptr});
}

void simulate(const Setting& setting, const Run& run, ServingSim& sim) {
  const ServePools& given = setting.pools;
  if (setting.contention == nullptr) {
    return simulate_pools(setting, run, given.pools(), given.journey(), sim);
  }
  Run trial = run;
  trial.rows = nullptr;
  *setting.contention =
      run_with_contention(given.pools(), given.journey(), sim,
                          [&](std::span<const PoolSetup> pools, const Journey& journey, bool last) {
                            simulate_pools(setting, last ? run : trial, pools, journey, sim);
                          });
}

LoadLevel level_of(const Setting& setting, const DrawnLoad& drawn) {
  const Load& load = setting.scenario.load;
  LoadLevel level{.rate = load.rate.value, .clients = load.clients};
  if (load.throughput_fraction > 0) {
    level.rate =
        load.throughput_fraction * setting.capacity.requests / double(load.calls_of_session());
  }
  if (load.kv_fraction > 0) level.clients = clients_that_fill(drawn, setting.pools.main());
  return level;
}

struct RateTrial {
  double rate = 0;
  bool holds = false;
  bool carried = false;  // the run answers what comes at the rate
  bool told = false;     // the run was long enough to tell
};

RateTrial trial_of(const Setting& setting, double rate, ServingSim& sim) {
  const RunVerdict& verdict = sim.verdict();
  const bool undecided = verdict.saturation == Saturation::undecided;
  RateTrial trial{.rate = rate};
  trial.holds = meets(setting.judged, sim.stats()) && verdict.saturation != Saturation::overloaded;
  trial.carried = carries({setting.scenario.load, setting.trace, {.rate = rate}}, sim);
  // What misses a limit beyond doubt does so whether or not it would keep up. Between failures a fleet holds more than in the end.
  trial.told = sim.failures_are_known() && (!undecided || (!trial.holds && verdict.slo.missed));
  return trial;
}

// Whether runs that were long enough hold at a rate or little below, and whether they fail little above it.
struct ToldAround {
  bool below = false, above = false;
};
ToldAround told_around(double rate, double little, const std::vector<RateTrial>& trials) {
  const double most = little * (1 + 1e-9);
  ToldAround told;
  for (const RateTrial& trial : trials) {
    if (!trial.told || trial.rate * most < rate || trial.rate > rate * most) continue;
    told.below = told.below || (trial.holds && trial.rate <= rate);
    told.above = told.above || (!trial.holds && trial.rate > rate);
  }
  return told;
}

// The highest rate that meets capacity.slo, and slo, and that a run carries, goes to `level`; or why there is none.
std::optional<Refusal> search_capacity(const Setting& setting, ServingSim& sim, Metrics& metrics,
                                       LoadLevel& level) {
  const Scenario& scenario = setting.scenario;
  const Load& load = scenario.load;
  if (load.arrivals == ArrivalKind::closed || load.arrivals == ArrivalKind::trace ||
      load.arrivals == ArrivalKind::curve) {
    return Refusal{ReasonClass::load,
                   "capacity.slo searches over load.rate, which load.arrivals: " +
                       std::string(name_of(load.arrivals)) + " does not have"};
  }
  std::vector<RateTrial> trials;
  double lowest = kNever, lowest_unseen = kNever;
  std::string missed, unseen;  // there, and why
  const double guess = setting.capacity.requests / double(load.calls_of_session());
  const auto holds_at = [&](double rate) {
    const LoadLevel tried{.rate = rate};
    simulate(setting,
             {.level = tried,
              .plan = run_plan(load, tried, setting.trace, setting.pools.fleet_times()),
              .purpose = RunPurpose::verdict},
             sim);
    if (nothing_measured(load, sim) && rate < lowest_unseen) {
      lowest_unseen = rate;
      unseen = why_nothing(load, sim);
    }
    trials.push_back(trial_of(setting, rate, sim));
    if (rate < lowest) {
      lowest = rate;
      missed = missed_limit(setting.judged, sim.stats());
    }
    return trials.back().holds;
  };
  CapacityResult found = highest_rate(guess, scenario.capacity.tolerance, holds_at);
  // A rate at which nothing was seen says nothing about the rates below it.
  const double next = found.rate * (1 + scenario.capacity.tolerance);
  if (lowest_unseen <= next * (1 + 1e-9) || (found.rate <= 0 && lowest_unseen < kNever)) {
    return Refusal{ReasonClass::load, unseen};
  }
  if (found.endless) {
    return Refusal{ReasonClass::load,
                   "capacity.slo is met at any rate: load.requests are too few to miss it"};
  }
  if (found.rate <= 0) {
    std::string reason = "no rate meets capacity.slo";
    if (scenario.slo.any()) reason += " and slo";
    if (!missed.empty()) reason += fmt::format(": at {:.3g} req/s {}", lowest, missed);
    return Refusal{ReasonClass::slo, std::move(reason)};
  }
  // A run that is over before the system has filled up meets limits at rates that it does not carry.
  const auto at_found = std::ranges::find(trials, found.rate, &RateTrial::rate);
  if (at_found != trials.end() && !at_found->carried) {
    found = highest_rate(std::min(guess, found.rate), scenario.capacity.tolerance,
                         [&](double rate) { return holds_at(rate) && trials.back().carried; });
    if (found.rate <= 0) {
      return Refusal{ReasonClass::load,
                     "load.requests are too few for a capacity: at no rate does "
                     "a run answer what comes; state more, or auto"};
    }
  }
  metrics.capacity = RequestsPerSecond{found.rate};
  metrics.capacity_monotone = found.monotone ? 1 : 0;
  // No run is long enough at the very rate that can just be kept up. Where the search looked at none that tells, these do.
  const double little = std::max(1.1, 1 + scenario.capacity.tolerance);
  ToldAround told = told_around(found.rate, little, trials);
  if (!told.below) holds_at(found.rate / little);
  if (!told.above) holds_at(found.rate * little);
  told = told_around(found.rate, little, trials);
  metrics.capacity_decided = told.below && told.above ? 1 : 0;
  level.rate = found.rate;
  return std::nullopt;
}

// KV tokens for which there is room beside the main model, and beside its draft where that is elsewhere.
double tokens_that_fit(const TaskPoint& point, const TypicalRequest& typical, double beside_main) {
  if (point.draft == nullptr || !point.draft->apart) return beside_main;
  const Deployed& draft = *point.draft->deployed;
  const MemoryDemand demand = engine_demand(point.scenario.serving, typical);
  const double sequences = footprint_of(draft, demand).left() / draft.kv_of(double(demand.context));
  return std::min(beside_main, sequences * double(demand.context));
}

std::optional<Refusal> shedding_problem(const Scenario& scenario) {
  const bool turns_away =
      scenario.serving.admission.any() ||
      (scenario.prefill.present && scenario.prefill.deployment.serving.admission.any());
  if (turns_away && scenario.load.arrivals == ArrivalKind::closed &&
      scenario.load.think_time.value <= 0) {
    return Refusal{ReasonClass::load,
                   "serving.admission turns clients of a closed loop away who ask again at once: "
                   "state load.think_time"};
  }
  const bool reader_sheds =
      scenario.prefill.present && scenario.prefill.deployment.serving.admission.shed_late;
  if (!scenario.serving.admission.shed_late && !reader_sheds) return std::nullopt;
  const LoadClasses& classes = scenario.load.classes;
  const bool stated = classes.high.ttft.value + classes.low.ttft.value > 0;
  if (stated || request_limit(served_slo(scenario).ttft).value < kNever) return std::nullopt;
  return Refusal{ReasonClass::slo,
                 "serving.admission.shed_late needs a limit: slo.ttft_p99 (or another percentile), "
                 "or ttft of a class in load.classes"};
}

// Windows are counted once for all models of a replica.
std::optional<Refusal> draft_window_problem(const Scenario& scenario) {
  if (!speculates(scenario) || scenario.model.window == 0) return std::nullopt;
  const SpeculationMethod method = scenario.speculation.method;
  const std::int64_t stated = scenario.speculation.draft_window;
  const bool has_model = method == SpeculationMethod::mtp || method == SpeculationMethod::self ||
                         (method == SpeculationMethod::draft_model && scenario.draft.present);
  std::int64_t own = 0;
  if (method == SpeculationMethod::draft_model) own = scenario.draft.deployment.model.window;
  if (method == SpeculationMethod::self) own = scenario.model.window;
  if (stated > 0) own = own > 0 ? std::min(own, stated) : stated;
  if (!has_model || own == 0 || own == scenario.model.window) return std::nullopt;
  return Refusal{ReasonClass::unsupported,
                 fmt::format("the draft attends to {} tokens (draft.model.window, "
                             "speculation.draft_window) and model.window is {}: a served draft of "
                             "such a model has none, or the same",
                             own, scenario.model.window)};
}

}  // namespace

std::optional<Refusal> serve_problem(const Scenario& scenario) {
  if (auto problem = draft_window_problem(scenario)) return problem;
  if (auto problem = shedding_problem(scenario)) return problem;
  if (scenario.load.images > 0 && !scenario.encode.present) {
    return Refusal{ReasonClass::unsupported,
                   "load.images needs an encoder: state encode.model, a vision model without "
                   "vocabulary"};
  }
  // Single requests that are too long are refused and counted; here it is all of them.
  const Load& load = scenario.load;
  if (load.arrivals == ArrivalKind::trace || load.lengths.distribution != LengthKind::fixed) {
    return std::nullopt;
  }
  return too_long(load.images > 0 ? "load.lengths.prompt + load.lengths.output with its images"
                                  : "load.lengths.prompt + load.lengths.output",
                  load.lengths.prompt + load.image_prompt() + load.lengths.output, scenario.model);
}

MemoryDemand serve_demand(const Scenario& scenario, const Resources& resources, Scratch& scratch) {
  return engine_demand(scenario.serving, typical_request(drawn_load(scenario, resources, scratch)));
}

std::string serve_headline(const Scenario& scenario) {
  std::string text =
      fmt::format("served load {}: {} arrivals, policy {}, {} replica(s)\n", scenario.load.name,
                  name_of(scenario.load.arrivals), name_of(scenario.serving.policy),
                  scenario.serving.replicas * scenario.parallel.dp);
  if (scenario.prefill.present) {
    const Deployment& reader = scenario.prefill.deployment;
    text += fmt::format("prompts are read by {} replica(s) of {} x {}\n",
                        reader.serving.replicas * reader.parallel.dp,
                        reader.parallel.devices() / reader.parallel.dp, reader.device.name);
  }
  return text;
}

void run_serve(const TaskPoint& point, Outcome& outcome) {
  const Scenario& scenario = point.scenario;
  const auto refuse = [&outcome](ReasonClass why, std::string reason) {
    outcome.refuse(Status::infeasible, {why, std::move(reason)});
  };
  const Trace* trace = trace_of(scenario, point.resources);
  if (auto problem = load_problem(scenario.load, trace))
    return refuse(ReasonClass::load, std::move(*problem));
  const DrawnLoad drawn = drawn_load(scenario, point.resources, point.scratch);
  const TypicalRequest typical = typical_request(drawn);
  ServePools pools(point, typical,
                   tokens_that_fit(point, typical, outcome.metrics.kv_capacity_tokens));
  if (auto problem = pools.complete(typical)) return outcome.refuse(std::move(*problem));
  if (scenario.load.classes.any()) pools.weigh_classes(typical_of_classes(drawn));
  report_blocks(point.main, engine_demand(scenario.serving, typical), pools.main(),
                outcome.metrics);
  PointLog* log = point.scratch.log();
  StepLog work{.most = log != nullptr ? log->most_steps : 0};
  Contention contention;
  const Setting setting{.scenario = scenario,
                        .pools = pools,
                        .trace = trace,
                        .capacity = pools.capacity(typical),
                        .judged = tighter_of(scenario.slo, scenario.capacity.slo),
                        .log = log != nullptr ? &work : nullptr,
                        .contention = contends(scenario) ? &contention : nullptr};
  LoadLevel level = level_of(setting, drawn);
  outcome.load_rate = level.rate;
  ServingSim& sim = point.scratch.serving();
  if (scenario.capacity.slo.any()) {
    auto problem = search_capacity(setting, sim, outcome.metrics, level);
    if (problem) return refuse(problem->reason_class, std::move(problem->text));
  }
  RunPlan plan = run_plan(scenario.load, level, trace, pools.fleet_times());
  const bool few_figures = point.compared || point.role == DeploymentRole::neighbour;
  simulate(setting,
           {.level = level,
            .plan = plan,
            .purpose = few_figures ? RunPurpose::few_figures : RunPurpose::figures,
            .rows = &outcome},
           sim);
  if (sim.stuck() > 0) {
    throw std::runtime_error(fmt::format(
        "{} requests wait for one another and never end: an error of the simulation", sim.stuck()));
  }
  if (auto problem = no_figures(scenario.load, pools, sim)) {
    return outcome.refuse(std::move(*problem));
  }
  // They come as requests end: two that end within a nanosecond in either order.
  std::ranges::sort(outcome.requests, {}, &RequestRow::number);
  report_serving(scenario, pools, sim, outcome);
  report_load_seen({scenario.load, trace, level, drawn.seed}, sim, outcome.metrics);
  if (setting.contention != nullptr) report_contention(contention, outcome.metrics);
  if (log != nullptr) trace_steps(work, pools.pools(), *log);
  if (scenario.output.intervals) {
    // As long as this run was, at any speed of the steps.
    plan = plan.of_length(sim.units());
    const auto again = [&](const StepScale& scale) -> ServingStats& {
      simulate(setting, {.level = level, .plan = plan, .scale = scale}, sim);
      return sim.stats();
    };
    report_intervals(scenario, sim.stats(), again, outcome);
  }
}

}  // namespace engine
