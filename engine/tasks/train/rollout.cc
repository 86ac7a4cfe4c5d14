#include "engine/tasks/train/rollout.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/chosen_calibration.h"
#include "engine/comm/sends.h"
#include "engine/evaluate.h"
#include "engine/feasibility.h"
#include "engine/kernels/copy.h"
#include "engine/serving/serving_sim.h"
#include "engine/tasks/serve/serve_task.h"
#include "engine/tasks/train/tail_stages.h"
#include "engine/training/pipeline/stages.h"
#include "engine/workload/request_source.h"

namespace engine {
namespace {

constexpr double kMostSamples = 1e9;

std::int64_t layout_devices(const Parallelism& parallel) {
  return parallel.tp * parallel.pp * parallel.dp;
}

const Deployment& stated_rollout(const Scenario& scenario) {
  return scenario.rollout.present ? scenario.rollout.deployment
                                  : static_cast<const Deployment&>(scenario);
}

// The trained model, as it answers prompts.
Deployment deployment_of(const Scenario& scenario) {
  Deployment on = stated_rollout(scenario);
  on.parallel.cp = 1;
  on.serving.scaling = {};
  on.serving.tiers = {};
  if (scenario.train.rollout.colocated) {
    on.device = scenario.device;
    on.cluster = scenario.cluster;
    on.serving.router = ServingSettings{}.router;
    on.serving.replicas = scenario.parallel.devices() / layout_devices(on.parallel);
  }
  return on;
}

// Libraries cut the list of samples, in the order of their prompts, into equal parts for their replicas. So a replica has as many
// samples of one prompt as it can have without more to do than others: the most for which the fullest one has its share.
std::int64_t samples_together(const RolloutSettings& rollout, std::int64_t replicas) {
  const auto fullest = [&](std::int64_t together) {
    const std::int64_t requests = rollout.prompts * (rollout.samples / together);
    return (requests + replicas - 1) / replicas * together;
  };
  std::int64_t most = 1;
  for (std::int64_t part = 1; part * part <= rollout.samples; ++part) {
    if (rollout.samples % part != 0) continue;
    for (const std::int64_t together : {part, rollout.samples / part}) {
      if (fullest(together) == fullest(1)) most = std::max(most, together);
    }
  }
  return most;
}

// A load of all samples at once. Samples of one prompt share it where the engine caches prefixes and they are on one replica. Samples end
// where they reach the length of sequences that are trained on, as in libraries that have a longest response.
Load load_of(const TrainSettings& train, const Deployment& on) {
  const RolloutSettings& rollout = train.rollout;
  Load load;
  load.arrivals = ArrivalKind::closed;
  if (on.serving.prefix_caching) {
    load.samples = samples_together(rollout, on.serving.replicas * on.parallel.dp);
  }
  load.clients = load.requests = rollout.prompts * (rollout.samples / load.samples);
  load.lengths = rollout.lengths;
  if (rollout.lengths.distribution != LengthKind::fixed) {
    const std::int64_t stated = rollout.lengths.total_max;
    load.lengths.total_max = stated > 0 ? std::min(stated, train.sequence) : train.sequence;
  }
  load.measure = MeasureKind::whole;
  return load;
}

// How a layout cuts weights up: by stages, and within them; routed experts one from another, and each of them into parts.
struct WeightCuts {
  double stages, dense, experts, parts;
};
WeightCuts cuts_of(const Parallelism& parallel) {
  return {.stages = double(parallel.pp),
          .dense = double(parallel.tp),
          .experts = double(parallel.ep),
          .parts = std::max(1.0, double(parallel.tp) / double(parallel.ep))};
}

// The share of routed experts among a model's weights.
double expert_part(const ModelSpec& model) {
  const ParameterCounts counts = parameter_counts(model);
  return counts.experts / counts.total();
}

// The share of all weights that one device holds.
double weight_share(const ModelSpec& model, const Parallelism& parallel) {
  const WeightCuts cuts = cuts_of(parallel);
  const double experts = expert_part(model);
  return ((1 - experts) / cuts.dense + experts / (cuts.experts * cuts.parts)) / cuts.stages;
}

// Of what a device needs under one layout, the share that it has under another: cuts of the same kind lie within one another.
double share_at_hand(const Scenario& scenario, const Parallelism& needs) {
  const WeightCuts from = cuts_of(scenario.parallel), to = cuts_of(needs);
  const auto within = [](double need, double have) { return std::min(1.0, need / have); };
  const StateSharing sharers =
      scenario.train.zero == 3 ? sharers_of(scenario.parallel, scenario.train) : StateSharing{};
  const double experts = expert_part(scenario.model);
  const double needed_experts = experts / (to.experts * to.parts);
  const double needed_dense = (1 - experts) / to.dense;
  const double have = needed_dense * within(to.dense, from.dense) / sharers.dense +
                      needed_experts * within(to.experts, from.experts) *
                          within(to.parts, from.parts) / sharers.experts;
  return within(to.stages, from.stages) * have / (needed_dense + needed_experts);
}

// Bytes of a weight of the layers, as training keeps it.
double trained_width(const Scenario& scenario) {
  if (scenario.train.narrow_parameters) return std::min(2.0, bytes_of(scenario.quant.activations));
  return trains_wide(scenario.quant) ? 4 : 2;
}

// Samples are made with the very weights that are trained: both layouts and formats are the same.
bool same_copy(const Scenario& scenario, const Deployment& on) {
  const TrainSettings& train = scenario.train;
  const Parallelism &from = scenario.parallel, &to = on.parallel;
  const bool whole = train.zero < 3 || sharers_of(from, train).dense == 1;
  return train.rollout.colocated && whole && !train.has_adapters() && from.tp == to.tp &&
         from.pp == to.pp && from.ep == to.ep && from.redundant_experts == to.redundant_experts &&
         chunks_per_stage(train, from.pp) == 1 && train.first_stage_layers == 0 &&
         train.last_stage_layers == 0 && bytes_of(on.quant.weights) == trained_width(scenario);
}

// What training alone keeps while samples are made. Gradients are of no use then.
Bytes own_states(const Scenario& scenario, const Deployment& on, const TrainMemory& memory) {
  return same_copy(scenario, on) ? memory.optimizer : memory.weights + memory.optimizer;
}

// Equal devices in equal clusters stand in the same one.
std::optional<Refusal> shared_cluster_problem(const Scenario& scenario) {
  const Deployment& samples = scenario.rollout.deployment;
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  if (fabric.most_devices == 0 || !(samples.device == scenario.device) ||
      !(fabric_of(samples.cluster, samples.device) == fabric)) {
    return std::nullopt;
  }
  const double train = double(scenario.parallel.devices());
  const double make = rollout_devices(scenario, samples);
  if (train + make <= double(fabric.most_devices)) return std::nullopt;
  return Refusal{ReasonClass::cluster,
                 fmt::format("{} devices that train and {} that make samples are more than the {} "
                             "of the cluster they share{}",
                             train, make, fabric.most_devices,
                             taken_over("rollout", samples.parallel, scenario.parallel))};
}

// What is written of the role, and cannot be meant.
std::optional<Refusal> role_problem(const Scenario& scenario) {
  if (!scenario.rollout.present) return std::nullopt;
  const Deployment& samples = scenario.rollout.deployment;
  if (!same_weights(samples.model, scenario.model)) {
    return Refusal{ReasonClass::unsupported,
                   "rollout.model differs from model: samples are made by the model that learns"};
  }
  return std::nullopt;
}

// What one device sends or receives over a link, in the time of the slower end.
struct Transfer {
  SendWay out, in;
  Bytes sent, received;

