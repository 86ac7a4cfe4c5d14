#include "engine/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "engine/alone_runs.h"
#include "engine/chosen_calibration.h"
#include "engine/deploy.h"
#include "engine/draft.h"
#include "engine/feasibility.h"
#include "engine/kernels/copy.h"
#include "engine/memory/footprint.h"
#include "engine/neighbours.h"
#include "engine/own_limits.h"
#include "engine/shared_prompts.h"
#include "engine/sound_figures.h"
#include "engine/tasks/classify/classify_task.h"
#include "engine/tasks/handover.h"
#include "engine/tasks/request/retrieval.h"
#include "engine/tasks/serve/image_encoder.h"
#include "engine/tasks/serve/served_adapters.h"
#include "engine/tasks/task_table.h"

namespace engine {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// The largest batch whose KV fits beside the activations of its own steps, which grow with it, up to the tokens of a step.
double largest_batch(const Footprint& footprint, const Deployed& main, const MemoryDemand& demand) {
  const double kv = main.kv_of(double(demand.context)).value * double(demand.batches);
  const double left = footprint.left().value;
  if (demand.tokens_each == 0) return left / kv;
  const double activations = footprint.activations.value;
  // Sequences whose tokens fill a step: activations grow up to theirs.
  const double filling = demand.most_tokens == 0
                             ? kUnbounded
                             : double(demand.most_tokens) / double(demand.tokens_each);
  const double each = activations / std::min(double(demand.sequences), filling);
  const double most = each * filling;
  // Where KV has only a share of what is left, activations count with that share.
  const auto batch = [&](double room, double share) {
    return std::max(room / (kv + share * each), (room - share * most) / kv);
  };
  const ServingSettings& serving = main.spec->serving;
  const double all = main.spec->device.memory_capacity.value;
  switch (serving.memory_share) {
    case MemoryShare::whole:
      return batch(left + activations, 1);
    case MemoryShare::rest:
      return batch(left + serving.memory_utilization * activations, serving.memory_utilization);
    case MemoryShare::model_and_kv:
      break;
  }
  const double beside = all - footprint.weights.value - footprint.reserved.value;
  const double share = all * serving.memory_utilization - footprint.weights.value;
  return std::min(batch(beside, 1), share / kv);
}

// Figures of the main deployment's memory.
void report_memory(const Footprint& footprint, const Deployed& main, const MemoryDemand& demand,
                   Metrics& metrics) {
  const Bytes sequence = main.kv_of(double(demand.context));
  const Bytes used_kv = sequence * double(demand.sequences * demand.batches);
  metrics.weights = footprint.weights;
  metrics.activations = footprint.activations;
  metrics.reserved = footprint.reserved;
  metrics.kv_cache = used_kv;
  metrics.kv_per_token = sequence / double(std::max<std::int64_t>(1, demand.context));
  metrics.memory_used = footprint.weights + footprint.activations + footprint.reserved + used_kv;
  metrics.memory_free = footprint.left() - used_kv;
  if (main.spec->parallel.ep > 1) {
    metrics.second_copies = double(main.shard.experts.redundant);
    metrics.expert_imbalance = most_popular_device(main.spec->model, main.shard.experts);
  }
  if (sequence.value <= 0) return;  // whatever fits, it is not the cache that limits it
  const double fit = std::max(0.0, footprint.left() / sequence);
  metrics.kv_capacity_tokens = std::floor(fit * double(demand.context));
  metrics.max_batch = std::floor(std::max(0.0, largest_batch(footprint, main, demand)));
}

void count_devices(const Scenario& scenario, Metrics& metrics) {
  metrics.devices = 0;
  each_deployment(scenario, [&](const Deployment& deployment, double devices) {
    metrics.devices += devices;
    const bool joined = devices > 1 && has_foreign_links(deployment.cluster, deployment.device);
    if (joined) metrics.foreign_links = 1;
  });
}

void evaluate_point(const OneOfTwo& one, const Resources& resources, WorkMeter& work,
                    Scratch& scratch, const NeighbourEffect& beside, Outcome& outcome) {
  const Scenario& scenario = one.scenario;
  const TaskEntry& task = task_entry(scenario.task);
  const double copies = task.copies(scenario);
  count_devices(scenario, outcome.metrics);
  const auto refuse = [&outcome](Refusal&& problem) { outcome.refuse(std::move(problem)); };
  if (auto problem = network_problem(scenario)) return refuse(std::move(*problem));
  outcome.metrics.parameters = parameter_counts(scenario.model).total();
  if (auto problem = shared_prompts_problem(scenario)) return refuse(std::move(*problem));
  Deployed main;
  if (auto problem = deploy(scenario, scenario.calibration, resources.calibrations, copies, main)) {
    return refuse(std::move(*problem));
  }
  if (auto problem = task.problem(scenario)) return refuse(std::move(*problem));
  std::unique_ptr<Draft> draft;  // not a value: it is large, and few points have one
  if (speculates(scenario)) {
    draft = std::make_unique<Draft>();
    if (auto problem = ready_draft(scenario, resources, copies, main, *draft)) {
      return refuse(std::move(*problem));
    }
  }
  // Training looks after its samples and its tail itself.
  if (scenario.task != Task::train) {
    if (auto problem = shared_cluster_problem(scenario, main.fabric)) {
      return refuse(std::move(*problem));
    }
  }
  main.guest.weights += adapter_memory(scenario, scenario.serving.lora, main.shard);
  main.guest.weights += vectors_beside(scenario);
  if (!scenario.prefill.present) {
    main.guest.weights += encoder_weights_beside(scenario, scenario.parallel);
  }
  if (task.demand != nullptr) {
    const MemoryDemand demand = task.demand(scenario, resources, scratch);
    const Footprint footprint = footprint_of(main, demand);
    report_memory(footprint, main, demand, outcome.metrics);
    if (auto problem = memory_problem(main, footprint, demand)) {
      return refuse(std::move(*problem));
    }
    if (draft && draft->apart) {
      const Deployed& apart = *draft->deployed;
      if (auto problem = memory_problem(apart, footprint_of(apart, demand), demand)) {
        return refuse(in_role("draft", std::move(*problem)));
      }
    }
  }
  task.run({.scenario = scenario,
            .resources = resources,
            .main = main,
            .draft = draft.get(),
            .work = work,
            .scratch = scratch,
            .beside = beside,
            .role = one.role,
            .compared = one.compared},
           outcome);
}

// Evaluates one of two models with the devices to itself. That is the same for every neighbour.
void evaluate_alone(const OneOfTwo& one, const Resources& resources, WorkMeter& work,
                    Scratch& scratch, Outcome& outcome) {
  const Key key = key_of(one.scenario, resources.calibrations);
  AloneRuns& runs = scratch.alone_runs();
  if (const AloneRuns::Run* known = runs.find(key)) {
    work.charge(known->work);
    outcome = known->outcome;
    return;
  }
  const double before = work.used();
  evaluate_point(one, resources, work, scratch, {}, outcome);
  runs.keep({key, outcome, work.used() - before});
}

void evaluate_any(const Scenario& scenario, const Resources& resources, WorkMeter& work,
                  Scratch& scratch, Outcome& outcome) {
  if (!has_neighbour(scenario)) {
    evaluate_point({.scenario = scenario}, resources, work, scratch, {}, outcome);
    return;
  }
  count_devices(scenario, outcome.metrics);
  const Calibration* kernels =
      chosen_calibration(scenario.calibration, scenario, resources.calibrations).calibration;
  evaluate_neighbours(
      scenario, copies_over(rates_of(scenario.device.host_link), scenario.device, kernels),
      [&](const OneOfTwo& one, const NeighbourEffect& beside, Outcome& made) {
        begin_anew(made);
        const bool guest = one.role == DeploymentRole::neighbour;
        Scratch& own = guest ? scratch.neighbour() : scratch;
        const bool kept = AloneRuns::keeps(one.scenario, resources) && scratch.log() == nullptr;
        if (one.compared && beside.alone() && kept) {
          evaluate_alone(one, resources, work, own, made);
        } else {
          evaluate_point(one, resources, work, own, beside, made);
        }
      },
      outcome);
}

}  // namespace

void evaluate_into(const Scenario& scenario, const Resources& resources, Outcome& outcome,
                   WorkMeter& work, Scratch& scratch) {
  begin_anew(outcome);
  work.begin_point();
  try {
    std::unique_ptr<Scenario> filled;
    evaluate_any(with_own_limits(scenario, filled), resources, work, scratch, outcome);
    if (outcome.status != Status::ok) return;
    if (auto problem = figures_problem(task_entry(scenario.task), outcome))
      fail(outcome, std::move(*problem));
    return;
  } catch (const WorkExceeded&) {
    fail(outcome, {ReasonClass::budget, given_up_reason(work.budget())});
  } catch (const std::bad_alloc&) {
    fail(outcome, {ReasonClass::error, "this machine has not enough memory to evaluate the point"});
  } catch (const std::exception& error) {
    fail(outcome, {ReasonClass::error, error.what()});
  }
  scratch.forget();
}

void evaluate_into(const Scenario& scenario, const Resources& resources, Outcome& outcome) {
  WorkMeter work;
  Scratch scratch;
  evaluate_into(scenario, resources, outcome, work, scratch);
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
