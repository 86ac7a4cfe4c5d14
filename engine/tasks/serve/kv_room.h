// What a replica's KV cache, and the tiers below it, have room for.
#pragma once

#include <optional>

#include "engine/deploy.h"
#include "engine/outcome.h"
#include "engine/serving/replica/journey.h"

namespace engine {

// More blocks than any machine holds; a product with a block's tokens still fits 64 bits.
constexpr double kMostBlocks = 1e9;

// Room for KV in tokens, where sequences have `context` tokens.
struct KvRoom {
  double tokens = 0;
  double context = 1;
};

// What a sequence keeps whatever its length (the states of a scan) it takes when it is admitted: as room for tokens that
// it never makes.
struct TokenRoom {
  double tokens = 0;        // there is room for when states are counted by themselves,
  double token_bytes = 0;   // and what each of them takes on a device,
  double whole_bytes = 0;   // or in one memory for the whole replica, every head once
  std::int64_t states = 0;  // of a sequence, in tokens, whole blocks of them
  std::int64_t state = 0;   // one of them: what a cached prefix has
};
TokenRoom set_state_aside(KvRoom room, const Deployed& deployed);

// A pace of sequences that have room for their states besides.
Pace beside_states(Pace pace, std::int64_t states);

// Adds the tiers below the cache. Each device loads its share of the KV cache from peers and from the host over its own links. A replica
// has one disk, and all replicas share a store. What several devices hold of a token lies there once.
void add_tiers(const KvTierSettings& tiers, const TokenRoom& room, PoolSetup& pool);

// The way back of KV caches that preempted sequences of the main deployment leave in the host's memory, each device's share over its own
// link. Without such a link they are read again.
void add_way_from_host(const Deployed& main, double context, PoolSetup& pool);

// Why there is not enough memory of peers. Where a cluster is stated, a node has a fixed number of other devices.
std::optional<Refusal> peers_problem(const Deployed& deployed, const PoolSetup& pool);

// Why a replica cannot have its blocks. A stated number may exceed the share of the memory that the engine is to fill, as engines
// let it, but not the memory itself.
std::optional<Refusal> blocks_problem(const Deployed& deployed, const MemoryDemand& demand,
                                      const PoolSetup& pool);

// Blocks of a replica, and the memory that the engine sets aside for them; a stated number takes the place of what memory leaves.
void report_blocks(const Deployed& main, const MemoryDemand& demand, const PoolSetup& pool,
                   Metrics& metrics);

}  // namespace engine
