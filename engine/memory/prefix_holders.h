// Which of several caches holds how much of an extent: a router finds the one with most of a prompt
// without asking all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "engine/base/prefix_extent.h"
#include "engine/memory/key_table.h"

namespace engine {

class PrefixHolders {
 public:
  PrefixHolders() { clear(); }
  void clear() {
    places_.clear();
    extents_.clear();
    unused_.clear();
  }
  // What a cache holds of an extent has grown or shrunk.
  void change(std::uint64_t key, std::int32_t cache, std::int64_t before, std::int64_t blocks) {
    std::int32_t place = places_.find(key);
    if (place < 0) place = add_extent(key);
    HeldExtent& extent = extents_[std::size_t(place)];
    if (before > 0) extent.remove({before, cache});
    if (blocks > 0) extent.add({blocks, cache});
    if (!extent.empty()) return;
    places_.erase(key);
    unused_.push_back(place);
  }

  // Asks for the places of a prefix's keys, all at once, before they are looked up one after the other.
  void fetch(std::span<const PrefixExtent> prefix) const {
    for (const PrefixExtent& extent : prefix) places_.fetch(extent.key);
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
      const auto most_with = [&](std::int64_t blocks) {
        return tokens_in(before + std::min(blocks, wanted));
      };
      // `held` may change what is known of that one cache, so places are looked up anew.
      Holder at{std::numeric_limits<std::int64_t>::max(), kLowest};
      while (const Holder* next = after(extent.key, at)) {
        at = *next;
        const std::int64_t bound = most_with(at.blocks);
        const bool promising = better(bound, at.cache);
        const Most found{at.cache, promising ? held(at.cache) : 0};
        if (promising && better(found.tokens, found.cache)) best = found;
        // Of those that hold as much of the extent, nobody after this one can be better.
        if (promising && found.tokens < bound) continue;
        at.cache = kHighest;
        // Those that stand behind them hold less.
        if (most_with(at.blocks - 1) < best.tokens) break;
      }
    }
    return best;
  }

 private:
  static constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  static constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();

  struct Holder {
    std::int64_t blocks = 0;
    std::int32_t cache = 0;
    // Those of most blocks first.
    bool operator<(const Holder& other) const {
      return std::tie(other.blocks, cache) < std::tie(blocks, other.cache);
    }
  };
  // Who holds some of an extent: mostly one, who stands here; all of them in a tree where there are or were several.
  struct HeldExtent {
    Holder only;
    std::unique_ptr<std::set<Holder>> several;

    bool empty() const { return several ? several->empty() : only.blocks == 0; }
    void add(const Holder& holder) {
      if (!several && only.blocks == 0) {
        only = holder;
        return;
      }
      if (!several) several = std::make_unique<std::set<Holder>>(std::set<Holder>{only});
      several->insert(holder);
    }
    void remove(const Holder& holder) {
      if (several) {
        several->erase(holder);
      } else {
        only = {};
      }
    }
  };
  std::int32_t add_extent(std::uint64_t key) {
    if (unused_.empty()) {
      unused_.push_back(std::int32_t(extents_.size()));
      extents_.emplace_back();
    }
    const std::int32_t place = unused_.back();
    unused_.pop_back();
    extents_[std::size_t(place)] = {};
    places_.insert(key, place);
    return place;
  }
  // The first holder of an extent that stands after `at`; null: there is none.
  const Holder* after(std::uint64_t key, const Holder& at) const {
    const std::int32_t place = places_.find(key);
    if (place < 0) return nullptr;
    const HeldExtent& extent = extents_[std::size_t(place)];
    if (!extent.several) return at < extent.only ? &extent.only : nullptr;
    const std::set<Holder>& several = *extent.several;
    // Asked for the first of all, the tree need not be searched.
    const bool first = !several.empty() && at < *several.begin();
    const auto next = first ? several.begin() : several.upper_bound(at);
    return next == several.end() ? nullptr : &*next;
  }

  KeyTable places_;
  std::vector<HeldExtent> extents_;
  std::vector<std::int32_t> unused_;  // of these
};

}  // namespace engine
