#include "engine/serving/lane/lane_sequences.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/serving/sequences/whole_moments.h"

namespace engine {

void LaneSequences::reset(ReplicaState& replica) {
  replica_ = &replica;
  set.reset(*replica.common, replica.sequences);
  view_.emplace(ReplicaView{.common = *replica.common,
                            .sequences = replica.sequences,
                            .waiting = replica.waiting,
                            .pool = replica.pool,
                            .running = set.running(),
                            .seats = replica.common->settings->max_num_seqs,
                            .queries = std::int32_t(replica.common->pace.queries)});
  gaps.reset(replica.common->stats->counts_gaps());
  investment.reset();
  makes_way_ = replica.common->settings->makes_way();
  urgency_.clear();
  adapters.clear();
}

// Like the engine that does this, it looks at no more than 128: sorting a long queue would cost more than it wins.
void LaneSequences::order_by_prefix() {
  constexpr std::int64_t looked_at = 128;
  ReplicaState& replica = *replica_;
  const std::int64_t count = std::min(looked_at, replica.waiting.size());
  if (count < 2 || !replica.pool.caches_prefixes()) return;
  std::int32_t* slots = replica.waiting.begin();
  for (std::int64_t i = 0; i < count; ++i) {
    Sequence& sequence = at(slots[i]);
    sequence.order = -double(replica.pool.match(sequence.prefix, sequence.target - 1).tokens);
  }
  // Whatever order they are in: that follows from when the queue was ordered before, which is less often in long stretches.
  const auto place = [this](std::int32_t slot) {
    const Sequence& sequence = at(slot);
    return std::tuple(sequence.order, whole_moments(sequence.arrival), sequence.number, slot);
  };
  std::ranges::sort(slots, slots + count, {}, place);
}

// What is inside is spread over the batches in flight, as far as each of them and all of them together have seats.
void LaneSequences::share_seats() {
  const ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  const std::int64_t inside =
      replica.running + replica.waiting.size() + std::int64_t(replica.landed.size());
  const std::int64_t share = (std::min(common.seats, inside) + common.lanes - 1) / common.lanes;
  const std::int64_t others = replica.running - set.running().count;
  view_->seats = std::max<std::int64_t>(0, std::min(share, common.seats - others));
  view_->others_running =
      replica.running > set.running().count || replica.parked + replica.holders > 0;
}

// What the newly admitted found in the cache is held before anybody's new blocks push it out. Nothing has come into the cache or
// left it since the plan was made.
void LaneSequences::hold_prefixes(const StepPlan& plan) {
  KvPool& pool = replica_->pool;
  for (const Admission& admission : plan.admissions) {
    Sequence& sequence = at(admission.slot);
    sequence.computed = admission.hit.tokens;
    if (sequence.prefix.empty()) continue;
    if (!sequence.left_own() && pool.holds(admission.hit, sequence.kv)) {
      --replica_->holders;  // it came from below, and is all that there is
      replica_->held_waiting -= sequence.kv.shared;
      continue;
    }
    KvHolding loaded;  // that it has held since it came from below
    if (!sequence.kv.parts.empty()) std::swap(loaded, sequence.kv);
    const auto let_go = [&] {
      if (loaded.parts.empty()) return;
      replica_->held_waiting -= loaded.shared;
      pool.release(loaded, loaded.shared);
      --replica_->holders;
    };
    if (sequence.left_own()) {
      let_go();
      pool.take_back(sequence.prefix.back().key);
      sequence.prefix.pop_back();
      pool.hold(sequence.prefix, view_->match(sequence), sequence.kv);
    } else {
      pool.hold(sequence.prefix, admission.hit, sequence.kv);
      let_go();
    }
  }
}

void LaneSequences::admit(const Admission& admission, double now) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  Sequence& sequence = at(admission.slot);
  replica.waiting.remove(admission.slot);
  sequence.whereabouts = Whereabouts::running;
  if (common.settings->ordering == Ordering::fair_share) replica.shares.serve(sequence.order);
  if (sequence.scheduled < 0) {
    // Not for a preempted sequence: that it leaves the queue once more brings those behind it no further.
    if (common.settings->admission.shed_late) replica.note_admission(sequence, now);
    sequence.scheduled = std::max(now, sequence.arrival);  // not before it by less than a moment
    sequence.cached = sequence.computed;
    look_up(sequence);
  } else {
    come_back(sequence);
  }
  std::int64_t blocks = view_->blocks_for(
      admission.whole_prompt ? sequence.target : sequence.computed + admission.tokens);
  if (admission.reserved_tokens > 0) {
    blocks = std::max(blocks, replica.pool.blocks_for(admission.reserved_tokens));
    blocks = sequence.reserved = std::min(blocks, replica.pool.total());
  } else if (admission.whole_prompt) {
    sequence.taken = blocks;
  }
  replica.pool.take(std::max(blocks, sequence.kv.shared) - sequence.kv.shared);
  join(admission.slot);
  set.begin_reading(admission.slot);
}

