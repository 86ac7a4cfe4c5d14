// The chunks of a pipeline, each kind of them timed once: most are alike.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/training/activation_offload.h"
#include "engine/training/passes/launches.h"
#include "engine/training/passes/train_ops.h"
#include "engine/training/pipeline/pipeline_schedule.h"
#include "engine/training/pipeline/stage_pools.h"
#include "engine/training/replica_traffic.h"
#include "engine/training/settings/train_settings.h"
#include "engine/training/train_memory.h"
#include "engine/training/train_scratch.h"

namespace engine {

// In which the device does nothing: between kernels, and until the host has launched the next one.
struct HostWait {
  Seconds gaps, launches;
  Seconds behind;  // of launches: they are fewer where the device waits for something else
};

// A part of each layer, in the passes of one micro-batch.
struct BlockTime {
  DeviceTime forward, back, weights;

  Seconds backward_time() const { return back.total() + weights.total(); }
};

// The passes of one micro-batch through one chunk.
struct ChunkPasses {
  // Gradients of weights are put off, to other moments than those of inputs.
  bool weights_apart = false;
  ExchangeOps exchange_ops = ExchangeOps::in_passes;
  DeviceTime forward, recomputed, inputs, weights;
  Seconds forward_time, recompute_time, inputs_time, weights_time;
  // How many times longer arithmetic takes than at the full clock: in the forward pass, in the backward pass, and in gradients of
  // weights that are put off.
  double forward_clock = 1, backward_clock = 1, weights_clock = 1;
  // Of these: they wait for the host.
  HostWait forward_host, backward_host;
  // Of these: they wait for weights or gradients of other replicas; and traffic that passes beside them.
  Seconds waiting, hidden;
  // Tokens to their experts and back, where that goes on beside another micro-batch: its exposed part is in the times above.
  DeviceTime exchange, exchange_back;
  double exchange_hidden = 0;    // share of them that passes beside work
  BlockTime experts, attention;  // of the passes, where an exchange goes on beside them
  // Copies of activations to the host and back, if there are any.
  std::optional<OffloadCopies> copies;

  Seconds backward_time() const { return recompute_time + inputs_time + weights_time; }
  Seconds time() const { return forward_time + backward_time(); }
};

struct PassLaunches {
  Launches forward, again, inputs, weights;
};

struct ChunkKind {
  LayerChunk chunk;
  const StepContext* on = nullptr;  // devices that it lies on
  ChunkStates states;
  ChunkPasses passes;                 // by themselves
  std::optional<ChunkPasses> paired;  // a forward pass beside a backward pass, where that differs
  StateMemory memory;
  KeptActivations activations;
  Seconds scatter, gather;    // between replicas
  Seconds across;             // and between their groups, once a step
  double gathered_again = 0;  // share of the weights that a backward pass needs, too

  // The share of gathered weights that are gathered first and only once (train.root_unit).
  double root_share(const TrainSettings& train) const {
    return train.root_unit ? states.all.ends() / states.all.total() : 0;
  }
  // In the steady state of a pipeline, where passes go in pairs.
  const ChunkPasses& in_pairs() const { return paired ? *paired : passes; }
};

class ChunkKinds {
 public:
  // What lies in memory is known at once; times are when they have been asked for.
  ChunkKinds(const StagePools& pools, const TrainSettings& train, TrainScratch& scratch);
  void find_times();

  std::int64_t size() const { return std::int64_t(kind_of_.size()); }
  const ChunkKind& operator[](std::int64_t chunk) const {
    return kinds_[kind_of_[std::size_t(chunk)]];
  }

  // Layers that one device passes through in turn, whatever chunks they are cut into: what belongs to the next one travels
  // beside the present one.
  double layers_in_turn(const ChunkKind& kind) const;
  double micro_batches(const ChunkKind& kind) const;

  // Adds the rows of passes of one chunk that run alone, and of those that run in pairs.
  void add_rows(std::int64_t chunk, const PassCounts& alone, const PassCounts& in_pairs,
                Breakdown& rows);
  bool puts_off_weights() const;

 private:
  ChunkKind placed(const LayerChunk& chunk, const StepContext& on);
  PassCalls& calls_of(const ChunkKind& kind);
  double devices() const;  // of the job
  void time_passes(const ChunkKind& kind, ChunkPasses& passes);
  void time_pair(ChunkKind& kind);
  void set_clocks(ChunkPasses& passes, const PassLaunches& launches,
                  const StepContext& context) const;
  void add_host(ChunkPasses& passes, const PassLaunches& launches, const HostSettings& host) const;
  // Says which operations count.
  using Counts = bool (*)(OpName name);
  DeviceTime time_of(const OpList& ops, const ChunkKind& kind, CallRows& known, Counts counts);
  BlockTime time_of_block(const ChunkKind& kind, Counts counts);
  void time_exchange(const ChunkKind& kind, ChunkPasses& passes);
  void add_exchange(const ChunkKind& kind, ChunkPasses& passes);
  void time_traffic(ChunkKind& kind) const;
  void add_traffic(const ChunkKind& kind, ChunkPasses& passes) const;
  void add_copies(const ChunkKind& kind, ChunkPasses& passes) const;
  void add_rows(const ChunkKind& kind, const ChunkPasses& passes, const PassCounts& counts,
                Breakdown& rows);

  StagePools pools_;
  const TrainSettings& train_;
  Schedule schedule_;
  std::int64_t chunks_per_stage_;
  std::vector<std::size_t> kind_of_;
  std::vector<ChunkKind> kinds_;
  PassOps ops_;
  TrainScratch& known_;
  std::vector<KernelRow> row_scratch_;
};

}  // namespace engine
