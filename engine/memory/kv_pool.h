// The paged KV cache of one replica: how many blocks are free, and which of them hold prefixes that a later request may share.
//
// Without prefix caching a pool is a count. With it, what requests may share is kept in extents: runs of blocks with one key (a recorded
// block, a system prompt, a turn of a conversation). Requests follow a key for different lengths, as a short prompt ends inside a long
// system prompt: what they share is the common part. An extent is as long as the longest that was computed, and is held as far as the
// longest request that uses it; beyond that it is cache, given up from its end. Extents make the price of a long prompt the number of its
// parts, not of its blocks.
//
// Engines keep all free blocks in one queue, by age, whether or not somebody will ask for what is in them: blocks that
// come free go to its end, the last of a request first, and whoever needs one takes the oldest. So what nobody asks for again
// pushes out older prefixes. Here pieces of extents stand in that queue, each of blocks that came free together, and blocks
// between them, in which nobody finds anything, are only counted (kv_pool_order.cc).
//
// A sequence that makes way leaves what it alone has in the cache, too, as the last extent of its prefix (`PrefixExtent::own`). When
// it comes back it takes back what is left of that.
//
// A model with scans goes on only from a place whose state was kept, so there a prefix is found up to its last state (kv_pool_states.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/fetch_lines.h"
#include "engine/base/prefix_extent.h"
#include "engine/base/small_list.h"
#include "engine/memory/key_table.h"
#include "engine/memory/kv_holding.h"
#include "engine/memory/kv_tier.h"
#include "engine/memory/prefix_holders.h"

namespace engine {

class KvPool {
 public:
  void reset(std::int64_t blocks, std::int64_t block_size, bool prefix_caching);
  // From now on, until it is reset, `holders` knows of its extents under a number. It is empty.
  void report_to(PrefixHolders& holders, std::int32_t number) {
    holders_ = &holders;
    number_ = number;
  }

  // Likewise, sequences have states of so many blocks: a prefix counts up to a state that was kept of it.
  void keep_states(std::int64_t blocks) { state_blocks_ = blocks; }
  std::int64_t state_blocks() const { return state_blocks_; }

  // Likewise, cache that nobody used for `seconds` is given up: `pass` says what time it is.
  void keep_for(double seconds) {
    kept_for_ = seconds;
    expires_ = seconds > 0;
  }
  void pass(double now) {
    if (expires_) drop_unused(now);
  }
  // When cache is next given up because of its age.
  double next_to_expire() const;
  // Everything it holds is gone, with whoever held it; what is below stays.
  void lose_all();

  // Likewise, copies what can be shared down to `tier`: at once, or when it is given up.
  void copy_down_to(KvTier& tier, bool at_once) {
    tier_ = &tier;
    copies_at_once_ = at_once;
  }
  // Likewise at once to this one, too.
  void also_copy_to(KvTier& tier) { other_tier_ = &tier; }

  // Many pools: what every step looks at ends here, and what most do where prefixes are cached.
  const void* behind_counts() const { return &table_; }
  const void* behind_cache() const { return &evicted_; }

  std::int64_t total() const { return total_; }
  // Blocks that can be taken: those in which nobody finds anything, and cache that nobody uses.
  std::int64_t free() const { return oldest_ + younger_ + idle_; }
  // Of these, those that are taken before any cache is given up.
  std::int64_t before_cache() const { return oldest_; }
  std::int64_t used() const { return total_ - free(); }
  std::int64_t block_size() const { return block_size_; }
  std::int64_t blocks_for(std::int64_t tokens) const {
    const std::int64_t up = tokens + block_size_ - 1;
    return shift_ >= 0 ? up >> shift_ : up / block_size_;
  }
  bool caches_prefixes() const { return caching_; }

