#include "sweep/space/shard.h"

#include <algorithm>

#include "engine/base/check.h"

namespace sweep {

IndexSet shard_of(std::uint64_t size, std::uint64_t shard, std::uint64_t shards) {
  engine::check(shard >= 1 && shard <= shards, "a shard is one of 1..n");
  // At most this many ranges a shard: a set of them must stay small beside the points it names.
  constexpr std::uint64_t most_ranges = 1 << 16;
  std::uint64_t block = kShardBlock;
  while (size / block / shards > most_ranges) block *= 2;
  IndexSet set;
  for (std::uint64_t turn = shard - 1; turn < size / block + 1; turn += shards) {
    const std::uint64_t begin = turn * block;
    if (begin >= size) break;
    set.add({begin, begin + std::min(block, size - begin)});
  }
  return set;
}

}  // namespace sweep
