#include "engine/training/chunk_kinds.h"

#include <algorithm>

#include "engine/training/adapters.h"

namespace engine {
namespace {

// The device cannot run ahead of the launches.
Seconds pass_time(const DeviceTime& device, const HostSettings& host) {
  const double launches = device.launches();
  const Seconds launching = host.launch_cost * launches;
  return std::max(device.total() + host.kernel_gap * launches, launching);
}

}  // namespace

ChunkKinds::ChunkKinds(const StepContext& context, const TrainSettings& train, std::int64_t chunks,
                       TrainScratch& scratch)
    : context_(context), train_(train), known_(scratch) {
  std::vector<LayerChunk> cut;
  cut_into_chunks(*context.shard.model, train, chunks, cut);
  kind_of_.reserve(cut.size());
  for (const LayerChunk& chunk : cut) {
    const auto same = std::ranges::find(kinds_, chunk, &ChunkKind::chunk);
    kind_of_.push_back(std::size_t(same - kinds_.begin()));
    if (same == kinds_.end()) kinds_.push_back(placed(chunk));
  }
}

ChunkKind ChunkKinds::placed(const LayerChunk& chunk) {
  const ModelShard& shard = context_.shard;
  ChunkKind kind{.chunk = chunk};
  kind.states.all = chunk_weights(shard, chunk.span);
  if (train_.has_adapters()) {
    pass_ops(shard, chunk, train_, ops_);
    kind.states.trained.dense = adapter_weights(ops_.forward);
  } else {
    kind.states.trained =
        chunk.trained == chunk.span ? kind.states.all : chunk_weights(shard, chunk.trained);
  }
  kind.memory = state_memory(kind.states, chunk, shard.parallel, train_);
  kind.activations = kept_activations(shard, chunk, train_);
  return kind;
}

void ChunkKinds::find_times() {
  known_.begin(context_, train_);
  for (ChunkKind& kind : kinds_) {
    context_.charge(kWorkOfAStep);
    pass_ops(context_.shard, kind.chunk, train_, ops_);
    time_passes(kind.passes);
    add_copies(kind);
    add_traffic(kind);
  }
}

void ChunkKinds::time_passes(ChunkPasses& passes) {
  const auto timed = [&](const OpList& ops, Phase phase, CallRows& known) {
    return device_time(ops, context_, phase, nullptr, &known);
  };
  passes.forward = timed(ops_.forward, Phase::forward, known_.forward);
  passes.recomputed = timed(ops_.recomputed, Phase::recompute, known_.forward);
  passes.inputs = timed(ops_.inputs, Phase::backward, known_.inputs);
  passes.weights = timed(ops_.weights, Phase::backward, known_.weights);
  passes.forward_time = pass_time(passes.forward, context_.host);
  passes.recompute_time = pass_time(passes.recomputed, context_.host);
  passes.inputs_time = pass_time(passes.inputs, context_.host);
  passes.weights_time = pass_time(passes.weights, context_.host);
}

// Weights that replicas share out are gathered for each pass, and gradients scattered after it.
void ChunkKinds::add_traffic(ChunkKind& kind) const {
  const Parallelism& parallel = context_.shard.parallel;
  if (parallel.dp * parallel.cp == 1) return;
  ReplicaOps ops;
  replica_ops(parallel, kind.states, train_, ops);
  kind.scatter = device_time(ops.scatter, context_, Phase::gradients, nullptr).total();
  kind.gather = device_time(ops.gather, context_, Phase::gradients, nullptr).total();
  if (train_.zero < 3) return;
  ChunkPasses& passes = kind.passes;
  const double layers = double(kind.chunk.span.layers.all());
  const auto go_beside = [&](Seconds takes, Seconds& work) {
    const Seconds exposed = exposed_traffic(work, takes, layers, train_.overlap, context_.device);
    work += exposed;
    passes.waiting += exposed;
    passes.hidden += takes - std::min(takes, exposed);
  };
  go_beside(kind.gather, passes.forward_time);
  if (kind.chunk.has_gradients()) go_beside(kind.gather + kind.scatter, passes.inputs_time);
}

void ChunkKinds::add_copies(ChunkKind& kind) const {
  if (kind.activations.offloaded <= 0) return;
  ChunkPasses& passes = kind.passes;
  passes.copies = offload_copies(kind.activations.offloaded,
                                 {.forward = passes.forward_time,
                                  .backward = passes.backward_time(),
                                  .layers = double(kind.chunk.trained.layers.all())},
                                 train_, context_);
  passes.forward_time += passes.copies->out.work.exposed();
  passes.inputs_time += passes.copies->back.work.exposed();
}

void ChunkKinds::add_rows(std::size_t chunk, double count, Breakdown& rows) {
  pass_ops(context_.shard, (*this)[chunk].chunk, train_, ops_);
  const auto add = [&](const OpList& ops, Phase phase, CallRows& known) {
    row_scratch_.clear();
    device_time(ops, context_, phase, &row_scratch_, &known);
    for (const KernelRow& row : row_scratch_) rows.add(row, count);
  };
  add(ops_.forward, Phase::forward, known_.forward);
  add(ops_.recomputed, Phase::recompute, known_.forward);
  add(ops_.inputs, Phase::backward, known_.inputs);
  add(ops_.weights, Phase::backward, known_.weights);
  if (const auto& copies = (*this)[chunk].passes.copies) {
    rows.add(copies->out, count);
    rows.add(copies->back, count);
  }
}

}  // namespace engine
