#include "engine/training/replica_traffic.h"

#include <algorithm>

#include "engine/comm/collective_time.h"
#include "engine/training/stages.h"
#include "engine/training/state_bytes.h"
#include "engine/training/train_memory.h"
#include "engine/training/train_ops.h"

namespace engine {
namespace {

// Multiprocessors that a collective occupies, of the 132 of an H100: NCCL's default is 16 channels between nodes.
constexpr double kChannels = 16;

// Between replicas of the same shard, which lie a tensor-parallel group apart.
void add(OpName name, Pattern pattern, double bytes, double ranks, const Parallelism& parallel,
         OpList& ops) {
  if (ranks <= 1 || bytes <= 0) return;
  const Family family = pattern == Pattern::all_reduce       ? Family::all_reduce
                        : pattern == Pattern::reduce_scatter ? Family::reduce_scatter
                                                             : Family::all_gather;
  ops.add(name, family, 1,
          Collective{.pattern = pattern,
                     .bytes = bytes,
                     .ranks = std::int64_t(ranks),
                     .stride = parallel.tp,
                     .library = Library::general});
}

}  // namespace

ReplicaTraffic replica_traffic(const StepContext& context, const StageSpan& span,
                               const TrainSettings& train) {
  const Parallelism& parallel = context.shard.parallel;
  const ChunkWeights weights = chunk_weights(context.shard, span);
  const StateSharing replicas = replicas_of(parallel);
  const StateBytes bytes = state_bytes(train);
  const Pattern sum = train.zero == 0 ? Pattern::all_reduce : Pattern::reduce_scatter;
  OpList gradients, gathered;
  add(OpName::gradient_sum, sum, bytes.gradients * weights.dense, replicas.dense, parallel,
      gradients);
  add(OpName::gradient_sum, sum, bytes.gradients * weights.experts, replicas.experts, parallel,
      gradients);
  if (train.zero > 0) {
    add(OpName::weight_gather, Pattern::all_gather, bytes.weights * weights.dense, replicas.dense,
        parallel, gathered);
    add(OpName::weight_gather, Pattern::all_gather, bytes.weights * weights.experts,
        replicas.experts, parallel, gathered);
  }
  ReplicaTraffic traffic;
  traffic.scatter = device_time(gradients, context, Phase::gradients, &traffic.rows).total();
  traffic.gather = device_time(gathered, context, Phase::gradients, &traffic.rows).total();
  return traffic;
}

Seconds exposed_traffic(Seconds work, Seconds traffic, double layers, bool overlap,
                        const Device& device) {
  if (!overlap) return traffic;
  const Seconds first = traffic / std::max(1.0, layers);
  const Seconds beside = traffic - first;
  const double taken = std::min(0.5, kChannels / double(device.multiprocessors));
  const Seconds slowed = std::min(work, beside) * taken;
  return first + std::max(Seconds{0}, beside - work) + slowed;
}

Seconds send_time(const StepContext& context, const TrainSettings& train) {
  return collective_time(stage_transfer(context.shard, train), context.fabric, context.device,
                         context.calibration)
      .total();
}

}  // namespace engine
