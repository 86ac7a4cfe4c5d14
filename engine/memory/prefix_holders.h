// Which of several caches holds how much of an extent: a router finds the one with most of a prompt
// without asking all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <tuple>

#include "engine/base/prefix_extent.h"

namespace engine {

class PrefixHolders {
 public:
  void clear() { holders_.clear(); }
  // What a cache holds of an extent has grown or shrunk.
  void change(std::uint64_t key, std::int32_t cache, std::int64_t before, std::int64_t blocks) {
    if (before > 0) holders_.erase({key, before, cache});
    if (blocks > 0) holders_.insert({key, blocks, cache});
  }

  struct Most {
    std::int32_t cache = 0;
    std::int64_t tokens = 0;
  };
  // The cache that holds most of a prefix, of which at most `most_tokens` count: `first` where no other
  // holds more, else the lowest number of those that hold most. `held(cache)` counts the tokens one of
  // them holds; what is known here is only the most it can be, because extents before it may be gone.
  template <class Held>
  Most most_of(std::span<const PrefixExtent> prefix, std::int64_t most_tokens,
               std::int64_t block_size, Most first, Held held) const {
    Most best = first;
    const auto better = [&](std::int64_t tokens, std::int32_t cache) {
      return tokens > best.tokens ||
             (tokens == best.tokens && best.cache != first.cache && cache < best.cache);
    };
    const auto tokens_in = [&](std::int64_t blocks) {
      return std::min(blocks, most_tokens / block_size) * block_size;
    };
    std::size_t last = 0;
    while (last < prefix.size() && (last == 0 || prefix[last - 1].end < most_tokens)) ++last;
    // From the end: whoever holds a later extent holds more, if it holds those before.
    for (; last > 0; --last) {
      const PrefixExtent& extent = prefix[last - 1];
      if (!better(tokens_in(extent.end / block_size), kLowest)) break;
      const std::int64_t before = last > 1 ? prefix[last - 2].end / block_size : 0;
      const std::int64_t wanted = extent.end / block_size - before;
      // `held` may change what is known of that one cache, so places are looked up anew.
      Holder at{extent.key, std::numeric_limits<std::int64_t>::max(), kLowest};
      for (auto next = holders_.lower_bound(at); next != holders_.end() && next->key == extent.key;
           next = holders_.upper_bound(at)) {
        at = *next;
        const std::int64_t bound = tokens_in(before + std::min(at.blocks, wanted));
        const bool promising = better(bound, at.cache);
        const Most found{at.cache, promising ? held(at.cache) : 0};
        if (promising && better(found.tokens, found.cache)) best = found;
        // Of those that hold as much of the extent, nobody after this one can be better.
        if (!promising || found.tokens >= bound) at.cache = kHighest;
      }
    }
    return best;
  }

 private:
  static constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  static constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();

  struct Holder {
    std::uint64_t key;
    std::int64_t blocks;
    std::int32_t cache;
    // Holders of one extent together, those of most blocks first.
    bool operator<(const Holder& other) const {
      return std::tie(key, other.blocks, cache) < std::tie(other.key, blocks, other.cache);
    }
  };
  std::set<Holder> holders_;
};

}  // namespace engine