void LaneSequences::look_up(const Sequence& sequence) {
  PoolSums& sums = *replica_->common->sums;
  sums.look_up(sequence.target, sequence.computed);
  if (replica_->loads()) sums.found_of_loads(sequence.computed, sequence.brought);
}

// Hit rates are of prompts, not of what a request has left itself.
void LaneSequences::come_back(Sequence& sequence) {
  if (sequence.had == 0) return look_up(sequence);
  sequence.found_again = std::min(std::int32_t(sequence.computed), sequence.had);
  replica_->common->sums->found_again(sequence.found_again);
}

// Sequences whose prompts were read elsewhere take the free seats, in the order in which their KV came.
bool LaneSequences::join_landed(double now) {
  ReplicaState& replica = *replica_;
  const std::int64_t seats = view().seats - set.running().count;
  const std::size_t joining =
      std::min(replica.landed.size(), std::size_t(std::max<std::int64_t>(0, seats)));
  for (std::size_t i = 0; i < joining; ++i) {
    const std::int32_t slot = replica.landed[i];
    Sequence& sequence = at(slot);
    --replica.parked;
    sequence.whereabouts = Whereabouts::running;
    replica.parked_blocks -= view_->blocks_held(sequence) - sequence.kv.shared;
    if (sequence.waited_for_room)
      replica.tell_first_token(sequence, now, replica.front_end.told(now));
    join(slot);
    if (replica.common->first_token == ReadToken::is_remade && !sequence.goes_on) {
      // All but the last token of what was read counts as there. It has its blocks for all of it.
      sequence.taken = view_->blocks_held(sequence);
      sequence.computed = sequence.target - 1;
      set.begin_reading(slot);
    } else {
      sequence.goes_on = false;
      gaps.join(sequence, now);
      begin(slot);
    }
    if (replica.common->seconds_per_prompt_token > 0) {
      replica.entries.left(now, i + 1 < replica.landed.size() || !replica.arriving.empty());
    }
  }
  replica.landed.erase(replica.landed.begin(), replica.landed.begin() + std::ptrdiff_t(joining));
  return joining > 0;
}

void LaneSequences::begin_decoding(std::int32_t slot, double now) {
  Sequence& sequence = at(slot);
  if (replica_->common->first_token != ReadToken::is_dropped || !sequence.is_handed_over()) {
    replica_->tokens_made += 1;
  }
  const bool forks = sequence.forks() && !replica_->common->hands_over();
  if (forks) replica_->forking.push_back(slot);
  if (sequence.generated == 0) {
    if (sequence.read < 0) sequence.read = now;  // else it was read elsewhere
    sequence.first_token =
        replica_->common->first_message_tokens > 1 ? -1 : replica_->front_end.told(now);
  } else if (sequence.generated < sequence.output) {
    gaps.add_after_preemption(sequence, now, *replica_->common->stats);
  }
  sequence.last_token = now;
  sequence.generated = sequence.token_by_reading();
  set.has_read(slot);
  if (sequence.generated == sequence.output) {
    if (sequence.first_token < 0) sequence.first_token = replica_->front_end.told(now);
    return finish(slot);
  }
  gaps.join(sequence, now);
  begin(slot);
}

