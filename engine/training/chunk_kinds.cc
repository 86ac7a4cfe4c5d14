#include "engine/training/chunk_kinds.h"

#include <algorithm>

#include "engine/step/pass_clock.h"
#include "engine/training/exchange_windows.h"
#include "engine/training/passes/adapters.h"
#include "engine/training/passes/launches.h"

namespace engine {
namespace {

// The device has nothing to do between kernels, and after the host has waited for it.
HostWait idle_time(const Launches& launches, const HostSettings& host) {
  return {host.kernel_gap * launches.all, host.launch_cost * launches.waited_for};
}
Seconds total(const HostWait& wait) { return wait.gaps + wait.launches; }

// The device cannot run ahead of the launches: how long it waits for them.
Seconds behind_launches(Seconds device, const Launches& launches, const HostSettings& host) {
  const Seconds busy = host.launch_cost * launches.all + host.layer_cost * launches.layers;
  return std::max(Seconds{0}, busy - device);
}

}  // namespace

ChunkKinds::ChunkKinds(const StagePools& pools, const TrainSettings& train,
                       std::int64_t chunks_per_stage, TrainScratch& scratch)
    : pools_(pools), train_(train), chunks_per_stage_(chunks_per_stage), known_(scratch) {
  std::vector<LayerChunk> cut;
  const std::int64_t stages = pools.stages();
  cut_into_chunks(*pools.main.shard.model, train,
                  {.all = stages * chunks_per_stage, .stages = stages, .tail = pools.tail_stages()},
                  cut);
  kind_of_.reserve(cut.size());
  for (std::size_t c = 0; c < cut.size(); ++c) {
    const StepContext& on = pools.of(std::int64_t(c) % stages);
    const auto same = std::ranges::find_if(
        kinds_, [&](const ChunkKind& kind) { return kind.on == &on && kind.chunk == cut[c]; });
    kind_of_.push_back(std::size_t(same - kinds_.begin()));
    if (same == kinds_.end()) kinds_.push_back(placed(cut[c], on));
  }
}

ChunkKind ChunkKinds::placed(const LayerChunk& chunk, const StepContext& on) {
  const ModelShard& shard = on.shard;
  ChunkKind kind{.chunk = chunk, .on = &on};
  kind.states.all = chunk_weights(shard, chunk.span);
  kind.states.wide = trains_wide(shard);
  kind.states.kept = kept_narrow(shard, train_);
  kind.states.sent = sent_narrow(shard, train_);
  if (train_.has_adapters()) {
    pass_ops(shard, chunk, train_, ops_);
    kind.states.trained = {.dense = adapter_weights(ops_.forward),
                           .layers = kind.states.all.layers};
  } else {
    kind.states.trained =
        chunk.trained == chunk.span ? kind.states.all : chunk_weights(shard, chunk.trained);
  }
  kind.memory = state_memory(kind.states, {shard, pools_.stages()}, train_);
  kind.activations = kept_activations(shard, chunk, train_);
  return kind;
}

double ChunkKinds::layers_in_turn(const ChunkKind& kind) const {
  return double(kind.chunk.span.layers.all() * chunks_per_stage_);
}

double ChunkKinds::micro_batches(const ChunkKind& kind) const {
  return double(train_.global_batch / (train_.micro_batch * kind.on->shard.parallel.dp));
}

PassCalls& ChunkKinds::calls_of(const ChunkKind& kind) {
  KnownCalls& known = kind.on == pools_.tail ? known_.tail : known_.main;
  return known.of(kind.chunk.span.layers);
}

void ChunkKinds::find_times() {
  known_.main.begin(pools_.main);
  if (pools_.tail != nullptr) known_.tail.begin(*pools_.tail);
  for (ChunkKind& kind : kinds_) {
    kind.on->charge(kWorkOfAStep);
    pass_ops(kind.on->shard, kind.chunk, train_, ops_);
    time_passes(kind);
    add_exchange(kind);
    add_copies(kind);
    add_traffic(kind);
  }
}

bool ChunkKinds::puts_off_weights() const {
  return train_.schedule == Schedule::zero_bubble && pools_.stages() > 1;
}

void ChunkKinds::time_passes(ChunkKind& kind) {
  PassCalls& known = calls_of(kind);
  ChunkPasses& passes = kind.passes;
  const StepContext& context = *kind.on;
  const auto timed = [&](const OpList& ops, Phase phase, CallRows& calls) {
    return device_time(ops, context, phase, nullptr, &calls);
  };
  passes.forward = timed(ops_.forward, Phase::forward, known.forward);
  passes.recomputed = timed(ops_.recomputed, Phase::recompute, known.recomputed(train_));
  passes.inputs = timed(ops_.inputs, Phase::backward, known.inputs);
  passes.weights = timed(ops_.weights, Phase::backward, known.weights);
  const auto launched = [&](const OpList& ops, PassWay way) {
    return Launches{.all = launches_of(ops, way, train_),
                    .layers = layers_gone_through(ops, way),
                    .waited_for = way == PassWay::forward ? launches_waited_for(ops, train_) : 0};
  };
  PassLaunches launches{.forward = launched(ops_.forward, PassWay::forward),
                        .again = launched(ops_.recomputed, PassWay::forward),
                        .inputs = launched(ops_.inputs, PassWay::inputs),
                        .weights = launched(ops_.weights, PassWay::weights)};
  launches.forward.add(launched(ops_.exchange, PassWay::forward));
  launches.inputs.add(launched(ops_.exchange_back, PassWay::inputs));
  time_exchange(kind);
  set_clocks(passes, launches, context);
  add_host(passes, launches, context.host);
}

void Launches::add(const Launches& other) {
  all += other.all;
  layers += other.layers;
  waited_for += other.waited_for;
}

double ChunkKinds::devices() const {
  const double tail = pools_.tail == nullptr ? 0 : double(pools_.tail->shard.parallel.devices());
  return double(pools_.main.shard.parallel.devices()) + tail;
}

// Passes that follow one another directly have one clock: that of the device that draws most for them, for which all others wait.
void ChunkKinds::set_clocks(ChunkPasses& passes, const PassLaunches& launches,
                            const StepContext& context) const {
  const Device& device = context.device;
  const double hungriest = known_.hungriest.of(device.power_spread, devices());
  const auto idle = [&](const Launches& of) { return total(idle_time(of, context.host)); };
  const auto slowdown = [&](std::initializer_list<const DeviceTime*> parts, Seconds at_rest) {
    return pass_slowdown(parts, at_rest, device, hungriest);
  };
  passes.forward_clock =
      slowdown({&passes.forward}, idle(launches.forward) + passes.waits_for_tokens());
  const Seconds before_weights =
      idle(launches.again) + idle(launches.inputs) + passes.waits_for_tokens_back();
  if (puts_off_weights()) {
    passes.backward_clock = slowdown({&passes.recomputed, &passes.inputs}, before_weights);
    passes.weights_clock = slowdown({&passes.weights}, idle(launches.weights));
  } else {
    passes.backward_clock = passes.weights_clock =
        slowdown({&passes.recomputed, &passes.inputs, &passes.weights},
                 before_weights + idle(launches.weights));
  }
  slow_down(passes.forward_clock, device, passes.forward);
  slow_down(passes.backward_clock, device, passes.recomputed);
  slow_down(passes.backward_clock, device, passes.inputs);
  slow_down(passes.weights_clock, device, passes.weights);
  for (BlockTime* block : {&passes.experts, &passes.attention}) {
    slow_down(passes.forward_clock, device, block->forward);
    slow_down(passes.backward_clock, device, block->back);
    slow_down(passes.weights_clock, device, block->weights);
  }
}

void ChunkKinds::add_host(ChunkPasses& passes, const PassLaunches& launches,
                          const HostSettings& host) const {
  const auto& [forward, again, inputs, weights] = launches;
  const auto pass = [&](const DeviceTime& device, const Launches& of, HostWait& of_host) {
    const HostWait idle = idle_time(of, host);
    of_host.gaps += idle.gaps;
    of_host.launches += idle.launches;
    return device.total() + total(idle);
  };
  const auto wait = [&](Seconds& time, Seconds device, const Launches& launched,
                        HostWait& of_host) {
    const Seconds behind = behind_launches(device, launched, host);
    time += behind;
    of_host.launches += behind;
  };
  passes.forward_host = passes.backward_host = {};
  passes.forward_time =
      pass(passes.forward, forward, passes.forward_host) + passes.waits_for_tokens();
  wait(passes.forward_time, passes.forward_time, forward, passes.forward_host);
  passes.recompute_time = pass(passes.recomputed, again, passes.backward_host);
  passes.inputs_time =
      pass(passes.inputs, inputs, passes.backward_host) + passes.waits_for_tokens_back();
  passes.weights_time = pass(passes.weights, weights, passes.backward_host);
  // Over a backward pass the host may run ahead; over gradients of weights that are put off it may not.
  Launches backward = again;
  backward.add(inputs);
  if (puts_off_weights()) {
    wait(passes.inputs_time, passes.recompute_time + passes.inputs_time, backward,
         passes.backward_host);
    wait(passes.weights_time, passes.weights_time, weights, passes.backward_host);
  } else {
    backward.add(weights);
    wait(passes.inputs_time, passes.backward_time(), backward, passes.backward_host);
  }
}

DeviceTime ChunkKinds::time_of(const OpList& ops, const ChunkKind& kind, CallRows& known,
                               Counts counts) {
  row_scratch_.clear();
  device_time(ops, *kind.on, Phase::forward, &row_scratch_, &known);
  DeviceTime sum;
  for (const KernelRow& row : row_scratch_) {
    if (counts(row.op)) sum.add(row);
  }
  return sum;
}

BlockTime ChunkKinds::time_of_block(const ChunkKind& kind, Counts counts) {
  PassCalls& known = calls_of(kind);
  BlockTime block{.forward = time_of(ops_.forward, kind, known.forward, counts),
                  .back = time_of(ops_.inputs, kind, known.inputs, counts),
                  .weights = time_of(ops_.weights, kind, known.weights, counts)};
  block.back.add(time_of(ops_.recomputed, kind, known.recomputed(train_), counts));
  return block;
}

// The passes of one micro-batch go on while tokens of another one travel. Those of one micro-batch of all have nothing
// beside them: while the first one goes forward, and the last one backward.
void ChunkKinds::time_exchange(ChunkKind& kind) {
  if (ops_.exchange.size() == 0) return;
  PassCalls& known = calls_of(kind);
  ChunkPasses& passes = kind.passes;
  passes.exchange = device_time(ops_.exchange, *kind.on, Phase::forward, nullptr, &known.forward);
  passes.exchange_back =
      device_time(ops_.exchange_back, *kind.on, Phase::backward, nullptr, &known.inputs);
  passes.exchange_alone = 1 / micro_batches(kind);
  passes.experts = time_of_block(kind, is_of_experts);
  passes.attention = time_of_block(kind, is_of_attention);
}

void ChunkKinds::add_exchange(ChunkKind& kind) {
  ChunkPasses& passes = kind.passes;
  const Seconds there = passes.exchange.total(), back = passes.exchange_back.total();
  const Seconds takes = there + back;
  if (takes.value <= 0) return;
  PassCalls& known = calls_of(kind);
  const double others = 1 - passes.exchange_alone;
  const Seconds results = time_of(ops_.exchange, kind, known.forward, is_result).total() * others;
  const Seconds gradients =
      time_of(ops_.exchange_back, kind, known.inputs, is_result).total() * others;
  const Seconds tokens = takes * others - results - gradients;
  const BlockTime &experts = passes.experts, &attention = passes.attention;
  const Seconds all = exposed_exchange(
      {tokens, results, gradients},
      {.attention = attention.forward.total(),
       .attention_back = attention.backward_time(),
       .experts = experts.forward.total() + experts.backward_time()},
      {double(train_.collective_multiprocessors), double(kind.on->device.multiprocessors)});
  // Where nothing went on beside it, it would be waited for, but for what hosts take longer anyway.
  const auto waited_for = [&](Seconds travels, const HostWait& host) {
    return std::max(Seconds{0}, travels * others - host.launches);
  };
  const Seconds exposed = std::min(
      all, waited_for(there, passes.forward_host) + waited_for(back, passes.backward_host));
  passes.exchange_hidden = others - exposed / takes;
  for (DeviceTime* part : {&passes.exchange, &passes.exchange_back}) {
    part->communication.hidden = part->communication.time * passes.exchange_hidden;
  }
  passes.forward_time += exposed * (there / takes);
  passes.inputs_time += exposed * (back / takes);
}

// Gradients that replicas share out are scattered after each pass; weights that they share out are gathered before it.
void ChunkKinds::add_traffic(ChunkKind& kind) const {
  const StepContext& context = *kind.on;
  const Parallelism& parallel = context.shard.parallel;
  if (parallel.dp * parallel.cp == 1) return;
  ReplicaOps ops;
  replica_ops(parallel, kind.states, train_, ops);
  kind.scatter = device_time(ops.scatter, context, Phase::gradients, nullptr).total();
  kind.across = device_time(ops.across, context, Phase::gradients, nullptr).total();
  kind.gather = device_time(ops.gather, context, Phase::gradients, nullptr).total();
  const double scatters = scatters_per_pass(train_, pools_.stages());
  if (scatters == 0) return;
  ChunkPasses& passes = kind.passes;
  const double layers = layers_in_turn(kind);
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
    Seconds& made = puts_off_weights() ? passes.weights_time : passes.inputs_time;
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
  const ChunkWeights &all = kind.states.all, &trained = kind.states.trained;
  const double root = train_.root_unit ? all.ends() / all.total() : 0;
  const Seconds first = kind.gather * (train_.prefetch > 0 ? root : 1);
  go_beside(kind.gather - first, passes.forward_time);
  wait_for(first, passes.forward_time);
  if (!kind.chunk.has_gradients()) return;
  // Adapters send gradients through every layer; layers before the first trained one see none.
  if (train_.reshard) {
    const double needed = train_.has_adapters() ? 1 : trained.total() / all.total();
    kind.gathered_again = std::max(0.0, needed - root);
  }
  const Seconds again = kind.gather * kind.gathered_again;
  const Seconds waited = train_.prefetch > 0 ? Seconds{0} : again;
  // All of a backward pass goes on beside both, unless it is in two: the latter makes the gradients that are scattered.
  if (puts_off_weights()) {
    const Seconds work = passes.recompute_time + passes.inputs_time;
    passes.inputs_time += exposed_beside(work, again - waited);
    go_beside(kind.scatter, passes.weights_time);
  } else {
    passes.inputs_time += exposed_beside(passes.backward_time(), again - waited + kind.scatter);
  }
  wait_for(waited, passes.inputs_time);
}

void ChunkKinds::add_copies(ChunkKind& kind) const {
  if (kind.activations.offloaded <= 0) return;
  ChunkPasses& passes = kind.passes;
  // Gradients of weights that are put off go beside nothing that comes back for this pass.
  passes.copies =
      offload_copies(kind.activations.offloaded,
                     {.forward = passes.forward_time,
                      .backward = puts_off_weights() ? passes.recompute_time + passes.inputs_time
                                                     : passes.backward_time(),
                      .layers = layers_in_turn(kind) * micro_batches(kind)},
                     train_, *kind.on);
  passes.forward_time += passes.copies->out.work.exposed();
  passes.inputs_time += passes.copies->back.work.exposed();
}

void ChunkKinds::add_rows(std::size_t chunk, double count, Breakdown& rows) {
  const ChunkKind& kind = (*this)[chunk];
  PassCalls& known = calls_of(kind);
  pass_ops(kind.on->shard, kind.chunk, train_, ops_);
  const auto add = [&](const OpList& ops, Phase phase, CallRows& calls, double clock,
                       double hidden = 0) {
    row_scratch_.clear();
    device_time(ops, *kind.on, phase, &row_scratch_, &calls);
    for (KernelRow& row : row_scratch_) {
      slow_down(clock, kind.on->device, row);
      if (hidden > 0) hide(hidden, kind.on->device, row);
      rows.add(row, count);
    }
  };
  const ChunkPasses& passes = kind.passes;
  add(ops_.forward, Phase::forward, known.forward, passes.forward_clock);
  add(ops_.recomputed, Phase::recompute, known.recomputed(train_), passes.backward_clock);
  add(ops_.inputs, Phase::backward, known.inputs, passes.backward_clock);
  add(ops_.weights, Phase::backward, known.weights, passes.weights_clock);
  const auto add_idle = [&](Phase phase, OpName op, Family family, Seconds time) {
    if (time.value <= 0) return;
    rows.add({.phase = phase,
              .op = op,
              .family = family,
              .bound = Bound::host,
              .work = {.calls = 1, .time = time, .low = time, .high = time}},
             count);
  };
  const auto add_waits = [&](Phase phase, const HostWait& wait) {
    add_idle(phase, OpName::gap, Family::gap, wait.gaps);
    add_idle(phase, OpName::host, Family::host, wait.launches);
  };
  add_waits(Phase::forward, passes.forward_host);
  add_waits(Phase::backward, passes.backward_host);
  add(ops_.exchange, Phase::forward, known.forward, 1, passes.exchange_hidden);
  add(ops_.exchange_back, Phase::backward, known.inputs, 1, passes.exchange_hidden);
  if (const auto& copies = kind.passes.copies) {
    rows.add(copies->out, count);
    rows.add(copies->back, count);
  }
}

}  // namespace engine
