// Which positions belong to shard k of n.
#pragma once

#include <cstdint>

#include "sweep/space/index_set.h"

namespace sweep {

// Positions go to shards in turn, a block at a time: neighbours often take alike long, so every
// shard gets its share of the slow ones.
constexpr std::uint64_t kShardBlock = 64;

// Shard `shard` of `shards`, both from 1 as in `--shard 2/3`. Shards are disjoint and cover all. The
// set has one range a block; blocks grow with the space so that there are never too many.
IndexSet shard_of(std::uint64_t size, std::uint64_t shard, std::uint64_t shards);

}  // namespace sweep
