#include "sweep/space/shard.h"

#include <algorithm>

#include "engine/base/check.h"

namespace sweep {
namespace {

// Large enough that handing out a block takes no time beside a block of the cheapest points.
constexpr std::uint64_t kUsualBlock = 64;
// A shard of fewer rounds than this is not a fair sample of the space.
constexpr std::uint64_t kFairRounds = 64;
constexpr std::uint64_t kMostBlocks = 1 << 21;

std::uint64_t block_size(std::uint64_t size, std::uint64_t shards) {
  const std::uint64_t fair = std::clamp<std::uint64_t>(size / shards / kFairRounds, 1, kUsualBlock);
  return std::max(fair, size / kMostBlocks);
}

// The shard that is first in a round: multiples of the golden ratio's fraction fall evenly and do not repeat.
std::uint64_t first_of_round(std::uint64_t round, std::uint64_t shards) {
  return ((round * 0x9E3779B97F4A7C15U) >> 32) % shards;
}

}  // namespace

IndexSet shard_of(std::uint64_t size, std::uint64_t shard, std::uint64_t shards) {
  engine::check(shard >= 1 && shard <= shards, "a shard is one of 1..n");
  if (shards == 1) return IndexSet({0, size});
  const std::uint64_t block = block_size(size, shards);
  IndexSet set;
  for (std::uint64_t round = 0; round * shards * block < size; ++round) {
    const std::uint64_t turn = (shard - 1 + first_of_round(round, shards)) % shards;
    const std::uint64_t begin = (round * shards + turn) * block;
    if (begin < size) set.add({begin, begin + std::min(block, size - begin)});
  }
  return set;
}

}  // namespace sweep
