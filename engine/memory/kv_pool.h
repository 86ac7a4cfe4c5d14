// The paged KV cache of one replica: how many blocks are free, and which of them hold prefixes that a later request may share.
//
// Without prefix caching a pool is a count. With it, what requests may share is kept in extents: runs of blocks with one key (a block
// of a recorded trace, a system prompt, a turn of a conversation). Requests may use different lengths of an extent; what they share is
// the common part. An extent is as long as what was computed of it, and is held as far as its longest present user needs it. Blocks
// beyond that are cache, given up from the end. So a long prompt costs as much time as it has parts, not blocks.
//
// Engines keep all free blocks in one queue by age, whatever is in them: blocks that come free go to its end, the last of a
// request first, and the oldest are taken first. So answers that no request will ever ask for push out older prefixes. Here pieces
// of extents stand in that queue; blocks between them that hold no prefix are only counted (kv_pool_order.cc).
//
// A preempted sequence leaves even what only it has in the cache, as the last extent of its prefix (`PrefixExtent::own`). When it
// comes back it takes back what is left of that.
//
// A model with scans can go on only from a place whose state was kept, so a prefix is found up to its last state (kv_pool_states.cc).
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
  // From now on until `reset`: tells `holders`, under its number, which prefixes it has. Called while the pool is empty.
  void report_to(PrefixHolders& holders, std::int32_t number) {
    holders_ = &holders;
    number_ = number;
  }

  // From now on until `reset`: sequences have states of so many blocks, and a prefix is found up to its last state.
  void keep_states(std::int64_t blocks) { state_blocks_ = blocks; }
  std::int64_t state_blocks() const { return state_blocks_; }

  // From now on until `reset`: gives up cache that was not used for `seconds`. `pass` says what time it is.
  void keep_for(double seconds) {
    kept_for_ = seconds;
    expires_ = seconds > 0;
  }
  void pass(double now) {
    if (expires_) drop_unused(now);
  }
  // When cache is next given up because of its age.
  double next_to_expire() const;
  // Loses all it holds, because the replica failed. Tiers below keep what they have.
  void lose_all();

  // From now on until `reset`: copies what can be shared down to `tier`, at once or when it is given up here.
  void copy_down_to(KvTier& tier, bool at_once) {
    tier_ = &tier;
    copies_at_once_ = at_once;
  }
  // The same to a second tier, at once.
  void also_copy_to(KvTier& tier) { other_tier_ = &tier; }
  // Ends of what every step looks at, and of what most steps look at where prefixes are cached.
  const void* behind_counts() const { return &table_; }
  const void* behind_cache() const { return &evicted_; }

  std::int64_t total() const { return total_; }
  // Blocks that can be taken: without a prefix, or cache that no request holds.
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
  // Takes blocks now that a step took at the moment `then`. Tiers below are told of that moment.
  void take_late(std::int64_t blocks, UseMoment then);
  // Blocks that can be taken without telling tiers below at once: those before any cache, and the oldest piece of cache where the
  // tier below has its whole extent. That this was used may be told later, until the next call, or `expect_to_take_nothing`.
  std::int64_t expect_to_take_late();
  void expect_to_take_nothing() {
    if (late_place_ >= 0) tier_->expect_no_more(std::exchange(late_place_, -1));
  }
  // Gives back blocks that hold no prefix, as the youngest free ones.
  void give(std::int64_t blocks) { (any_listed_ ? younger_ : oldest_) += blocks; }
  // Gives back blocks that hold no prefix, as the next to be taken.
  void put_back(std::int64_t blocks) { oldest_ += blocks; }

  // How much of a prefix is in the cache.
  struct Match {
    std::int64_t tokens = 0;
    std::int64_t blocks = 0;
    std::int64_t idle = 0;    // of these, held by no request: they count as free until they are
    std::size_t extents = 0;  // extents of the prefix that were found, the last one perhaps in part
    std::int64_t last = 0;    // blocks of the last one
    bool whole = true;        // the last one was found as far as the prefix follows it
    bool may_shrink = false;  // its last state may be given up although its blocks are held
    std::size_t passed = 0;   // extents behind these that are missing but fill no whole block
  };
  // At most `most_tokens` tokens count, since the last token of a prompt is always computed. The request may share the block that
  // this token is in, and nothing beyond: what was there of its answer before a failure is not part of its prompt.
  Match match(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const {
    if (!caching_ || prefix.empty()) return {};
    return state_blocks_ == 0 ? look_up(prefix, most_tokens) : look_up_states(prefix, most_tokens);
  }
  // The same without regard to states, for a request that brings its own.
  Match match_without_state(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const {
    return caching_ ? look_up(prefix, most_tokens) : Match{};
  }
  void hold(std::span<const PrefixExtent> prefix, const Match& match, KvHolding& holding);
  // Whether a request holds just that already. Always false where states are kept, since holding uses them anew.
  bool holds(const Match& match, const KvHolding& holding) const {
    const auto& parts = holding.parts;
    return state_blocks_ == 0 && !parts.empty() && parts.size() == match.extents &&
           holding.shared == match.blocks && parts.back().blocks == match.last;
  }

  // Fetch what is about to be looked up, and what a request changes that has computed more.
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

  // The request has computed `tokens` tokens: extents that end there or before can be shared from now on. `prompt`: its tokens, where
  // they go on behind the last extent.
  void publish(std::span<const PrefixExtent> prefix, std::int64_t tokens, KvHolding& holding,
               std::int64_t prompt = 0) {
    if (!caching_ || holding.next_extent >= prefix.size()) return;
    share(prefix, tokens, {.prompt = prompt}, holding);
  }
  // The same for a request that was computed in another replica, which keeps its states.
  void publish_carried(std::span<const PrefixExtent> prefix, std::int64_t tokens,
                       KvHolding& holding) {
    if (caching_) share(prefix, tokens, {.has_states = false}, holding);
  }
  // The request stops computing here, perhaps for now: what it has of an extent that it has not finished can be shared, too.
  void publish_all(std::span<const PrefixExtent> prefix, std::int64_t tokens, KvHolding& holding) {
    if (caching_) share(prefix, tokens, {.ends_here = true}, holding);
  }

  // A preempted request is admitted again: what it left under its own key is taken out of the cache. Those blocks are the next to
  // be taken, and the request takes at least as many in this step.
  void take_back(std::uint64_t key);

  // What the tiers below have of a prefix beyond the cache: blocks that each extent would have after loading, and how many of them
  // come from each tier. Tiers are asked in their order; null: there is no such tier.
  struct Below {
    Match here;  // what the cache has itself
    struct Part {
      std::int64_t blocks = 0;
      std::int32_t extent = -1;  // in the cache; -1: the cache has nothing of it
    };
    SmallList<Part, 8> parts;
    std::array<std::int64_t, kTiers> from{};
    // For a model with scans: the tokens after which a request would go on, and the tier that has the state of that place.
    struct Resume {
      std::int64_t tokens = 0;
      KeptState state;
      int from = -1;  // tier; -1: the cache itself
    };
    Resume resume;
  };
  void look_below(std::span<const PrefixExtent> prefix, std::int64_t most_tokens,
                  std::span<KvTier* const, kTiers> tiers, Below& below) const;
  // Brings that into the cache, which has not changed since, as far as there is room that no request holds.
  void restore(std::span<const PrefixExtent> prefix, Below& below);

  // Blocks that would come free if a holder of `blocks` blocks left after others whose parts are in `gone`; its own parts are added
  // to them. What several share comes free with the last of them.
  std::int64_t freed_by(const KvHolding& holding, std::int64_t blocks,
                        std::vector<KvHolding::Part>& gone) const;
  // A request lets go of all it holds. What stays in the cache may be `pinned`, and is then given up last.
  void release(KvHolding& holding, std::int64_t blocks, bool pinned = false) {
    give(blocks - holding.shared);
    if (!caching_) return;
    if (!holding.parts.empty()) let_go(holding, pinned);
    holding.forget();
  }

  // Blocks of extents that at least one request holds.
  std::int64_t held_in_extents() const { return held_; }
  // Whether some of these are held by several requests.
  bool shares() const { return uses_ != held_; }
  // Tokens that would need further blocks if every request had its own.
  double tokens_saved_by_sharing() const { return double((uses_ - held_) * block_size()); }
  // Blocks of cache that no request holds, and evictions so far.
  std::int64_t idle() const { return idle_; }
  std::int64_t evicted() const { return evicted_; }

 private:
  // Fills one cache line, since with many replicas each line has to be fetched from memory.
  struct alignas(64) Extent {
    std::uint64_t key = 0;
    std::vector<std::int32_t> less;  // blocks of each holder that holds fewer than `reach`
    std::int32_t blocks = 0;         // blocks that are there; the last ones are given up first
    std::int32_t reach = 0;          // of these, blocks that are held by at least one request
    std::int32_t longest = 0;        // number of holders that hold all of `reach`
    // Its youngest piece, which begins where `reach` ends; -1: none of its blocks is in the queue of free blocks.
    std::int32_t nearest = -1;
    std::int32_t state_piece = -1;  // the piece of its state; -1: none
    KeptState state;                // the state that is kept with it, whose blocks no request holds
    bool own = false;               // left by a preempted sequence: no other request asks for it

    std::int64_t unused() const { return blocks - reach; }
    bool one_holder() const { return longest == 1 && less.empty(); }
    // What `reach` falls to when a holder of `held` blocks leaves.
    std::int32_t reach_without(std::int64_t held) const;
  };
  static_assert(sizeof(Extent) == 64);

  // Blocks of an extent that no request holds and that came free together; or the extent's state.
  struct alignas(32) Piece {
    std::int32_t extent = -1;
    std::int32_t blocks = 0;
    std::int32_t before = -1, after = -1;  // neighbours by age
    std::int32_t further = -1;  // next piece of the same extent: behind this one, and older
    bool pinned = false;        // given up after all that are not
    bool state = false;
    // Free blocks that hold no prefix and are younger than the piece before but older than this one.
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
  // Tells `holders_` and the tiers below that an extent is about to have so many blocks.
  void tell(const Extent& extent, std::int64_t blocks);
  // Blocks of an extent that a request may share, of whose prompt at most `most_tokens` tokens count.
  std::int64_t blocks_to_share(const PrefixExtent& part, std::int64_t start,
                               std::int64_t most_tokens) const {
    return full_blocks(start, std::min(part.end, most_tokens + 1));
  }
  // Adds to `match` what there is of the next extent, which begins at `start`. False where it is not there.
  bool find_part(const PrefixExtent& part, std::int64_t start, std::int64_t most_tokens,
                 Match& match) const;
  // An extent that is not there ends the search, unless it would fill no whole block: then what follows may still be found.
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
  // Sets the tokens of a match, of which at most `most_tokens` count.
  void count_tokens(std::int64_t most_tokens, Match& match) const {
    match.tokens = std::min(match.blocks, full_blocks(0, most_tokens)) * block_size_;
  }
  Match look_up(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const;
  struct Sharing {
    // Share also what there is of an extent that the request has not finished.
    bool ends_here = false;
    bool has_states = true;   // the replica has the states of the places that the request passed
    std::int64_t prompt = 0;  // tokens that the request has at least
  };
  void share(std::span<const PrefixExtent> prefix, std::int64_t tokens, Sharing how,
             KvHolding& holding);
  // What a request has computed of an extent of its prefix.
  struct Reached {
    std::int32_t extent = -1;
    std::int64_t start = 0, end = 0;  // tokens
    bool goes_on = false;             // the prompt or answer does not end there
    bool known = false;               // other requests have computed it, too
  };
  // ---- states (kv_pool_states.cc) ----
  Match look_up_states(std::span<const PrefixExtent> prefix, std::int64_t most_tokens) const;
  // Whether a request of `whole` tokens keeps a state at the end of the extent of its prefix that it has reached.
  bool wants_state(std::span<const PrefixExtent> prefix, std::size_t part, const Reached& reached,
                   std::int64_t whole) const;
  void keep_state(const Reached& reached, const KvHolding& holding);
  void place_state(Extent& extent, KeptState state);
  void clear_state(Extent& extent);
  void drop_earlier_states(const KvHolding& holding, std::int32_t extent);
  void give_up_state(std::int32_t extent);
  struct Found {
    std::int64_t start = 0;  // tokens before the extent
    std::int64_t blocks = 0;
    std::int64_t most_tokens = 0;  // tokens of the prefix that count at most
  };
  Below::Resume find_state(std::uint64_t key, const Found& found,
                           std::span<KvTier* const, kTiers> tiers) const;
  void restore_state(std::uint64_t key, const Below::Resume& resume, std::int64_t room);
  // What the reach of an extent falls to when the holders leave whose parts are in `gone`.
  std::int32_t reach_without(std::int32_t extent, std::span<const KvHolding::Part> gone) const;
  void let_go(const KvHolding& holding, bool pinned);
  void drop_unused(double now);
  // Gives up blocks of the first piece of its list.
  void give_up(std::int32_t piece, std::int64_t blocks);
  void add_holder(std::int32_t extent, std::int64_t blocks);
  void remove_holder(std::int32_t extent, std::int64_t blocks, bool pinned);
  // Adds an extent under a key that is not there yet.
  std::int32_t insert(std::uint64_t key);
  void fetch_new_extent() const {
    const auto count = std::size_t(extent_count_);
    if (!unused_.empty()) fetch_line(&unused_.back());
    if (unused_.empty() && count < extents_.size())
      fetch_lines(&extents_[count], &extents_[count] + 1);
  }
  // Fetches the place of the next new piece, and the youngest piece, behind which it is linked.
  void fetch_new_piece() const {
    const std::int32_t next = unused_piece_ >= 0 ? unused_piece_ : piece_count_;
    fetch_line(pieces_.data() + next);
    if (by_age_.last >= 0) fetch_line(pieces_.data() + by_age_.last);
  }
  void erase(std::int32_t extent);
  // The queue of free blocks: puts in what no request holds of an extent; takes all of it out, or the `blocks` nearest to `reach`.
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

  // What every step looks at stands in one cache line.
  std::int64_t total_ = 0, block_size_ = 1;
  // Free blocks that hold no prefix: those that are older than all pieces, and the others.
  std::int64_t oldest_ = 0, younger_ = 0;
  std::int64_t idle_ = 0, held_ = 0;
  std::int64_t uses_ = 0;  // blocks of extents, counted once for each request that holds them
  int shift_ = 0;          // logarithm of the block size where that is a power of two; else -1
  bool caching_ = false;
  bool any_listed_ = false;  // some piece is listed that is not pinned
  bool expires_ = false;     // cache that is not used is given up after a time
  // Where prefixes are cached, events also look at what follows, in three cache lines.
  KeyTable table_;  // extents by key
  std::vector<Extent> extents_;
  std::vector<std::int32_t> unused_;  // entries of `extents_` that can be used again
  std::vector<Piece> pieces_;
  std::int32_t extent_count_ = 0, piece_count_ = 0;  // entries that are in use or can be used again
  std::int32_t unused_piece_ = -1;                   // head of a list linked through `Piece::after`
  std::int32_t number_ = 0;                          // number of this pool in `holders_`
  struct UseOrder {
    std::int32_t first = -1, last = -1;
  };
  UseOrder by_age_, pinned_;
  // The sum of all `just_older`; the rest of `younger_` is younger than all pieces.
  std::int64_t between_ = 0;
  UseOrder& order_of(const Piece& piece) { return piece.pinned ? pinned_ : by_age_; }
  PrefixHolders* holders_ = nullptr;  // is told which prefixes the pool has; null: nothing is
  KvTier* tier_ = nullptr;            // the tier below; null: there is none
  std::int64_t state_blocks_ = 0;     // blocks of a state; 0: sequences have none
  // Few events look at what follows.
  std::int64_t evicted_ = 0;
  double kept_for_ = 0;  // seconds for which cache is kept that is not used
  double now_ = 0;
  std::vector<double> used_;  // where cache expires: when each piece was last used
  // Copies go to the tier below at once, not when something is given up.
  bool copies_at_once_ = false;
  // Place in the tier below of the extent whose uses are told late; -1: none.
  std::int32_t late_place_ = -1;
  KvTier* other_tier_ = nullptr;  // a second tier that gets copies at once; null: there is none
};

}  // namespace engine
