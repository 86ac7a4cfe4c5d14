// What data-parallel replicas send one another for a chunk of layers, and how much of it work hides.
#pragma once

#include "engine/base/units.h"
#include "engine/model/model_ops.h"
#include "engine/step/step_time.h"
#include "engine/training/settings/train_settings.h"
#include "engine/training/train_memory.h"

namespace engine {

// In how many calls replicas that share weights out gather a dense layer.
double calls_of_a_layer(const TrainSettings& train);

struct ReplicaOps {
  OpList scatter;  // gradients are summed: all at once, or scattered to the replicas that keep them
  OpList across;   // of what each group scattered pass by pass, the sum of all groups: once a step
  OpList gather;   // weights are gathered from the replicas that keep them
};
void replica_ops(const Parallelism& parallel, const ChunkStates& states, const TrainSettings& train,
                 ReplicaOps& ops);

// What a pass waits for traffic that goes on beside it: what is left of it when the work is done, the share of the first
// layer, which nothing precedes, and the time by which its kernels slow the work down.
struct TrafficPath {
  bool overlap = true;
  std::int64_t multiprocessors = 0;  // that a collective occupies
  const Device& device;
};
Seconds exposed_traffic(Seconds work, Seconds traffic, double layers, const TrafficPath& path);

// Where chunks of a stage take turns, what one of them sends goes on beside a row of passes of the next one. Only the last of all
// has nothing but its own pass beside it (and the first that is gathered).
struct ChunkTurns {
  double sent = 1;  // how often something is sent: by all chunks, in a step
  double row = 1;   // passes of a chunk in a row
};
// The mean of all that are sent; `pass` is one of the chunk, of so many layers.
Seconds exposed_in_turn(Seconds pass, Seconds traffic, double layers, const ChunkTurns& turns,
                        const TrafficPath& path);

// A share of a row's time passes beside other work.
void hide(double share, const Device& device, KernelRow& row);

// From a pipeline stage to the next.
Seconds send_time(const StepContext& context, const TrainSettings& train);

}  // namespace engine