  // At most free(): the oldest ones.
  void take(std::int64_t blocks) {
    if (blocks > oldest_) return take_from_cache(blocks);
    oldest_ -= blocks;
  }
  // Tiers below hear that those of the cache were used then, later than others were.
  void take_late(std::int64_t blocks, UseMoment then);
  // Blocks that can be taken without anything new to tiers below: those before any cache, and the oldest piece of it where the
  // tier has all of its extent. That it was used may be told later, until one is asked again or expects to take nothing.
  std::int64_t expect_to_take_late();
  void expect_to_take_nothing() {
    if (late_place_ >= 0) tier_->expect_no_more(std::exchange(late_place_, -1));
  }
  // Nobody finds anything in them. From now on they are the youngest.
  void give(std::int64_t blocks) { (any_listed_ ? younger_ : oldest_) += blocks; }
  // Likewise, and they are the next to be taken.
  void put_back(std::int64_t blocks) { oldest_ += blocks; }

  // How much of a prefix is in the cache.
  struct Match {
    std::int64_t tokens = 0;
    std::int64_t blocks = 0;
    std::int64_t idle = 0;    // of these, blocks nobody uses: free until they are held
    std::size_t extents = 0;  // of the prefix, the last one perhaps in part
    std::int64_t last = 0;    // blocks of the last one
    bool whole = true;        // the last one is there as far as the prefix follows it
    bool may_shrink = false;  // what it counts may be given up although somebody holds its blocks
    std::size_t passed = 0;   // extents after these that have no whole block and are not there
  };
  // At most `most_tokens` count: the last token of a prompt is always computed. It may share the block that this one is in, and
  // nothing beyond: what was there of its answer before a failure is not part of its prompt.
  Match match(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const {
    if (!caching_ || prefix.empty()) return {};
    return state_blocks_ == 0 ? look_up(prefix, most_tokens) : look_up_states(prefix, most_tokens);
  }
  // The same whatever is kept of states: for a request that brings its own.
  Match match_without_state(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const {
    return caching_ ? look_up(prefix, most_tokens) : Match{};
  }
  void hold(std::span<const PrefixExtent> prefix, const Match& match, KvHolding& holding);
  // Whether a request holds just that already. Where states are kept, nobody does: holding uses them anew.
  bool holds(const Match& match, const KvHolding& holding) const {
    const auto& parts = holding.parts;
    return state_blocks_ == 0 && !parts.empty() && parts.size() == match.extents &&
           holding.shared == match.blocks && parts.back().blocks == match.last;
  }

  // Many pools: ask for what somebody is about to look up, and for what a request that has computed more leaves behind.
  void fetch(std::span<const PrefixExtent> prefix) const {
    if (!caching_) return;
    for (const PrefixExtent& extent : prefix) table_.fetch(extent.key);
  }
  void fetch_published(std::span<const PrefixExtent> prefix, const KvHolding& holding) const {
    if (!caching_) return;
    if (holding.next_extent < prefix.size()) {
      const std::span<const PrefixExtent> next = prefix.subspan(holding.next_extent, 1);
      fetch(next);
      if (holders_ != nullptr) holders_->fetch(next);
      fetch_new_extent();
    }
    fetch_new_piece();
    for (const KvHolding::Part& part : holding.parts) {
      const Extent* const extent = extents_.data() + part.extent;
      fetch_lines(extent, extent + 1);
    }
  }

  // The request has computed `tokens`: extents that end there or before can be shared from now on.
  void publish(std::span<const PrefixExtent> prefix, std::int64_t tokens, KvHolding& holding) {
    if (caching_ && holding.next_extent < prefix.size()) share(prefix, tokens, {}, holding);
  }
  // The same of a request that was computed elsewhere, where its states were left.
  void publish_carried(std::span<const PrefixExtent> prefix, std::int64_t tokens,
                       KvHolding& holding) {
    if (caching_) share(prefix, tokens, {.has_states = false}, holding);
  }
  // It computes no more here, or not for now: what there is of an extent that goes on can be shared, too.
  void publish_all(std::span<const PrefixExtent> prefix, std::int64_t tokens, KvHolding& holding) {
    if (caching_) share(prefix, tokens, {.ends_here = true}, holding);
  }

  // One that made way is let in again: what it alone has, under this key, is in no cache from now on. The blocks that are left of it
  // are the next to be taken: it takes at least as many in this step.
  void take_back(std::uint64_t key);

  // What the tiers below have of a prefix beyond the cache, in the order of its extents: blocks that each extent would
  // have, and how many of them come from each tier, the first of which are asked first; null: there is none.
  struct Below {
    Match here;  // what the cache has itself
    struct Part {
      std::int64_t blocks = 0;
      std::int32_t extent = -1;  // in the cache; -1: it has nothing of it
    };
    SmallList<Part, 8> parts;
    std::array<std::int64_t, kTiers> from{};
    // Of a model with scans: the tokens after which a request would go on, and who has the state of that place.
    struct Resume {
      std::int64_t tokens = 0;
      KeptState state;
      int from = -1;  // tier; -1: the cache itself
    };
    Resume resume;
  };
  void look_below(std::span<const PrefixExtent> prefix, std::int64_t most_tokens,
                  std::span<KvTier* const, kTiers> tiers, Below& below) const;
  // Brings that into the cache, which has not changed since, as far as there is room that nobody else holds.
  void restore(std::span<const PrefixExtent> prefix, Below& below);

  // Blocks that would come free if a holder of `blocks` in all let go, after those whose `gone` parts others hold, too: its own
  // are added to them. What several share comes free with the last of them.
  std::int64_t freed_by(const KvHolding& holding, std::int64_t blocks,
                        std::vector<KvHolding::Part>& gone) const;
  // What is left in the cache may be `pinned`: it is given up after everything that is not.
  void release(KvHolding& holding, std::int64_t blocks, bool pinned = false) {
    give(blocks - holding.shared);
    if (!caching_) return;
    if (!holding.parts.empty()) let_go(holding, pinned);
    holding.forget();
  }

  // Blocks of extents that somebody holds.
  std::int64_t held_in_extents() const { return held_; }
  // Some are held by several.
  bool shares() const { return uses_ != held_; }
  // Room of the blocks that there would be more of if everybody had their own.
  double tokens_saved_by_sharing() const { return double((uses_ - held_) * block_size()); }
  // Blocks in cache that nobody uses, and evictions so far.
  std::int64_t idle() const { return idle_; }
  std::int64_t evicted() const { return evicted_; }

 private:
  // In one line of memory: with many replicas every line has to be fetched anew.
  struct alignas(64) Extent {
    std::uint64_t key = 0;
    std::vector<std::int32_t> less;  // blocks of each holder of fewer than the longest
    std::int32_t blocks = 0;         // there now: its end goes first
    std::int32_t reach = 0;          // of these, those that the longest holder holds
    std::int32_t longest = 0;        // holders of as many
    // Of its pieces, the youngest, which begins where the last holder ends; -1: none is listed.
    std::int32_t nearest = -1;
    std::int32_t state_piece = -1;  // likewise of its state
    KeptState state;                // where one is kept: nobody holds its blocks
    bool own = false;               // of one sequence: nobody else asks for it

    std::int64_t unused() const { return blocks - reach; }
    bool one_holder() const { return longest == 1 && less.empty(); }
    // What `reach` falls to when a holder of `held` blocks leaves.
    std::int32_t reach_without(std::int64_t held) const;
  };
  static_assert(sizeof(Extent) == 64);

  // Blocks of an extent that nobody holds, which came free together, or its state.
  struct alignas(32) Piece {
    std::int32_t extent = -1;
    std::int32_t blocks = 0;
    std::int32_t before = -1, after = -1;  // by age
    std::int32_t further = -1;             // of the same extent, beyond it, and older
    bool pinned = false;                   // one of those that are given up last
    bool state = false;
    // Free blocks that are not cache, between the piece before and this one.
    std::int64_t just_older = 0;
  };
  static_assert(sizeof(Piece) == 32);

  void empty_out();
  // Blocks that are full when a sequence reaches `end` and were not at `start`.
  std::int64_t full_blocks(std::int64_t start, std::int64_t end) const {
    return shift_ >= 0 ? (end >> shift_) - (start >> shift_)
                       : end / block_size_ - start / block_size_;
  }
  void take_from_cache(std::int64_t blocks);
  void set_blocks(Extent& extent, std::int64_t blocks) {
    if (holders_ != nullptr || tier_ != nullptr) tell(extent, blocks);
    extent.blocks = std::int32_t(blocks);
  }
  // Those who follow what is held hear that an extent is about to have so many blocks.
  void tell(const Extent& extent, std::int64_t blocks);
  // Of an extent, those that a request may share of which at most `most_tokens` count.
  std::int64_t blocks_to_share(const PrefixExtent& part, std::int64_t start,
                               std::int64_t most_tokens) const {
    return full_blocks(start, std::min(part.end, most_tokens + 1));
  }
  // Adds what there is of the next extent, which begins at `start`; false: its blocks are not there.
  bool find_part(const PrefixExtent& part, std::int64_t start, std::int64_t most_tokens,
                 Match& match) const;
  // One that is not there ends a prefix, unless it has no whole block: what follows it may still be found.
  static bool pass_part(std::int64_t wanted, Match& match) {
    ++match.passed;
    return wanted == 0;
  }
  void add_part(const Extent& extent, const PrefixExtent& part, std::int64_t start,
                std::int64_t most_tokens, Match& match) const {
    match.extents += std::exchange(match.passed, 0);
    match.last = std::min<std::int64_t>(extent.blocks, blocks_to_share(part, start, most_tokens));
    match.blocks += match.last;
    match.idle += std::max<std::int64_t>(0, match.last - extent.reach);
    ++match.extents;
    match.whole = match.last == full_blocks(start, part.end);
  }
  // Of what was found, only so many tokens count.
  void count_tokens(std::int64_t most_tokens, Match& match) const {
    match.tokens = std::min(match.blocks, full_blocks(0, most_tokens)) * block_size_;
  }
  Match look_up(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const;
  struct Sharing {
    bool ends_here = false;  // what is there of an extent that goes on elsewhere is shared, too
    bool has_states = true;  // of the places that it passed
  };
  void share(std::span<const PrefixExtent> prefix, std::int64_t tokens, Sharing how,
             KvHolding& holding);
  // What a request has of an extent of its prefix, that may or may not be in the cache already.
  struct Reached {
    std::int32_t extent = -1;
    std::int64_t start = 0, end = 0;  // tokens
    bool goes_on = false;             // its prompt or answer does not end there
    bool known = false;               // others have computed it, too
  };
  // ---- states (kv_pool_states.cc) ----
  Match look_up_states(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const;
  // Whether a request keeps a state at the end of the extent of its prefix that it has reached.
  bool wants_state(std::span<const PrefixExtent> prefix, std::size_t part,
                   const Reached& reached) const;
  void keep_state(const Reached& reached, const KvHolding& holding);
  void place_state(Extent& extent, KeptState state);
  void clear_state(Extent& extent);
  void drop_earlier_states(const KvHolding& holding, std::int32_t extent);
  void give_up_state(std::int32_t extent);
  struct Found {
    std::int64_t start = 0;  // tokens before the extent
    std::int64_t blocks = 0;
    std::int64_t most_tokens = 0;  // that count of the prefix
  };
  Below::Resume find_state(std::uint64_t key, const Found& found,
                           std::span<KvTier* const, kTiers> tiers) const;
  void restore_state(std::uint64_t key, const Below::Resume& resume, std::int64_t room);
  // What the reach of an extent falls to when of its holders those leave that have its parts in `gone`.
  std::int32_t reach_without(std::int32_t extent, std::span<const KvHolding::Part> gone) const;
  void let_go(const KvHolding& holding, bool pinned);
  void drop_unused(double now);
  // Gives up blocks of the piece that is first in its list.
  void give_up(std::int32_t piece, std::int64_t blocks);
  void add_holder(std::int32_t extent, std::int64_t blocks);
  void remove_holder(std::int32_t extent, std::int64_t blocks, bool pinned);
  // A key that is not there.
  std::int32_t insert(std::uint64_t key);
  void fetch_new_extent() const {
    const auto count = std::size_t(extent_count_);
    if (!unused_.empty()) fetch_line(&unused_.back());
    if (unused_.empty() && count < extents_.size())
      fetch_lines(&extents_[count], &extents_[count] + 1);
  }
  // Where the next one stands, and the youngest, which it follows.
  void fetch_new_piece() const {
    const std::int32_t next = unused_piece_ >= 0 ? unused_piece_ : piece_count_;
    fetch_line(pieces_.data() + next);
    if (by_age_.last >= 0) fetch_line(pieces_.data() + by_age_.last);
  }
  void erase(std::int32_t extent);
  // What nobody holds of an extent, in the order of age: all of it as the youngest, none, none of the nearest so many.
  void list(std::int32_t extent, bool pinned);
  void unlist(std::int32_t extent);
  void unlist_nearest(Extent& extent, std::int64_t blocks);
  void add_piece(std::int32_t extent, std::int64_t blocks, bool pinned);
  void list_state(std::int32_t extent, bool pinned);
  void unlist_state(Extent& extent);
  bool pinned(const Extent& extent) const {
    return extent.nearest >= 0 && pieces_[std::size_t(extent.nearest)].pinned;
  }
  std::int32_t new_piece(std::int32_t extent, std::int64_t blocks);
  void free_piece(std::int32_t piece);
  void unlink(std::int32_t piece);
  void link_last(std::int32_t piece);
  void note_use(std::int32_t piece);

  // What every step asks for stands together, in one line of memory.
  std::int64_t total_ = 0, block_size_ = 1;
  // Free blocks that are not cache: those older than all pieces, and the others.
  std::int64_t oldest_ = 0, younger_ = 0;
  std::int64_t idle_ = 0, held_ = 0;
  std::int64_t uses_ = 0;  // of blocks of extents, by all holders
  int shift_ = 0;          // of a block size that is a power of two; -1: it is not
  bool caching_ = false;
  bool any_listed_ = false;  // piece, those that are pinned not counted
  bool expires_ = false;     // cache that nobody uses
  // Where prefixes are cached, events ask for what follows, too, in three lines.
  KeyTable table_;  // extents by key
  std::vector<Extent> extents_;
  std::vector<std::int32_t> unused_;  // of these, to be used again
  std::vector<Piece> pieces_;
  std::int32_t extent_count_ = 0, piece_count_ = 0;  // in use or to be used again
  std::int32_t unused_piece_ = -1;                   // a list through `after`
  std::int32_t number_ = 0;                          // its own, among `holders_`
  struct UseOrder {
    std::int32_t first = -1, last = -1;
  };
  UseOrder by_age_, pinned_;
  // The sum of `just_older`: the rest of `younger_` is younger than all pieces.
  std::int64_t between_ = 0;
  UseOrder& order_of(const Piece& piece) { return piece.pinned ? pinned_ : by_age_; }
  PrefixHolders* holders_ = nullptr;  // who wants to know what it holds, if somebody does
  KvTier* tier_ = nullptr;            // below it, if there is one
  std::int64_t state_blocks_ = 0;     // of a state; 0: sequences have none
  // From here on few events ask for anything.
  std::int64_t evicted_ = 0;
  double kept_for_ = 0;  // cache that nobody uses, in seconds
  double now_ = 0;
  std::vector<double> used_;      // when somebody last used each piece, where cache expires
  bool copies_at_once_ = false;   // to the tier below, not when something is given up
  std::int32_t late_place_ = -1;  // there, of the extent that it hears of late; -1: of none
  KvTier* other_tier_ = nullptr;  // that gets a copy, too, at once
};

}  // namespace engine
