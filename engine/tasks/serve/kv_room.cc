#include "engine/tasks/serve/kv_room.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/comm/sends.h"
#include "engine/kernels/copy.h"
#include "engine/memory/footprint.h"

namespace engine {

namespace {

// KV of a sequence as one device would have it that is a replica by itself: devices beyond the KV heads, and all that share a
// latent, have copies of one another's.
double kv_kept_once(const ModelShard& shard, double context) {
  ModelShard alone = shard;
  alone.parallel = {};
  alone.kv_heads = shard.model->kv_heads;
  alone.shared_prompts.devices = 1;
  return kv_bytes(alone, context).value;
}

}  // namespace

TokenRoom set_state_aside(KvRoom room, const Deployed& deployed) {
  const double states = deployed.kv_of(0).value;
  const double whole = deployed.kv_of(room.context).value;
  if (states <= 0) {
    double once = kv_kept_once(deployed.shard, room.context);
    if (deployed.guest.shard != nullptr) {
      once += kv_kept_once(*deployed.guest.shard, room.context);
    }
    return {.tokens = room.tokens,
            .token_bytes = whole / room.context,
            .whole_bytes = once / room.context};
  }
  const double size = double(deployed.spec->serving.block_size);
  const double left = room.tokens / room.context * whole;
  // Where nothing attends tokens keep nothing: as good as nothing, so that blocks can be counted.
  const double per_token = std::max((whole - states) / room.context, left / (kMostBlocks * size));
  const auto in_blocks = [&](double bytes) {
    return std::int64_t(std::ceil(bytes / per_token / size) * size);
  };
  // States, of which each device has a part of its own, count in tiers as the same number of tokens as on the devices.
  return {.tokens = left / per_token,
          .token_bytes = per_token,
          .whole_bytes = per_token * double(deployed.shard.parallel.devices_of_replica()),
          .states = in_blocks(states),
          .state = in_blocks(states / double(deployed.states))};
}

Pace beside_states(Pace pace, std::int64_t states) {
  if (states > 0) pace.room = pace.ahead() + states;
  return pace;
}

namespace {

// How many copies bring a block to a device.
double copies_of_block(KvPieces pieces, const ModelShard& shard) {
  if (pieces != KvPieces::layers) return pieces == KvPieces::blocks ? 1 : 0;
  const double layers = std::ceil(double(shard.layers.attending()) / double(shard.parallel.pp));
  return layers * (shard.model->is_mla() ? 1 : 2);
}

// Copies between devices of a node were not measured. They are taken to start like those from the host, and to go on like sends.
MessageLine copies_from_peers(const StepContext& context) {
  const LinkRates& link = context.fabric.scale_up;
  MessageLine copies = copies_over(link, context.device, context.calibration);
  const Sends sends = sends_over({link, Reach::inside_node}, context.device, context.calibration);
  copies.seconds_per_byte = sends.line.seconds_per_byte;
  return copies;
}

// The way up from a memory, of which a device has `token_bytes` a token. `stated`: the rate that copies reach; none: what they
// reach by themselves.
TierSetup way_up(MessageLine copies, BytesPerSecond stated, double token_bytes,
                 const PoolSetup& pool) {
  const StepContext& context = pool.context;
  if (stated.value > 0) copies.seconds_per_byte = 1 / stated.value;
  const double of_block = copies_of_block(pool.settings.tiers.pieces, context.shard);
  return {.seconds_per_token = token_bytes * copies.seconds_per_byte,
          .starts_per_token = copies.start.value * of_block / double(pool.settings.block_size),
          .latency = copies.start.value};
}

}  // namespace

void add_tiers(const KvTierSettings& tiers, const TokenRoom& room, PoolSetup& pool) {
  const double per_device = room.token_bytes, per_token = room.whole_bytes;
  const double per_block = per_token * double(pool.settings.block_size);
  // Where a state counts as many blocks, more blocks are allowed.
  const double most = kMostBlocks * (pool.state > 0 ? 1e3 : 1);
  const auto blocks = [per_block, most](Bytes bytes) {
    return std::int64_t(std::min(bytes.value / per_block, most));
  };
  const auto tier = [&pool](TierName name) -> TierSetup& { return pool.tiers[std::size_t(name)]; };
  const auto joined = [&](TierName name, Bytes size, const MessageLine& copies,
                          BytesPerSecond stated) {
    tier(name) = way_up(copies, stated, per_device, pool);
    tier(name).blocks = blocks(size);
  };
  // No link: nothing comes up.
  const StepContext& context = pool.context;
  const Fabric& fabric = context.fabric;
  if (tiers.peer_bandwidth.value > 0 || fabric.scale_up.bandwidth.value > 0) {
    joined(TierName::peer, tiers.peer, copies_from_peers(context), tiers.peer_bandwidth);
  }
  if (tiers.host_bandwidth.value > 0 || fabric.host_link.bandwidth.value > 0) {
    joined(TierName::host, tiers.host,
           copies_over(fabric.host_link, context.device, context.calibration),
           tiers.host_bandwidth);
  }
  tier(TierName::disk) = {.blocks = blocks(tiers.disk),
                          .seconds_per_token = per_token / tiers.disk_bandwidth.value,
                          .latency = tiers.disk_latency.value};
  tier(TierName::store) = {.blocks = blocks(tiers.store),
                           .seconds_per_token = per_token / tiers.store_bandwidth.value,
                           .latency = tiers.store_latency.value,
                           .seconds_per_token_alone =
                               tiers.store_link.value > 0 ? per_token / tiers.store_link.value : 0};
}

void add_way_from_host(const Deployed& main, double context, PoolSetup& pool) {
  const LinkRates& link = pool.context.fabric.host_link;
  if (link.bandwidth.value <= 0) return;
  const MessageLine copies = copies_over(link, pool.context.device, pool.context.calibration);
  const Bytes tokens = main.kv_of(context) - main.kv_of(0);
  pool.from_host =
      PoolSetup::WayBack{.seconds_per_token = tokens.value / context * copies.seconds_per_byte,
                         .latency = copies.start.value};
}

std::optional<Refusal> peers_problem(const Deployed& deployed, const PoolSetup& pool) {
  const Cluster& cluster = deployed.spec->cluster;
  const bool stated = cluster.devices_per_node > 0 || cluster.nodes > 0 ||
                      cluster.scale_up.topology != Topology::none;
  if (!stated || pool.tiers[std::size_t(TierName::peer)].blocks == 0) return std::nullopt;
  const std::int64_t own = deployed.shard.parallel.devices_of_replica();
  const std::int64_t node = deployed.fabric.devices_per_node;
  const std::int64_t others = (own + node - 1) / node * node - own;
  const Bytes asked = pool.settings.tiers.peer;
  const Bytes there = deployed.spec->device.memory_capacity * double(others);
  if (asked <= there) return std::nullopt;
  return Refusal{ReasonClass::memory,
                 fmt::format("serving.tiers.peer is {}, and the {} other devices of a replica's "
                             "nodes have {}",
                             in_gb(asked), others, in_gb(there))};
}

namespace {

// What the blocks of a replica take on its fullest device, where the model leaves `left` of it.
Bytes taken_by_blocks(const Deployed& deployed, const MemoryDemand& demand, const PoolSetup& pool,
                      Bytes left) {
  const double context = double(demand.context);
  const double fit = left / deployed.kv_of(context) * context;
  const double blocks =
      set_state_aside({fit, context}, deployed).tokens / double(pool.settings.block_size);
  return left * (double(pool.kv_blocks) / blocks);
}

}  // namespace

std::optional<Refusal> blocks_problem(const Deployed& deployed, const MemoryDemand& demand,
                                      const PoolSetup& pool) {
  if (pool.kv_blocks < 1) {
    return Refusal{ReasonClass::memory, "not one KV block fits beside the model"};
  }
  if (pool.settings.kv_blocks == 0) return std::nullopt;
  const Footprint footprint = footprint_of(deployed, demand);
  const Bytes all = deployed.spec->device.memory_capacity;
  const Bytes there = footprint.left() + all - footprint.budget;
  const Bytes taken = taken_by_blocks(deployed, demand, pool, footprint.left());
  if (taken <= there) return std::nullopt;
  return Refusal{ReasonClass::memory,
                 fmt::format("serving.kv_blocks {} take {}, {} of {} are left beside the model",
                             pool.kv_blocks, in_gb(taken), in_gb(there), in_gb(all))};
}

void report_blocks(const Deployed& main, const MemoryDemand& demand, const PoolSetup& pool,
                   Metrics& metrics) {
  const Bytes left = metrics.memory_free + metrics.kv_cache;
  const Bytes others = metrics.memory_used - metrics.kv_cache;
  metrics.kv_cache = taken_by_blocks(main, demand, pool, left);
  metrics.memory_used = others + metrics.kv_cache;
  metrics.memory_free = std::max(left - metrics.kv_cache, Bytes{0});
  metrics.token_limit = double(pool.settings.step_budget());
  metrics.sequence_limit = double(pool.settings.max_num_seqs);
  metrics.kv_blocks = double(pool.kv_blocks);
  if (pool.settings.kv_blocks == 0) return;
  const double tokens = double(pool.kv_blocks) * double(pool.settings.block_size);
  const double context = double(demand.context), each = context + double(pool.states);
  metrics.max_batch = std::floor(tokens / each);
  metrics.kv_capacity_tokens = std::floor(tokens * (context / each));
}

}  // namespace engine
