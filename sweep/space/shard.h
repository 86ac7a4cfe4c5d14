// Which positions belong to shard k of n.
#pragma once

#include <cstdint>

#include "sweep/space/index_set.h"

namespace sweep {

// Shard `shard` of `shards`, both from 1 as in `--shard 2/3`. Shards are disjoint and cover all.
//
// Positions go to shards in turn, a block at a time, because neighbours often take alike long; and whose
// turn comes first changes from round to round, because positions that lie an axis's length apart do,
// too. A small space has blocks of one position, so that every shard has its share; a huge one has
// blocks so large that the ranges of all shards together stay in the millions.
IndexSet shard_of(std::uint64_t size, std::uint64_t shard, std::uint64_t shards);

}  // namespace sweep
