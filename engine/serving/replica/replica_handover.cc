// Sequences that come to a replica from another one, or leave it for another: KV that is carried, and what is left when
// a replica fails.
#include <algorithm>
#include <utility>

#include "engine/serving/replica/replica.h"
#include "engine/serving/sequences/whole_moments.h"

namespace engine {

// The token that reading made, where this pool makes it anew.
void Replica::drop_first_token(Sequence& sequence) const {
  if (state_.common->first_token == ReadToken::is_remade) --sequence.generated;
}

std::int32_t Replica::expect(const Sequence& read, std::int32_t replica, std::int32_t slot,
                             double now, Awaited awaits) {
  const std::int32_t here = new_slot();
  Sequence& sequence = state_.sequences[std::size_t(here)];
  sequence = read;
  sequence.kv.forget();
  sequence.output = read.asked;
  sequence.predicted = predicted_output(read.number, read.asked);
  sequence.computed = sequence.reserved = sequence.taken = sequence.carried = 0;
  sequence.order = enter_queue(sequence, 0, now);
  sequence.read = read.last_token;
  if (replica >= 0) drop_first_token(sequence);
  sequence.waited_for_room = false;
  sequence.from_replica = replica;
  sequence.from_slot = slot;
  sequence.whereabouts = Whereabouts::expected;
  sequence.awaits = awaits;
  ++state_.awaiting;
  ++state_.outstanding;
  state_.outstanding_tokens += sequence.prompt + sequence.predicted;
  if (awaits == Awaited::nothing) ask_for_room(here, now);
  return here;
}

void Replica::ask_for_room(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  --state_.awaiting;
  if (sequence.awaits != Awaited::nothing) sequence.joined = now;
  sequence.awaits = Awaited::nothing;
  state_.arriving.push(slot, state_.sequences);
  stop_lanes(now);
}

// Blocks that the next sequence has to leave free. Where no sequence is inside it may take all, since none would make room for it.
std::int64_t Replica::reserved_for_decodes() const {
  const ServingSettings& settings = *state_.common->settings;
  const std::int64_t inside = state_.running + state_.parked;
  if (inside == 0 || policy_of(settings.policy).reserves) return 0;
  return (inside + 1) * state_.pool.blocks_for(settings.reserved_decode_tokens);
}

std::int64_t Replica::free_for_others(const ReplicaView& view) const {
  // One block is left to each decoding sequence; otherwise KV that lands would push one of them out. This does not change before one of
  // them ends, so a stretch need not be cut to ask again.
  std::int64_t growing = 0, left_free = 0;
  // Nor does anybody take what those that read again here are about to need: they would be pushed out time and again.
  for (const Lane& lane : lanes_) {
    growing += lane.running().growing;
    left_free += lane.blocks_to_read();
  }
  left_free += std::max(growing, reserved_for_decodes());
  return state_.pool.free() - view.margin() - left_free;
}

std::int32_t Replica::make_room() {
  // Sequences that were preempted here come first.
  if (!state_.waiting.empty()) return -1;
  if (!state_.kept.empty()) return make_room_to_restore();
  if (state_.arriving.empty()) return -1;
  const std::int32_t slot = state_.arriving.at(0);
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  KvPool& pool = state_.pool;
  const ReplicaView& view = turn_->view();
  // Its state comes with it.
  const KvPool::Match hit = pool.match_without_state(sequence.prefix, sequence.target);
  const std::int64_t free = free_for_others(view);
  const bool reserves = policy_of(state_.common->settings->policy).reserves;
  // Its first token is there already, and its last one leaves no KV. It is given no more blocks than there are.
  const std::int64_t most = pool.total() * pool.block_size() - state_.common->pace.ahead();
  const std::int64_t room =
      std::min(tokens_set_aside(view, sequence) - 1 + state_.common->pace.most() - 1, most);
  if (view.blocks_to_admit(hit, reserves ? room : sequence.target) > free) {
    sequence.waited_for_room = true;
    return -1;
  }
  if (reserves) sequence.reserved = view.blocks_for(room);
  state_.arriving.remove(slot);
  if (state_.common->settings->admission.shed_late)
    state_.rooms.left(now_, !state_.arriving.empty());
  pool.hold(sequence.prefix, hit, sequence.kv);
  sequence.whereabouts = Whereabouts::fetched;
  sequence.computed = sequence.target;
  sequence.carried = sequence.target - hit.tokens;
  const std::int64_t blocks = view.blocks_held(sequence) - sequence.kv.shared;
  pool.take(blocks);
  ++state_.parked;
  state_.parked_blocks += blocks;
  state_.common->sums->peak(pool.used());
  return slot;
}

std::int32_t Replica::make_room_to_restore() {
  const std::int32_t slot = state_.kept.front();
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  const ReplicaView& view = turn_->view();
  const std::int64_t blocks = view.blocks_for(sequence.target);
  // With room for its next step, or it would be preempted again before that, time after time.
  const std::int64_t next = view.blocks_for(sequence.target + state_.common->pace.most());
  if (next > free_for_others(view)) return -1;
  state_.kept.erase(state_.kept.begin());
  sequence.whereabouts = Whereabouts::restored;
  sequence.computed = sequence.target;
  state_.pool.take(blocks);
  ++state_.parked;
  state_.parked_blocks += blocks;
  state_.common->sums->peak(state_.pool.used());
  return slot;
}

void Replica::restore(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  sequence.whereabouts = Whereabouts::landed;
  sequence.waited_for_room = false;  // its first token was told before
  settle(now);
  const std::int64_t shared = sequence.kv.shared;
  state_.pool.publish_carried(sequence.prefix, sequence.computed, sequence.kv);
  state_.parked_blocks -= sequence.kv.shared - shared;
  state_.landed.push_back(slot);
  stop_lanes(now);
}

void Replica::was_read(std::int32_t slot_here, const Sequence& read, std::int32_t replica,
                       std::int32_t slot) {
  Sequence& sequence = state_.sequences[std::size_t(slot_here)];
  sequence.generated = read.generated;
  sequence.scheduled = read.scheduled;
  sequence.first_token = read.first_token;
  sequence.last_token = sequence.read = read.last_token;
  sequence.loaded = read.loaded;
  sequence.cached = read.cached;
  sequence.preemptions = read.preemptions;
  drop_first_token(sequence);
  sequence.waited_for_room = false;  // it did so before it was read
  sequence.from_replica = replica;
  sequence.from_slot = slot;
}

void Replica::receive(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  sequence.received = now;
  sequence.whereabouts = Whereabouts::landed;
  FrontEnd ahead = state_.front_end;
  for (const Lane& lane : lanes_) lane.stream_until(now, ahead);
  state_.tell_first_token(sequence, now, ahead.told_from_elsewhere(now));
  // Without a seat its first token is told later, by `join_landed`.
  const std::int64_t inside = state_.running + std::int64_t(state_.landed.size());
  sequence.waited_for_room = inside >= state_.common->seats;
  const std::int64_t shared = sequence.kv.shared;
  settle(now);
  if (sequence.forks()) {
    state_.pool.publish(sequence.prefix, sequence.computed, sequence.kv, sequence.prompt);
  } else {
    state_.pool.publish_carried(sequence.prefix, sequence.computed, sequence.kv);
  }
  state_.parked_blocks -= sequence.kv.shared - shared;
  state_.landed.push_back(slot);
  if (sequence.forks()) state_.forking.push_back(slot);
  stop_lanes(now);
}

void Replica::release(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  settle(now);
  --state_.parked;
  state_.parked_blocks -= sequence.taken - sequence.kv.shared;
  state_.pool.release(sequence.kv, sequence.taken, state_.pins(sequence));
  forget(slot);
  stop_lanes(now);
}

// ---- failures ---------------------------------------------------------------------------------------

void Replica::halt(double now) {
  state_.halted = true;
  for (Lane& lane : lanes_) lane.halt(now);
  find_next();
}

bool Replica::at_rest() const {
  return std::ranges::none_of(lanes_, [](const Lane& lane) { return lane.working(); });
}

void Replica::strand(double now, std::vector<Stranded>& out) {
  out.clear();
  for (Lane& lane : lanes_) {
    lane.stop_all();
    lane.count_idle(now);
  }
  for (std::int32_t slot = 0; slot < state_.slots; ++slot) {
    Sequence& sequence = state_.sequences[std::size_t(slot)];
    sequence.kv.forget();
    if (sequence.left_own()) sequence.prefix.pop_back();
    if (sequence.whereabouts != Whereabouts::nowhere) out.push_back({sequence, slot});
    sequence.whereabouts = Whereabouts::nowhere;
  }
  std::ranges::sort(out, {}, [](const Stranded& one) {
    return std::pair(whole_moments(one.sequence.arrival), one.sequence.number);
  });
  empty_queues();
  state_.pool.lose_all();
  lower_.lose_memory();
  for (Lane& lane : lanes_) lane.clear(now);
  find_next();
}

void Replica::waited_at_rest(double until) {
  for (Lane& lane : lanes_) lane.count_idle(until);
}

void Replica::restart(double now) {
  state_.halted = false;
  lower_.restart(now);
  for (Lane& lane : lanes_) lane.clear(now);
}

void Replica::go_off(double now) {
  state_.pool.lose_all();
  lower_.lose_all();
  lower_.restart(now);
}

std::int32_t Replica::take_over(const Sequence& sequence, std::int64_t output, double now,
                                Awaited awaits) {
  const std::int32_t slot = new_slot();
  Sequence& here = state_.sequences[std::size_t(slot)];
  here = sequence;
  here.target = sequence.to_read();
  here.computed = here.reserved = here.taken = here.carried = 0;
  here.had = here.found_again = 0;
  here.from_replica = here.from_slot = here.to_replica = here.to_slot = -1;
  here.received = here.read = -1;
  here.decoding = here.goes_on = false;
  count_in(here, output);
  here.order = enter_queue(here, here.target, now);
  queue_up(slot, awaits, now);
  return slot;
}

void Replica::expect_no_more(std::int32_t slot, double now) {
  Sequence& sequence = state_.sequences[std::size_t(slot)];
  --state_.outstanding;
  state_.outstanding_tokens -= sequence.prompt + sequence.predicted;
  if (sequence.whereabouts == Whereabouts::expected) {
    if (sequence.awaits == Awaited::nothing) {
      state_.arriving.remove(slot);
    } else {
      --state_.awaiting;
    }
    forget(slot);
    return stop_lanes(now);  // there may be room for the next one
  }
  FewSlots& landed = state_.landed;
  if (sequence.whereabouts == Whereabouts::landed) {
    landed.erase(std::remove(landed.begin(), landed.end(), slot), landed.end());
  }
  sequence.taken = lanes_[0].view().blocks_held(sequence);
  sequence.reserved = 0;
  release(slot, now);
}

}  // namespace engine
