#include "engine/training/chunk_kinds.h"

#include <algorithm>

#include "engine/step/pass_clock.h"
#include "engine/training/exchange_windows.h"
#include "engine/training/passes/adapters.h"

namespace engine {
namespace {

// The device has nothing to do between kernels, and after the host has waited for it.
HostWait idle_time(const Launches& launches, const HostSettings& host) {
  return {host.kernel_gap * launches.kernels, host.launch_cost * launches.waited_for};
}
Seconds total(const HostWait& wait) { return wait.gaps + wait.launches; }

// The device cannot run ahead of the launches: how long it waits for them.
Seconds behind_launches(Seconds device, const Launches& launches, const HostSettings& host) {
  const Seconds busy = host.launch_cost * launches.one_by_one +
                       host.graph_launch * launches.replays + host.layer_cost * launches.layers;
  return std::max(Seconds{0}, busy - device);
}

// What of a wait for something else is not over when the host has launched what the device waits for anyway.
Seconds launch_meanwhile(Seconds wait, HostWait& host) {
  const Seconds meanwhile = std::min(wait, host.behind);
  host.behind -= meanwhile;
  host.launches -= meanwhile;
  return wait - meanwhile;
}

}  // namespace

ChunkKinds::ChunkKinds(const StagePools& pools, const TrainSettings& train, TrainScratch& scratch)
    : pools_(pools),
      train_(train),
      schedule_(schedule_on(train, pools.stages())),
      chunks_per_stage_(chunks_per_stage(train, pools.stages())),
      known_(scratch) {
  std::vector<LayerChunk> cut;
  const std::int64_t stages = pools.stages();
  const ChunkPlaces places{schedule_, stages, stages * chunks_per_stage_};
  pools.main.charge(double(places.chunks) * double(sizeof(LayerChunk)) / 4);
  cut_into_chunks(*pools.main.shard.model, train,
                  {.all = places.chunks, .stages = stages, .tail = pools.tail_stages()}, cut);
  kind_of_.reserve(cut.size());
  for (std::size_t c = 0; c < cut.size(); ++c) {
    const StepContext& on = pools.of(places.stage_of(std::int64_t(c)));
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
  const double all =
      double(train_.global_batch / (train_.micro_batch * kind.on->shard.parallel.dp));
  return all / double(chunk_copies(train_, pools_.stages()));
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
    kind.passes.weights_apart = puts_off_weights();
    time_passes(kind, kind.passes);
    if (train_.batch_overlap || is_dual(schedule_)) time_pair(kind);
    time_traffic(kind);
    add_copies(kind, kind.passes);
    add_traffic(kind, kind.passes);
    if (!kind.paired) continue;
    add_copies(kind, *kind.paired);
    add_traffic(kind, *kind.paired);
  }
}

// In pairs nothing is put off. What would take longer side by side is done one after the other.
void ChunkKinds::time_pair(ChunkKind& kind) {
  if (kind.passes.weights_apart) time_passes(kind, kind.paired.emplace());
  if (!train_.batch_overlap) return;
  pass_ops(kind.on->shard, kind.chunk, train_, ops_, ExchangeOps::apart);
  if (ops_.exchange.size() == 0) return;
  ChunkPasses pair;
  pair.exchange_ops = ExchangeOps::apart;
  time_passes(kind, pair);
  if (pair.time() > kind.in_pairs().time()) return;
  add_exchange(kind, pair);
  kind.paired = pair;
}

// DualPipe puts some off as it fills and empties.
bool ChunkKinds::puts_off_weights() const {
  return schedule_ == Schedule::zero_bubble || is_dual(schedule_);
}

void ChunkKinds::time_passes(const ChunkKind& kind, ChunkPasses& passes) {
  PassCalls& known = calls_of(kind);
  const StepContext& context = *kind.on;
  const auto timed = [&](const OpList& ops, Phase phase, CallRows& calls) {
    return device_time(ops, context, phase, nullptr, &calls);
  };
  passes.forward = timed(ops_.forward, Phase::forward, known.forward);
  passes.recomputed = timed(ops_.recomputed, Phase::recompute, known.recomputed(train_));
  passes.inputs = timed(ops_.inputs, Phase::backward, known.inputs);
  passes.weights = timed(ops_.weights, Phase::backward, known.weights);
  const auto launched = [&](const OpList& ops, PassWay way) {
    return launches_of(ops, way, train_);
  };
  PassLaunches launches{.forward = launched(ops_.forward, PassWay::forward),
                        .again = launched(ops_.recomputed, PassWay::forward),
                        .inputs = launched(ops_.inputs, PassWay::inputs),
                        .weights = launched(ops_.weights, PassWay::weights)};
  launches.forward.add(launched(ops_.exchange, PassWay::forward));
  launches.inputs.add(launched(ops_.exchange_back, PassWay::inputs));
  time_exchange(kind, passes);
  set_clocks(passes, launches, context);
  add_host(passes, launches, context.host);
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
  passes.forward_clock = slowdown({&passes.forward}, idle(launches.forward));
  const Seconds before_weights = idle(launches.again) + idle(launches.inputs);
  if (passes.weights_apart) {
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
    of_host.behind += behind;
  };
  passes.forward_host = passes.backward_host = {};
  passes.forward_time = pass(passes.forward, forward, passes.forward_host);
  wait(passes.forward_time, passes.forward_time, forward, passes.forward_host);
  passes.recompute_time = pass(passes.recomputed, again, passes.backward_host);
  passes.inputs_time = pass(passes.inputs, inputs, passes.backward_host);
  passes.weights_time = pass(passes.weights, weights, passes.backward_host);
  // Over a backward pass the host may run ahead; over gradients of weights that are put off it may not.
  Launches backward = again;
  backward.add(inputs);
  if (passes.weights_apart) {
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

// Tokens of a forward pass travel while the backward pass beside it goes on, and the other way round.
void ChunkKinds::time_exchange(const ChunkKind& kind, ChunkPasses& passes) {
  if (ops_.exchange.size() == 0) return;
  PassCalls& known = calls_of(kind);
  passes.exchange = device_time(ops_.exchange, *kind.on, Phase::forward, nullptr, &known.forward);
  passes.exchange_back =
      device_time(ops_.exchange_back, *kind.on, Phase::backward, nullptr, &known.inputs);
  passes.experts = time_of_block(kind, is_of_experts);
  passes.attention = time_of_block(kind, is_of_attention);
}

void ChunkKinds::add_exchange(const ChunkKind& kind, ChunkPasses& passes) {
  const Seconds there = passes.exchange.total(), back = passes.exchange_back.total();
  const Seconds takes = there + back;
  if (takes.value <= 0) return;
  PassCalls& known = calls_of(kind);
  const Seconds results = time_of(ops_.exchange, kind, known.forward, is_result).total();
  const Seconds gradients = time_of(ops_.exchange_back, kind, known.inputs, is_result).total();
  const BlockTime &experts = passes.experts, &attention = passes.attention;
  const Seconds all = exposed_exchange(
      {.tokens = takes - results - gradients, .results = results, .gradients = gradients},
      {.attention = attention.forward.total(),
       .attention_back = attention.backward_time(),
       .experts = experts.forward.total() + experts.backward_time()},
      taken_of(double(train_.collective_multiprocessors), kind.on->device));
  // While the device waits for tokens, the host gets on with its launches. A pair takes no longer than its passes one after the other.
  Seconds exposed = all;
  Seconds longer_forward = launch_meanwhile(all * (there / takes), passes.forward_host);
  Seconds longer_back = launch_meanwhile(all * (back / takes), passes.backward_host);
  const Seconds longer = longer_forward + longer_back;
  const Seconds most = kind.in_pairs().time() - passes.time();
  if (longer > most) {
    exposed -= longer - most;
    longer_forward *= most / longer;
    longer_back *= most / longer;
  }
  passes.exchange_hidden = 1 - exposed / takes;
  for (DeviceTime* part : {&passes.exchange, &passes.exchange_back}) {
    part->communication.hidden = part->communication.time * passes.exchange_hidden;
  }
  passes.forward_time += longer_forward;
  passes.inputs_time += longer_back;
}

}  // namespace engine
