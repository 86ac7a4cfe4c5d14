// Which of several caches holds how much of an extent: a router finds the one with most of a prompt
// without asking all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/large_pages.h"
#include "engine/base/prefix_extent.h"
#include "engine/base/sorted_numbers.h"
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
    if (before > 0) extent.remove(place_of(before, cache));
    if (blocks > 0) extent.add(place_of(blocks, cache));
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
  // Caches that hold equally much of an extent and are compared by their weights: looking at all of thousands would make a prompt that
  // all of them know the dearest.
  static constexpr int kMostCompared = 32;
  // The cache that holds most of a prefix, of which at most `most_tokens` count, and of those that hold equally much the lightest, of
  // equally light ones the one that is met first. `first` is one of the lightest of all, and chosen where no other holds more.
  // `held(cache)` counts the tokens one of them holds; what is known here is only the most it can be, because extents before it may be
  // gone. `weight(cache)` says how busy it is.
  template <class Held, class Weight>
  Most most_of(std::span<const PrefixExtent> prefix, std::int64_t most_tokens,
               std::int64_t block_size, Most first, Held held, Weight weight) const {
    Most best = first;
    auto lightest = weight(first.cache);
    const auto tokens_in = [&](std::int64_t blocks) {
      return std::min(blocks, most_tokens / block_size) * block_size;
    };
    std::size_t last = 0;
    while (last < prefix.size() && (last == 0 || prefix[last - 1].end < most_tokens)) ++last;
    // From the end, since a replica that holds a later extent holds more, if it holds those before it.
    for (; last > 0; --last) {
      const PrefixExtent& extent = prefix[last - 1];
      const std::int64_t most_here = tokens_in(extent.end / block_size);
      if (most_here < best.tokens || (most_here == best.tokens && best.cache == first.cache)) break;
      const std::int64_t before = last > 1 ? prefix[last - 2].end / block_size : 0;
      const std::int64_t wanted = extent.end / block_size - before;
      const auto most_with = [&](std::int64_t blocks) {
        return tokens_in(before + std::min(blocks, wanted));
      };
      std::int64_t alike = -1;  // what those hold that are compared
      int compared = 0;
      // `held` may change what is known of that one cache, so places are looked up anew.
      for (Place from = 0; (from = first_from(extent.key, from)) != kNobody; ++from) {
        const std::int64_t bound = most_with(blocks_at(from));
        // Replicas further back in the list hold no more of it.
        if (bound < best.tokens || (bound == best.tokens && best.cache == first.cache)) break;
        const std::int32_t cache = cache_at(from);
        const auto own = weight(cache);
        if (bound > best.tokens || own < lightest) {
          const Most found{cache, held(cache)};
          if (found.tokens > best.tokens || (found.tokens == best.tokens && own < lightest)) {
            best = found;
            lightest = own;
          }
        }
        if (bound > best.tokens) continue;
        compared = bound == std::exchange(alike, bound) ? compared + 1 : 1;
        if (compared == kMostCompared) break;
      }
    }
    return best;
  }

 private:
  // Where a cache stands among the holders of an extent, as one number: those of most blocks first, and of equals the lowest.
  using Place = std::uint64_t;
  static constexpr Place kNobody = SortedNumbers::kNone;
  static constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();
  static Place place_of(std::int64_t blocks, std::int32_t cache) {
    return (kMostBlocks - std::uint64_t(blocks)) << 32 | std::uint32_t(cache);
  }
  static std::int64_t blocks_at(Place place) { return std::int64_t(kMostBlocks - (place >> 32)); }
  static std::int32_t cache_at(Place place) { return std::int32_t(std::uint32_t(place)); }

  // The replicas that hold some of an extent. Mostly there is one, which stands here; where there are or were several, all are in a list.
  struct HeldExtent {
    Place only = kNobody;
    std::unique_ptr<SortedNumbers> several;

    bool empty() const { return several ? several->empty() : only == kNobody; }
    void add(Place holder) {
      if (!several && only == kNobody) {
        only = holder;
        return;
      }
      if (!several) {
        several = std::make_unique<SortedNumbers>();
        several->insert(only);
      }
      several->insert(holder);
    }
    void remove(Place holder) {
      if (several) {
        several->erase(holder);
      } else {
        only = kNobody;
      }
    }
    Place first_from(Place from) const {
      if (several) return several->first_from(from);
      return only >= from ? only : kNobody;
    }
  };
  std::int32_t add_extent(std::uint64_t key) {
    if (unused_.empty()) {
      unused_.push_back(std::int32_t(extents_.size()));
      if (extents_.size() == extents_.capacity())
        reserve_large_pages(extents_, 2 * extents_.size());
      extents_.emplace_back();
    }
    const std::int32_t place = unused_.back();
    unused_.pop_back();
    extents_[std::size_t(place)] = {};
    places_.insert(key, place);
    return place;
  }
  // The first holder of an extent at this place or after it.
  Place first_from(std::uint64_t key, Place from) const {
    const std::int32_t place = places_.find(key);
    return place < 0 ? kNobody : extents_[std::size_t(place)].first_from(from);
  }

  KeyTable places_;
  std::vector<HeldExtent> extents_;
  std::vector<std::int32_t> unused_;  // of these
};

}  // namespace engine
