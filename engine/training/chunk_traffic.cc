// What travels between replicas and to the host beside the passes of a chunk, and the rows of all of it.
#include <algorithm>

#include "engine/step/pass_clock.h"
#include "engine/training/chunk_kinds.h"

namespace engine {

// Gradients that replicas share out are scattered after each pass; weights that they share out are gathered before it.
void ChunkKinds::time_traffic(ChunkKind& kind) const {
  const StepContext& context = *kind.on;
  const Parallelism& parallel = context.shard.parallel;
  if (replicas_of(parallel, train_).dense == 1) return;
  ReplicaOps ops;
  replica_ops(parallel, kind.states, train_, ops);
  kind.scatter = device_time(ops.scatter, context, Phase::gradients, nullptr).total();
  kind.across = device_time(ops.across, context, Phase::gradients, nullptr).total();
  kind.gather = device_time(ops.gather, context, Phase::gradients, nullptr).total();
  // Adapters send gradients through every layer; layers before the first trained one see none.
  if (train_.zero < 3 || !train_.reshard || !kind.chunk.has_gradients()) return;
  const ChunkWeights &all = kind.states.all, &trained = kind.states.trained;
  const double needed = train_.has_adapters() ? 1 : trained.total() / all.total();
  kind.gathered_again = std::max(0.0, needed - kind.root_share(train_));
}

void ChunkKinds::add_traffic(const ChunkKind& kind, ChunkPasses& passes) const {
  const StepContext& context = *kind.on;
  const double scatters = scatters_per_pass(train_, pools_.stages());
  if (scatters == 0) return;
  const double layers = layers_in_turn(kind) * calls_of_a_layer(train_);
  const TrafficPath path{train_.overlap, train_.collective_multiprocessors, context.device};
  const auto told = [&](Seconds takes, Seconds exposed) {
    passes.waiting += exposed * scatters;
    passes.hidden += (takes - std::min(takes, exposed)) * scatters;
    return exposed * scatters;
  };
  const auto exposed_beside = [&](Seconds work, Seconds takes) {
    return told(takes, exposed_traffic(work, takes, layers, path));
  };
  const auto go_beside = [&](Seconds takes, Seconds& work) { work += exposed_beside(work, takes); };
  if (train_.zero == 2) {
    Seconds& made = passes.weights_apart ? passes.weights_time : passes.inputs_time;
    const double row = 1 / scatters;
    const double sent = double(chunks_per_stage_) * std::max(1.0, micro_batches(kind) / row);
    made += row > 1 ? told(kind.scatter,
                           exposed_in_turn(passes.backward_time(), kind.scatter,
                                           double(kind.chunk.span.layers.all()), {sent, row}, path))
                    : exposed_beside(passes.backward_time(), kind.scatter);
    return;
  }
  // Nothing goes on beside what is not gathered ahead, nor beside a root, which comes first and stays.
  const auto wait_for = [&](Seconds takes, Seconds& work) {
    passes.waiting += takes;
    work += takes;
  };
  const Seconds first = kind.gather * (train_.prefetch > 0 ? kind.root_share(train_) : 1);
  go_beside(kind.gather - first, passes.forward_time);
  wait_for(first, passes.forward_time);
  if (!kind.chunk.has_gradients()) return;
  const Seconds again = kind.gather * kind.gathered_again;
  const Seconds waited = train_.prefetch > 0 ? Seconds{0} : again;
  // All of a backward pass goes on beside both, unless it is in two: the latter makes the gradients that are scattered.
  if (passes.weights_apart) {
    const Seconds work = passes.recompute_time + passes.inputs_time;
    passes.inputs_time += exposed_beside(work, again - waited);
    go_beside(kind.scatter, passes.weights_time);
  } else {
    passes.inputs_time += exposed_beside(passes.backward_time(), again - waited + kind.scatter);
  }
  wait_for(waited, passes.inputs_time);
}

void ChunkKinds::add_copies(const ChunkKind& kind, ChunkPasses& passes) const {
  if (kind.activations.offloaded <= 0) return;
  // Gradients of weights that are put off go beside nothing that comes back for this pass.
  passes.copies =
      offload_copies(kind.activations.offloaded,
                     {.forward = passes.forward_time,
                      .backward = passes.weights_apart ? passes.recompute_time + passes.inputs_time
                                                       : passes.backward_time(),
                      .layers = layers_in_turn(kind) * micro_batches(kind)},
                     train_, *kind.on);
  passes.forward_time += passes.copies->out.work.exposed();
  passes.inputs_time += passes.copies->back.work.exposed();
}

void ChunkKinds::add_rows(std::int64_t chunk, const PassCounts& alone, const PassCounts& in_pairs,
                          Breakdown& rows) {
  const ChunkKind& kind = (*this)[chunk];
  pass_ops(kind.on->shard, kind.chunk, train_, ops_);
  add_rows(kind, kind.passes, alone, rows);
  if (kind.paired) {
    pass_ops(kind.on->shard, kind.chunk, train_, ops_, kind.paired->exchange_ops);
  }
  add_rows(kind, kind.in_pairs(), in_pairs, rows);
}

void ChunkKinds::add_rows(const ChunkKind& kind, const ChunkPasses& passes,
                          const PassCounts& counts, Breakdown& rows) {
  if (counts.forward <= 0 && counts.backward <= 0) return;
  PassCalls& known = calls_of(kind);
  const auto add = [&](const OpList& ops, Phase phase, CallRows& calls, double clock, double count,
                       double hidden = 0) {
    row_scratch_.clear();
    device_time(ops, *kind.on, phase, &row_scratch_, &calls);
    for (KernelRow& row : row_scratch_) {
      slow_down(clock, kind.on->device, row);
      if (hidden > 0) hide(hidden, kind.on->device, row);
      rows.add(row, count);
    }
  };
  const auto [there, back] = counts;
  add(ops_.forward, Phase::forward, known.forward, passes.forward_clock, there);
  add(ops_.recomputed, Phase::recompute, known.recomputed(train_), passes.backward_clock, back);
  add(ops_.inputs, Phase::backward, known.inputs, passes.backward_clock, back);
  add(ops_.weights, Phase::backward, known.weights, passes.weights_clock, back);
  const auto add_idle = [&](Phase phase, OpName op, Family family, Seconds time, double count) {
    if (time.value <= 0) return;
    rows.add({.phase = phase,
              .op = op,
              .family = family,
              .bound = Bound::host,
              .work = {.calls = 1, .time = time, .low = time, .high = time}},
             count);
  };
  const auto add_waits = [&](Phase phase, const HostWait& wait, double count) {
    add_idle(phase, OpName::gap, Family::gap, wait.gaps, count);
    add_idle(phase, OpName::host, Family::host, wait.launches, count);
  };
  add_waits(Phase::forward, passes.forward_host, there);
  add_waits(Phase::backward, passes.backward_host, back);
  add(ops_.exchange, Phase::forward, known.forward, 1, there, passes.exchange_hidden);
  add(ops_.exchange_back, Phase::backward, known.inputs, 1, back, passes.exchange_hidden);
  if (const auto& copies = passes.copies) {
    rows.add(copies->out, there);
    rows.add(copies->back, back);
  }
}

}  // namespace engine