std::int64_t LaneSequences::blocks_to_read() const {
  const ReplicaView& view = *view_;
  std::int64_t blocks = 0;
  for (std::int32_t slot = set.running().first; slot >= 0;) {
    const Sequence& sequence = replica_->sequences[std::size_t(slot)];
    if (!sequence.decoding) {
      blocks +=
          std::max<std::int64_t>(0, view.blocks_for(sequence.target) - view.blocks_held(sequence));
    }
    slot = sequence.after;
  }
  return blocks;
}

// Room held and not used while it decoded, step by step, as a sum over its contexts.
[[gnu::always_inline]] inline void LaneSequences::count_waste(const Sequence& sequence) {
  const BlockFilling& filling = replica_->common->blocks;
  const std::int64_t size = filling.size;
  const std::int64_t first = sequence.target, last = set.context(sequence);
  const std::int64_t used = (last - first) * (first + last + 1) / 2;
  if (sequence.reserved > 0) {
    const std::int64_t held = (last - first) * sequence.reserved * size;
    return replica_->common->sums->decoded_with(double(held - used), double(held));
  }
  // Sum over contexts 1..n of what is missing to a whole block.
  const auto missing = [&filling, size](std::int64_t n) {
    const std::int64_t blocks = filling.filled(n), rest = n - blocks * size;
    return blocks * (size * (size - 1) / 2) + rest * size - rest * (rest + 1) / 2;
  };
  const std::int64_t waste = missing(last) - missing(first);
  replica_->common->sums->decoded_with(double(waste), double(waste + used));
}

void LaneSequences::tell_those_due(double now) {
  const double told = replica_->front_end.told(now);
  set.take_told([&](std::int32_t slot) { at(slot).first_token = told; });
}

void LaneSequences::finish_due() {
  for (std::int32_t slot; (slot = set.first_done()) >= 0;) finish(slot);
}

void LaneSequences::finish(std::int32_t slot) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  Sequence& sequence = at(slot);
  const std::int64_t held = view_->blocks_held(sequence);
  if (sequence.decoding) {
    if (common.counts_room) count_waste(sequence);
    set.stop(slot);
    // Tokens past its end are of no use to anybody.
    const std::int64_t wasted = sequence.generated - sequence.output;
    sequence.generated -= wasted;
    sequence.computed -= wasted;
    replica.tokens_made -= double(wasted);
    common.sums->wasted_tokens += double(wasted);
  }
  if (common.hands_over()) {
    replica.pool.publish_all(sequence.prefix, sequence.computed, sequence.kv);
  } else {
    replica.pool.publish(sequence.prefix, sequence.computed, sequence.kv, sequence.prompt);
  }
  sequence.whereabouts = common.hands_over() ? Whereabouts::leaving : Whereabouts::nowhere;
  if (common.hands_over()) {
    sequence.taken = held;
    ++replica.parked;
    replica.parked_blocks += held - sequence.kv.shared;
  } else {
    replica.pool.release(sequence.kv, held, replica.pins(sequence));
  }
  leave(slot);
  --replica.outstanding;
  replica.outstanding_tokens -= sequence.prompt + sequence.predicted;
  if (common.settings->ordering == Ordering::fair_share) {
    replica.shares.answered(sequence.tenant, sequence.output);
  }
  replica.departed.push_back(slot);
}

void LaneSequences::stop(std::int32_t slot) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  const std::int64_t held = view_->blocks_held(sequence);
  if (sequence.decoding) {
    gaps.leave(sequence);
    if (replica.common->counts_room) count_waste(sequence);
    set.stop(slot);
  } else {
    set.stop_reading(slot);
  }
  replica.pool.release(sequence.kv, held, replica.pins(sequence));
  leave(slot);
  sequence.reserved = sequence.taken = 0;
  sequence.target = sequence.to_read();
}

