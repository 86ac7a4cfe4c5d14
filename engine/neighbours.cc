#include "engine/neighbours.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/peak_in_use.h"
#include "engine/one_of_two_models.h"
#include "engine/sharing/shared_device.h"
#include "engine/tasks/serve/image_encoder.h"

namespace engine {
namespace {

// Rounds until both agree on how slow they are; nearly always two or three.
constexpr int kMostRounds = 8;
constexpr double kAgreed = 0.005;

// Prompts that a prefill deployment reads, for a draft, too, and encoders that are not the main deployment's replicas.
bool runs_elsewhere(const KernelRow& row, const Scenario& scenario) {
  switch (row.role) {
    case DeploymentRole::prefill:
      return true;
    case DeploymentRole::encode:
      return scenario.prefill.present || !readers_encode(scenario);
    case DeploymentRole::draft:
      return scenario.prefill.present && row.phase == Phase::prefill;
    default:
      return false;
  }
}

// What a model asks of the devices that both share.
Demand demand_of(const Outcome& outcome, const Scenario& scenario) {
  std::vector<KernelRow> rows = outcome.kernels;
  std::erase_if(rows, [&](const KernelRow& row) { return runs_elsewhere(row, scenario); });
  return demand_of(rows, scenario.device, peak_in_use(scenario.device, scenario.quant));
}

// One of the two models: alone on the devices, alone on its part of them, and beside the other. It always has its part of the
// memory: with more it would batch more, and in an overload take longer for each token than beside the other.
struct Side {
  DeploymentRole role = DeploymentRole::main;
  Scenario whole, part;
  Outcome alone, on_part, shared;
  double slower = 1;             // than alone on its part,
  NeighbourEffect effect;        // of the other on `shared`
  std::optional<Tenant> tenant;  // once it was asked for

