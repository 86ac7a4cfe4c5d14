#include "engine/training/replica_traffic.h"

#include <algorithm>
#include <limits>

#include "engine/comm/collective_time.h"
#include "engine/step/overlap.h"
#include "engine/training/passes/kept_activations.h"
#include "engine/training/passes/state_bytes.h"
#include "engine/training/train_memory.h"

namespace engine {
namespace {

// A collective between replicas that hold the same weights.
struct Sharers {
  double ranks = 1;
  std::int64_t stride = 1;  // from one replica to the next, in the order of devices
};
// Replicas that share things out, and those with the same share in other groups.
struct Groups {
  Sharers inside, across;
};
Groups groups_of(double replicas, double sharers, std::int64_t stride) {
  return {{sharers, stride}, {replicas / sharers, stride * std::int64_t(sharers)}};
}
// Bytes that travel, and the calls in which they do.
struct Load {
  double bytes, calls;
};
void add(OpName name, Pattern pattern, const Load& load, const Sharers& sharers, OpList& ops) {
  if (sharers.ranks <= 1 || load.bytes <= 0) return;
  const Family family = pattern == Pattern::all_reduce       ? Family::all_reduce
                        : pattern == Pattern::reduce_scatter ? Family::reduce_scatter
                                                             : Family::all_gather;
  ops.add(name, family, load.calls,
          Collective{.pattern = pattern,
                     .bytes = load.bytes / load.calls,
                     .ranks = std::int64_t(sharers.ranks),
                     .stride = sharers.stride,
                     .library = Library::general});
}

// Weights of a bucket of gradients, at least (Megatron's distributed data parallelism).
constexpr double kBucketWeights = 40e6;

// ZeRO 3 gathers and scatters layer by layer or matrix by matrix, and each end by itself or both together. Else gradients and updated weights travel in buckets of a
// layer, or of several small ones; and all at once where nothing goes on beside them.
double calls_for(double weights, double units, const TrainSettings& train) {
  if (train.zero == 3) return std::max(1.0, units);
  return train.overlap ? std::clamp(weights / kBucketWeights, 1.0, std::max(1.0, units)) : 1;
}
double dense_units(const ChunkWeights& weights, const TrainSettings& train) {
  const double ends = (weights.embedding > 0 ? 1 : 0) + (weights.output > 0 ? 1 : 0);
  const bool together = train.zero == 3 && train.root_unit;
  return weights.layers * calls_of_a_layer(train) + (together ? std::min(ends, 1.0) : ends);
}

// What one stage sends to the next for a micro-batch.
Collective stage_transfer(const ModelShard& shard, const TrainSettings& train) {
  const Parallelism& parallel = shard.parallel;
  return {
      .pattern = Pattern::send_recv,
      .bytes = tokens_of_a_pass(train, parallel) * double(shard.model->hidden) *
               value_bytes(shard) / double(parallel.tp),
      .ranks = 2,
      // Devices that share layers lie next to one another, then those that share sequences, then replicas and stages.
      .stride = parallel.tp * parallel.cp *
                (train.order == DeviceOrder::replicas_inside ? parallel.dp : 1)};
}

}  // namespace

// Attention has two matrices (what makes queries, keys and values, and its output), an MLP two.
double calls_of_a_layer(const TrainSettings& train) {
  return train.zero == 3 && train.gathered_unit == GatheredUnit::matrix ? 4 : 1;
}

void replica_ops(const Parallelism& parallel, const ChunkStates& states, const TrainSettings& train,
                 ReplicaOps& ops) {
  const StateSharing replicas = replicas_of(parallel, train);
  const StateSharing sharers = train.zero == 0 ? replicas : sharers_of(parallel, train);
  const std::int64_t between = train.order == DeviceOrder::stages_inside ? parallel.pp : 1;
  const Groups dense = groups_of(replicas.dense, sharers.dense, between * parallel.tp);
  const Groups experts =
      groups_of(replicas.experts, sharers.experts, between * std::max(parallel.tp, parallel.ep));
  const StateBytes bytes = state_bytes(train, states.wide);
  const Pattern sum = train.zero == 0 ? Pattern::all_reduce : Pattern::reduce_scatter;
  const auto sum_up = [&](double gradients, double units, const Groups& groups) {
    const double calls = calls_for(gradients, units, train);
    const double all = bytes.gradients * gradients;
    add(OpName::gradient_sum, sum, {all, calls}, groups.inside, ops.scatter);
    add(OpName::gradient_sum, Pattern::all_reduce, {all / groups.inside.ranks, calls},
        groups.across, train.zero >= 2 ? ops.across : ops.scatter);
  };
  const ChunkWeights& trained = states.trained;
  sum_up(trained.dense, dense_units(trained, train), dense);
  const double expert_calls = calls_of_a_layer(train) / 2;  // without attention's two
  const auto expert_units = [&](double mixtures) { return mixtures * std::max(1.0, expert_calls); };
  sum_up(trained.experts, expert_units(trained.mixtures), experts);
  if (train.zero == 0) return;
  // Weights that are kept whole come back updated; those that are shared out come for every pass.
  const bool all = train.zero == 3;
  const ChunkWeights& come = all ? states.all : trained;
  const ChunkWeights sent = all ? sent_bytes(states, train) : updated_bytes(states, train);
  add(OpName::weight_gather, Pattern::all_gather,
      {sent.dense, calls_for(come.dense, dense_units(come, train), train)}, dense.inside,
      ops.gather);
  add(OpName::weight_gather, Pattern::all_gather,
      {sent.experts, calls_for(come.experts, expert_units(come.mixtures), train)}, experts.inside,
      ops.gather);
}

Seconds exposed_traffic(Seconds work, Seconds traffic, double layers, const TrafficPath& path) {
  if (!path.overlap) return traffic;
  const Seconds first = traffic / std::max(1.0, layers);
  const Seconds beside = traffic - first;
  const Seconds longer =
      longer_beside(work, beside, taken_of(double(path.multiprocessors), path.device));
  return first + std::max(longer, beside - work);
}

Seconds exposed_in_turn(Seconds pass, Seconds traffic, double layers, const ChunkTurns& turns,
                        const TrafficPath& path) {
  const Seconds last = exposed_traffic(pass, traffic, layers, path);
  if (turns.sent <= 1) return last;
  constexpr double nothing_first = std::numeric_limits<double>::infinity();
  const Seconds others = exposed_traffic(pass * turns.row, traffic, nothing_first, path);
  return (last + others * (turns.sent - 1)) / turns.sent;
}

void hide(double share, const Device& device, KernelRow& row) {
  row.work.hidden = row.work.time * share;
  draw_beside(row.work.hidden, device, row.work.energy);
  row.work.low *= 1 - share;
  row.work.high *= 1 - share;
}

Seconds send_time(const StepContext& context, const TrainSettings& train) {
  return collective_time(stage_transfer(context.shard, train), context.fabric, context.device,
                         context.calibration)
             .total() *
         context.links_longer;
}

}  // namespace engine
