// What requests in the queue load from the tiers below the cache.
#include <algorithm>

#include "engine/serving/replica/replica.h"

namespace engine {

void Replica::look_for_loads(double now) {
  lanes_[0].order_queue();  // any one: they share it
  for (std::int64_t place = 0; place < state_.waiting.admissible();) {
    const std::int32_t slot = state_.waiting.at(place);
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    if (sequence.loaded >= 0) {  // it has been looked at
      ++place;
      continue;
    }
    switch (start_load(slot, now)) {
      case Load::nothing:
        sequence.loaded = 0;
        ++place;
        break;
      case Load::waits_for_room:
        // No request is admitted before it, and it is not read meanwhile.
        state_.waiting.close_after(place);
        break;
      case Load::begun:
        state_.waiting.remove(slot);
        sequence.whereabouts = Whereabouts::loading;
        loading_.push_back(slot);
    }
  }
  if (!loading_.empty()) stop_lanes(now);
}

// Blocks are set aside for the whole prompt, as engines do for KV that is under way: otherwise others would take them.
Replica::Load Replica::start_load(std::int32_t slot, double now) {
  settle(now);
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  KvPool& pool = state_.pool;
  const ReplicaView& view = lanes_[0].view();  // any one: they share the blocks
  const LowerTiers::Offer offer = lower_.offer(sequence.prefix, sequence.target - 1, now);
  KvPool::Match hit = lower_.here();
  const auto finds_room = [&] {
    return view.blocks_to_admit(hit, sequence.target) <= pool.free() - view.margin();
  };
  bool has_room = finds_room();
  // The first in the queue gets whatever it needs where no other request is inside that would give blocks back.
  const bool next = slot == state_.waiting.at(0) && state_.running + state_.parked == 0;
  if (!has_room && next && state_.let_go_of_loads()) {
    hit = lanes_[0].view().match(sequence);
    has_room = finds_room();
  }
  if (sequence.loads_with_room && !has_room) return Load::waits_for_room;
  const double tokens = offer.all();
  sequence.loads_with_room =
      tokens > 0 && offer.end - now < tokens * state_.common->seconds_to_read_a_token;
  if (!sequence.loads_with_room) return Load::nothing;
  if (!has_room) return Load::waits_for_room;
  lower_.take(offer, sequence.prefix, slot, now);
  sequence.loaded = offer.end;
  state_.common->sums->loads_for(offer.end - now);
  const double saved = state_.saved_by_sharing();
  pool.hold(sequence.prefix, hit, sequence.kv);
  state_.held_waiting += sequence.kv.shared;
  count_sharing(saved, now);
  const std::int64_t blocks = lanes_[0].view().blocks_for(sequence.target);
  sequence.taken = std::max(blocks, sequence.kv.shared);
  pool.take(sequence.taken - sequence.kv.shared);
  ++state_.parked;
  ++state_.loading;
  state_.parked_blocks += sequence.taken - sequence.kv.shared;
  state_.common->sums->peak(pool.used());
  return Load::begun;
}

void Replica::finish_load(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  settle(now);
  --state_.parked;
  --state_.loading;
  const double saved = state_.saved_by_sharing();
  if (sequence.has_room_to_load()) {
    // Its KV came into the blocks that were set aside.
    state_.give_back_room_to_load(sequence);
    sequence.brought = lower_.bring_up(sequence.prefix, sequence.target - 1);
    // It is held until the request is admitted and holds it itself; otherwise prompts that are being read would take the blocks.
    state_.pool.hold(sequence.prefix, state_.pool.match(sequence.prefix, sequence.target - 1),
                     sequence.kv);
    if (!sequence.kv.parts.empty()) ++state_.holders;
    state_.held_waiting += sequence.kv.shared;
    count_sharing(saved, now);
  } else {
    sequence.loaded = -1;  // running sequences have taken the blocks meanwhile: it may load again
  }
  lower_.end_load(slot);
  put_first(slot);
  stop_lanes(now);
}

void Replica::count_sharing(double before, double now) {
  const double more = state_.saved_by_sharing() - before;
  if (more != 0) lanes_[0].count_sharing(more, now);
}

}  // namespace engine