// What it has in whole blocks, others' and its own, can be found until the blocks are needed. The state of a scan, from which alone
// it could go on, is not kept.
void LaneSequences::leave_in_cache(Sequence& sequence) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  if (!replica.pool.caches_prefixes() || replica.pool.state_blocks() > 0) return;
  std::int64_t tokens = view_->context(sequence);
  if (policy_of(common.settings->policy).left_in_cache == LeftInCache::read) {
    tokens = std::min(tokens, sequence.target);
  }
  // No other sequence of the pool makes way at the same count, so no other has this key; keys of prompts come from other mixes of the seed
  // (RequestSource::add_prefix).
  constexpr std::uint64_t own = 4;
  const std::uint64_t request =
      mixed_seed(mixed_seed(common.seed, own), std::uint64_t(sequence.number));
  const std::uint64_t key = mixed_seed(request, std::uint64_t(common.sums->preemptions));
  sequence.prefix.push_back({key, PrefixExtent::kOpen});
  replica.pool.publish_all(sequence.prefix, tokens, sequence.kv);
}

// All that was computed of it comes back, so nothing is read again; its last token is the next step's input.
void LaneSequences::keep(std::int32_t slot) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  stop(slot);
  replica.common->sums->preempted(0);
  ++sequence.preemptions;
  sequence.target = sequence.computed;
  sequence.goes_on = true;
  sequence.whereabouts = Whereabouts::kept;
  replica.kept.push_back(slot);
}

void LaneSequences::preempt(std::int32_t slot, bool to_the_end) {
  ReplicaState& replica = *replica_;
  Sequence& sequence = at(slot);
  if (replica.common->preempted_kv == PreemptedKv::kept_by_host && sequence.decoding)
    return keep(slot);
  leave_in_cache(sequence);
  stop(slot);
  replica.common->sums->preempted(sequence.computed);
  sequence.had = std::int32_t(sequence.computed);
  sequence.found_again = 0;
  ++sequence.preemptions;
  sequence.loaded = -1;  // what it had may lie below by now
  sequence.loads_with_room = false;
  sequence.brought = {};
  sequence.computed = 0;
  sequence.whereabouts = Whereabouts::waiting;
  if (to_the_end) {
    replica.waiting.push(slot, replica.sequences);
  } else {
    replica.waiting.push_front(slot, replica.sequences);
  }
}

void LaneSequences::recount() {
  const std::int64_t held = set.recount(view());
  if (replica_->common->lanes > 1) return;
  check(held + replica_->parked_blocks + replica_->pool.held_in_extents() == replica_->pool.used(),
        "the blocks add up");
}

// Mostly all take part, or but for a few prompts that do not fit.
std::int64_t LaneSequences::adapters_in_step(std::int64_t decodes, std::span<const Chunk> prompts) {
  const RunningSet& running = set.running();
  const bool all = decodes + std::int64_t(prompts.size()) == running.count;
  if (all || adapters.different() == 0) return adapters.different();
  if (decodes > 0 && decodes == running.decoding) {
    const auto each_absent = [&](auto visit) {
      for (const std::int32_t slot : running.prefilling) {
        if (std::ranges::find(prompts, slot, &Chunk::slot) == prompts.end()) visit(at(slot));
      }
    };
    each_absent([this](const Sequence& absent) { adapters.leave(absent.adapter); });
    const std::int64_t different = adapters.different();
    each_absent([this](const Sequence& absent) { adapters.join(absent.adapter); });
    return different;
  }
  in_step_.clear();
  for (const Chunk& prompt : prompts) in_step_.join(at(prompt.slot).adapter);
  for (std::int32_t slot = running.first; decodes > 0; slot = at(slot).after) {
    if (!at(slot).decoding) continue;
    --decodes;
    in_step_.join(at(slot).adapter);
  }
  return in_step_.different();
}

}  // namespace engine