  // The time that sharing is judged by. Answers of one token have none between tokens.
  static double time_of(const Scenario& scenario, const Outcome& outcome) {
    const Metrics& metrics = outcome.metrics;
    if (scenario.task == Task::step) return metrics.step_time.value;
    return std::isnan(metrics.tpot.value) ? metrics.ttft.value : metrics.tpot.value;
  }
  double slowdown() const { return time_of(part, shared) / time_of(whole, alone); }
  // Share of the time in which it has a step to run.
  double running() const {
    const double busy = shared.metrics.utilization;
    if (part.task == Task::step) return 1;
    return busy > 0 ? std::min(busy, 1.0) : 0;
  }
  void slow_down(double speed, double other_running) {
    // Beyond this nothing ever ends.
    constexpr double most = 1e6;
    const double beside = speed > tenant->on_part / most ? tenant->on_part / speed : most;
    slower = 1 + other_running * std::max(0.0, beside - 1);
  }
};

OneOfTwo only_compared(DeploymentRole role, const Scenario& scenario) {
  return {.role = role, .scenario = scenario, .compared = true};
}

// Utilisations are of the whole devices, whatever part of them a model has. Devices that only read prompts for it are not shared.
void report_use_of_all(const Side& side, Metrics& metrics) {
  const bool read = side.part.task == Task::serve && side.part.prefill.present;
  const auto share = [&](auto could) {
    const auto of = [&](const Deployment& on) {
      return could(on) * double(on.serving.replicas * on.parallel.devices());
    };
    const double readers = read ? of(side.part.prefill.deployment) : 0;
    return (of(side.part) + readers) / (of(side.whole) + readers);
  };
  metrics.model_flops_utilization *=
      share([](const Deployment& on) { return peak_in_use(on.device, on.quant).value; });
  metrics.memory_bandwidth_utilization *=
      share([](const Deployment& on) { return on.device.memory_bandwidth.value; });
}

void report_neighbour(const Side& main, const Side& other, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const Metrics& theirs = other.shared.metrics;
  metrics.sharing_slowdown = main.slowdown();
  if (std::isnan(metrics.sharing_time.value)) metrics.sharing_time = Seconds{0};
  report_use_of_all(main, metrics);
  // Rows have the main model's share only.
  metrics.energy = Joules{kNoValue};
  metrics.energy_j_per_output_token = kNoValue;
  metrics.neighbour_slowdown = other.slowdown();
  metrics.neighbour_output = theirs.output;
  metrics.neighbour_kv_tokens = theirs.kv_capacity_tokens;
  if (main.part.task == Task::step) {
    metrics.neighbour_step_time = theirs.step_time;
  } else {
    metrics.neighbour_ttft = theirs.ttft;
    metrics.neighbour_tpot = theirs.tpot;
    metrics.neighbour_tpot_p99 = theirs.tpot_p99;
    metrics.neighbour_throughput = theirs.throughput;
    metrics.neighbour_utilization = theirs.utilization;
    if (other.shared.saturation != Saturation::undecided) {
      metrics.neighbour_overloaded = other.shared.saturation == Saturation::overloaded ? 1 : 0;
    }
  }
  for (KernelRow row : other.shared.kernels) {
    row.role = DeploymentRole::neighbour;
    outcome.kernels.push_back(row);
  }
}

void evaluate_beside(Side& side, const NeighbourEffect& beside, const EvaluateAlone& evaluate) {
  side.effect = beside;
  evaluate({side.role, side.part}, beside, side.shared);
}

void evaluate_shared(Side& side, const EvaluateAlone& evaluate) {
  if (side.slower == side.effect.slower) return;
  evaluate_beside(side, {.slower = side.slower}, evaluate);
}

// Runs for intervals are many, so they are made once, beside what both have agreed on.
void evaluate_intervals(Side& side, const EvaluateAlone& evaluate) {
  if (side.shared.status != Status::ok) return;
  side.part.output.intervals = true;
  evaluate_beside(side, side.effect, evaluate);
}

// The same load at a rate that is known.
Scenario at_rate(Scenario scenario, double rate) {
  scenario.capacity = {};
  scenario.load.rate = RequestsPerSecond{rate};
  scenario.load.throughput_fraction = 0;
  return scenario;
}

// Alone on the devices, with the same load, which is as on its part where that lacks nothing but memory.
void evaluate_whole(Side& side, SharingMode mode, const EvaluateAlone& evaluate) {
  const double rate = side.on_part.load_rate;
  if (side.whole.load.throughput_fraction > 0) side.whole = at_rate(side.whole, rate);
  side.whole.device.memory_capacity = side.part.device.memory_capacity;
  if (side.whole.draft.present) side.whole.draft.deployment.device = side.whole.device;
  if (mode == SharingMode::time_slices || mode == SharingMode::streams) {
    side.alone = side.on_part;
  } else {
    evaluate(only_compared(side.role, side.whole), {}, side.alone);
  }
}

// It cannot work, and says why.
void refuse_like(const Side& side, Outcome&& made, Outcome& outcome) {
  outcome = std::move(made);
  if (side.role == DeploymentRole::neighbour) outcome.reason = "neighbour: " + outcome.reason;
}

// False where a model cannot work on its own: the outcome says why.
bool ready(Side& side, SharingMode mode, const EvaluateAlone& evaluate, Outcome& outcome) {
  evaluate(only_compared(side.role, side.part), {}, side.on_part);
  if (side.on_part.status == Status::ok) {
    evaluate_whole(side, mode, evaluate);
    side.shared = side.on_part;
    return true;
  }
  refuse_like(side, std::move(side.on_part), outcome);
  return false;
}

// What its steps on its part ask of all of the devices, and how fast they are there, compared with that. A served load that is
// slower also has more requests in a step, so its times per token do not tell: all of the devices take the same steps where they
// are slowed down until tokens take as long.
Tenant tenant_of(const Side& side, SharingMode mode, const EvaluateAlone& evaluate) {
  const double on_part = Side::time_of(side.part, side.on_part);
  double slower = on_part / Side::time_of(side.whole, side.alone);
  if (!(slower > 1)) return {.demand = demand_of(side.alone, side.whole)};
  const bool alike = slower < 1 + kAgreed || side.whole.task == Task::step;
  if (alike || mode != SharingMode::spatial) {
    return {.demand = demand_of(side.alone, side.whole), .on_part = 1 / slower};
  }
  Outcome same;
  double least = 1, most = slower;
  for (int round = 0; round < kMostRounds; ++round) {
    evaluate(only_compared(side.role, side.whole), {.slower = slower}, same);
    const double off = Side::time_of(side.whole, same) / on_part;
    if (std::abs(off - 1) < kAgreed) break;
    (off > 1 ? most : least) = slower;
    slower = std::sqrt(least * most);
  }
  return {.demand = demand_of(same, side.whole), .on_part = 1 / slower};
}

// Both slow one another down until neither changes any more.
void slow_down(Side& main, Side& other, const SharingSettings& sharing, Seconds change,
               const EvaluateAlone& evaluate) {
  for (Side* side : {&main, &other}) {
    if (!side->tenant) side->tenant = tenant_of(*side, sharing.mode, evaluate);
  }
  const Speeds speeds = speeds_together(*main.tenant, *other.tenant, sharing, change);
  for (int round = 0; round < kMostRounds; ++round) {
    const double before = main.slower, other_before = other.slower;
    main.slow_down(speeds.main, other.running());
    other.slow_down(speeds.neighbour, main.running());
    const double moved =
        std::max(std::abs(main.slower / before - 1), std::abs(other.slower / other_before - 1));
    if (moved < kAgreed) return;
    evaluate_shared(main, evaluate);
    evaluate_shared(other, evaluate);
  }
}

bool looks_for_rate(const Scenario& scenario) {
  return scenario.task == Task::serve && scenario.capacity.slo.any();
}

// How slow the other makes it follows from the rate, and the highest rate from how slow it is: one after the other, until
// the rate stays what it was.
void slow_down_at_capacity(Side& main, Side& other, const SharingSettings& sharing, Seconds change,
                           const EvaluateAlone& evaluate) {
  double rate = main.shared.metrics.capacity.value;
  for (int round = 0; round < kMostRounds; ++round) {
    Side tried{.whole = at_rate(main.whole, rate), .part = at_rate(main.part, rate)};
    evaluate(only_compared(tried.role, tried.part), {}, tried.on_part);
    evaluate_whole(tried, sharing.mode, evaluate);
    tried.shared = tried.on_part;
    slow_down(tried, other, sharing, change, evaluate);
    main.alone = std::move(tried.alone);
    evaluate_beside(main, {.slower = tried.slower}, evaluate);
    // Beside one that is kept this busy no rate will do; beside one that is kept less busy it may.
    const bool works = main.shared.status == Status::ok;
    const double found = works ? main.shared.metrics.capacity.value : rate / 4;
    if (works && std::abs(found / rate - 1) < 2 * kAgreed) return;
    rate = std::sqrt(rate * found);
  }
}

// A served load on devices that two models have in turns, weights, a draft's among them, coming from the host at each: KV caches
// stay, so these share what the larger model leaves. False where that is not enough for one of them.
bool take_turns(Side& main, Side& other, const SharingSettings& sharing,
                const MessageLine& from_host, const EvaluateAlone& evaluate, Outcome& outcome) {
  const Bytes mine = main.on_part.metrics.weights, theirs = other.on_part.metrics.weights;
  const Bytes left = main.part.device.memory_capacity - std::max(mine, theirs);
  give_memory(main.part, mine + left * sharing.memory);
  give_memory(other.part, theirs + left * (1 - sharing.memory));
  const double to_main = (from_host.of(main.on_part.metrics.weights) + sharing.switch_time).value;
  const double to_other = (from_host.of(other.on_part.metrics.weights) + sharing.switch_time).value;
  const double turn = 2 * sharing.slice.value * sharing.share;
  const double other_turn = 2 * sharing.slice.value * (1 - sharing.share);
  const double period = turn + to_other + other_turn + to_main;
  const auto in_turns = [&](Side& side, const Turns& turns) {
    evaluate_beside(side, {.turns = turns}, evaluate);
    if (side.shared.status == Status::ok) return true;
    refuse_like(side, std::move(side.shared), outcome);
    return false;
  };
  return in_turns(main, {.period = period, .length = turn}) &&
         in_turns(other, {.period = period, .offset = turn + to_other, .length = other_turn});
}

}  // namespace

bool has_neighbour(const Scenario& scenario) {
  return scenario.neighbour.present &&
         (scenario.task == Task::step || scenario.task == Task::serve);
}

void evaluate_neighbours(const Scenario& scenario, const MessageLine& from_host,
                         const EvaluateAlone& evaluate, Outcome& outcome) {
  const SharingSettings& sharing = scenario.sharing;
  if (auto problem = neighbour_problem(scenario)) return outcome.refuse(std::move(*problem));
  Side main{.whole = without_neighbour(scenario), .part = without_neighbour(scenario)};
  Side other{.role = DeploymentRole::neighbour,
             .whole = as_neighbour(scenario),
             .part = as_neighbour(scenario)};
  const std::int64_t own = multiprocessors_in(scenario.device, sharing.share);
  give_part(main.part, sharing, {sharing.share, sharing.memory, own});
  give_part(other.part, sharing,
            {1 - sharing.share, 1 - sharing.memory, scenario.device.multiprocessors - own});
  if (!ready(main, sharing.mode, evaluate, outcome)) return;
  if (!ready(other, sharing.mode, evaluate, outcome)) return;
  Seconds change = sharing.switch_time * 2, swap{kNoValue};
  if (sharing.swap) {
    swap = from_host.of(main.on_part.metrics.weights);
    change += swap + from_host.of(other.on_part.metrics.weights);
  }
  if (sharing.swap && scenario.task == Task::serve) {
    if (!take_turns(main, other, sharing, from_host, evaluate, outcome)) return;
    if (looks_for_rate(scenario)) {
      main.part = at_rate(main.part, main.shared.metrics.capacity.value);
    }
    for (Side* side : {&main, &other})
      evaluate(only_compared(side->role, side->part), {}, side->alone);
  } else if (looks_for_rate(scenario)) {
    slow_down_at_capacity(main, other, sharing, change, evaluate);
  } else {
    slow_down(main, other, sharing, change, evaluate);
  }
  if (scenario.output.intervals) {
    evaluate_intervals(main, evaluate);
  } else if (main.effect.alone()) {
    evaluate_beside(main, {},
                    evaluate);  // nothing slows it down: how it fares alone is all there is
  }
  outcome = std::move(main.shared);
  report_neighbour(main, other, outcome);
  outcome.metrics.swap_time = swap;
}

}  // namespace engine