  bool possible() const { return out.possible() && in.possible(); }
  Seconds time(const TaskPoint& point, const Deployment& rollout) const {
    const MessageLine there = sends_over(out, point.main.spec->device, point.main.calibration).line;
    const Calibration* kernels =
        chosen_calibration(point.scenario.calibration, rollout, point.resources.calibrations)
            .calibration;
    const MessageLine here = sends_over(in, rollout.device, kernels).line;
    const auto moved = [](const MessageLine& line, Bytes bytes) {
      return Seconds{bytes.value * line.seconds_per_byte};
    };
    return std::max(moved(there, sent), moved(here, received)) + std::max(there.start, here.start);
  }
};

// Each device of the rollout's layout takes its share of the weights. On devices of their own all of it arrives, sent by
// all that train; on the devices that train, what they do not hold already.
Transfer resharding(const TaskPoint& point, const Rollout& rollout) {
  const Scenario& scenario = point.scenario;
  const Parallelism& from = scenario.parallel;
  const double devices = double(from.devices());
  const Fabric there = fabric_of(rollout.on.cluster, rollout.on.device);
  if (scenario.train.rollout.colocated) {
    const double missing = 1 - share_at_hand(scenario, rollout.on.parallel);
    const SendWay link = way_among(there, devices);
    return {link, link, rollout.weights * missing, rollout.weights * missing};
  }
  const double all = devices + rollout_devices(scenario, rollout.on);
  return {way_among(point.main.fabric, all), way_among(there, all),
          rollout.weights * (1 / weight_share(scenario.model, rollout.on.parallel) / devices),
          rollout.weights};
}

}  // namespace

double rollout_devices(const Scenario& scenario, const Deployment& rollout) {
  if (!scenario.train.rollout.any() || scenario.train.rollout.colocated) return 0;
  return double(layout_devices(rollout.parallel)) * double(rollout.serving.replicas);
}

std::optional<Refusal> rollout_problem(const Scenario& scenario) {
  const RolloutSettings& rollout = scenario.train.rollout;
  if (!rollout.any()) return std::nullopt;
  if (auto problem = role_problem(scenario)) return problem;
  if (double(rollout.prompts) * double(rollout.samples) > kMostSamples) {
    return Refusal{
        ReasonClass::load,
        fmt::format("{} x {} samples (train.rollout.prompts x train.rollout.samples) are "
                    "more than a billion",
                    rollout.prompts, rollout.samples)};
  }
  if (rollout.lengths.distribution == LengthKind::empirical) {
    return Refusal{
        ReasonClass::unsupported,
        "train.rollout.lengths.distribution empirical draws from a trace, which rollouts "
        "do not have"};
  }
  if (rollout.lengths.distribution == LengthKind::fixed) {
    if (auto problem = too_long("train.rollout.lengths.prompt + train.rollout.lengths.output",
                                rollout.lengths.prompt + rollout.lengths.output, scenario.model)) {
      return problem;
    }
  }
  if (!rollout.colocated) {
    if (scenario.rollout.present) return shared_cluster_problem(scenario);
    return Refusal{ReasonClass::cluster,
                   "train.rollout.colocated is false, and no deployment rollout says where samples "
                   "are made"};
  }
  if (rollout.asynchronous) {
    return Refusal{ReasonClass::cluster,
                   "train.rollout.asynchronous needs train.rollout.colocated: false: the same "
                   "devices cannot train and make samples at once"};
  }
  const std::string& device = stated_rollout(scenario).device.name;
  if (device != scenario.device.name) {
    return Refusal{
        ReasonClass::cluster,
        fmt::format("train.rollout.colocated is true, and rollout.device ({}) is not the "
                    "device that trains ({})",
                    device, scenario.device.name)};
  }
  const Parallelism& samples = stated_rollout(scenario).parallel;
  if (samples.ep > samples.tp * samples.dp && samples.ep == scenario.parallel.ep) {
    return Refusal{
        ReasonClass::divisibility,
        fmt::format("rollout.parallel.ep is training's {}, more than the {} devices that "
                    "make samples together (rollout.parallel.tp x dp); state rollout.parallel.ep",
                    samples.ep, samples.tp * samples.dp)};
  }
  const std::int64_t layout = layout_devices(samples);
  const std::int64_t devices = scenario.parallel.devices();
  if (devices % layout == 0) return std::nullopt;
  const std::int64_t copies = samples.dp;
  const bool taken_over = copies > 1 && copies == scenario.parallel.dp;
  return Refusal{
      ReasonClass::divisibility,
      fmt::format("the rollout's layout of {} devices (tp x pp x dp) does not divide the "
                  "{} that train{}",
                  layout, devices,
                  taken_over ? "; state rollout.parallel.dp, which is training's" : "")};
}

double sample_length(const TaskPoint& point) {
  const Load load = load_of(point.scenario.train, deployment_of(point.scenario));
  const MeanLengths mean = mean_lengths({.load = load,
                                         .seed = load_seed(point.scenario),
                                         .memory = point.scratch.serving().memory()});
  return mean.prompt + mean.output;
}

std::optional<Refusal> make_rollout(const TaskPoint& point, const TrainMemory& memory,
                                    Rollout& rollout) {
  const Scenario& scenario = point.scenario;
  const RolloutSettings& settings = scenario.train.rollout;
  rollout.on = deployment_of(scenario);
  if (settings.colocated && settings.offload_states) {
    rollout.away = own_states(scenario, rollout.on, memory);
  } else if (settings.colocated) {
    rollout.on.device.memory_capacity = rollout.on.device.memory_capacity -
                                        own_states(scenario, rollout.on, memory) - memory.reference;
    if (rollout.on.device.memory_capacity.value <= 0) {
      return Refusal{ReasonClass::memory,
                     "rollout: states of training leave no memory; train.rollout.offload_states "
                     "makes room"};
    }
  }
  Scenario served;
  static_cast<Deployment&>(served) = rollout.on;
  served.task = Task::serve;
  served.calibration = scenario.calibration;
  served.seed = scenario.seed;
  served.replicate = scenario.replicate;
  served.load = load_of(scenario.train, rollout.on);
  Outcome outcome;
  evaluate_into(served, point.resources, outcome, point.work, point.scratch);
  if (outcome.status != Status::ok) {
    return in_role("rollout", in_layout_of(scenario, "rollout", rollout.on,
                                           {outcome.reason_class, std::move(outcome.reason)}));
  }
  const double samples = double(settings.prompts * settings.samples);
  const double made = outcome.metrics.requests_finished * double(served.load.samples);
  if (made < samples) {
    return Refusal{ReasonClass::memory,
                   fmt::format("rollout: {} of {} samples are too long for the KV cache or the "
                               "model",
                               samples - made, samples)};
  }
  ServingSim& sim = point.scratch.serving();
  rollout.time = Seconds{sim.makespan()};
  const MeanLengths mean =
      mean_lengths({.load = served.load, .seed = load_seed(scenario), .memory = sim.memory()});
  rollout.length = mean.prompt + mean.output;
  rollout.tokens = samples * rollout.length;
  rollout.generated = samples * mean.output;
  rollout.weights = outcome.metrics.weights;
  rollout.energy = outcome.metrics.energy;
  // One device's, of all replicas on average.
  const double replicas = double(rollout.on.serving.replicas * rollout.on.parallel.dp);
  for (KernelRow row : outcome.kernels) {
    row.role = DeploymentRole::rollout;
    Work mean_work;
    mean_work.add(row.work, 1 / replicas);
    row.work = mean_work;
    rollout.kernels.push_back(row);
  }
  return std::nullopt;
}

std::optional<Refusal> weight_transfer(const TaskPoint& point, const TrainMemory& memory,
                                       const Rollout& rollout, Seconds& time) {
  time = Seconds{0};
  const Transfer weights = resharding(point, rollout);
  if (weights.received.value > 0) {
    if (!weights.possible()) {
      return Refusal{ReasonClass::links,
                     "no link carries weights from training to rollouts: state device.scale_out or "
                     "cluster.scale_out"};
    }
    time += weights.time(point, rollout.on);
  }
  const RolloutSettings& settings = point.scenario.train.rollout;
  if (!settings.colocated || !settings.offload_states) return std::nullopt;
  if (point.main.fabric.host_link.bandwidth.value <= 0) {
    return Refusal{ReasonClass::links,
                   "train.rollout.offload_states needs a link to the host: state device.host_link"};
  }
  const MessageLine copies =
      copies_over(point.main.fabric.host_link, point.main.spec->device, point.main.calibration);
  time += copies.of(rollout.away * 2.0 + memory.host_reference);
  return std::nullopt;
}

}  // namespace engine
