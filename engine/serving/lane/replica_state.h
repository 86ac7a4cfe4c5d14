// What the lanes of a replica share: its queue, its sequences, its KV pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/serving/lane/front_end.h"
#include "engine/serving/lane/inbox.h"
#include "engine/serving/lane/pool_constants.h"
#include "engine/serving/sequences/admission_pace.h"
#include "engine/serving/sequences/fair_share.h"

namespace engine {

class Lane;
class LockstepGroup;

using FewSlots = SmallList<std::int32_t, 2>;

// What every event looks at stands first, since with many replicas each cache line has to be fetched from memory.
struct ReplicaState {
  const PoolConstants* common = nullptr;
  LockstepGroup* group = nullptr;  // whose members step together; null: it steps on its own
  std::int32_t number = 0;
  bool halted = false;  // the replica has failed, and no lane plans

  Sequences sequences;
  std::int32_t slots = 0;  // entries of `sequences` that are in use or can be used again
  // Head of the list of the latter, linked through `Sequence::after`.
  std::int32_t first_unused = -1;
  WaitingQueue waiting;
  FewSlots landed;    // sequences whose KV has arrived: they decode from the next step on
  FewSlots departed;  // sequences that are done here with the last event
  FewSlots forking;  // sequences whose prompt was read with the last event and gets several answers
  FewSlots kept;     // preempted sequences whose KV waits in the host's memory, the first one first
  WaitingQueue arriving;         // sequences whose prompt was read elsewhere: they wait for blocks
  std::int64_t running = 0;      // sequences that run, over all lanes
  std::int64_t outstanding = 0;  // requests inside
  std::int64_t outstanding_tokens = 0;
  double tokens_made = 0;
  double idle_seconds = 0;  // summed over all lanes
  FrontEnd front_end;
  // Sequences that hold blocks without running, because their KV is carried from here or to here; and the blocks that only they
  // hold.
  std::int64_t parked = 0;
  std::int64_t parked_blocks = 0;
  std::int64_t holders = 0;       // sequences in the queue that hold what was loaded for them
  std::int64_t held_waiting = 0;  // shared blocks that these hold, and those that load
  // Sequences that join the queue once their adapter or images are there.
  std::int64_t awaiting = 0;
  std::int64_t loading = 0;  // sequences that are aside from the queue until their load has come
  KvPool pool;               // every event looks at its first cache line; few look at what follows
  Inbox inbox;               // of replicas with one lane
  FairShare shares;
  AdmissionPaces admissions;
  AdmissionPace
      rooms;  // how fast sequences get blocks that wait for them before their prompts are read
  AdmissionPace entries;  // how fast sequences get room and seats whose prompts were read elsewhere
  double stage_free = 0;  // when the first pipeline stage takes the next batch
  const Lane* first_lane = nullptr;  // the replica's lanes stand side by side from here on

  // Level of urgency by which requests overtake one another. All have the same where the queue is not ordered by priority.
  std::int64_t level_of(std::int64_t priority) const {
    const bool by_level = common->settings->ordering == Ordering::priority;
    return by_level ? UrgencyLists::level_of(priority) : 0;
  }
  void note_admission(const Sequence& sequence, double now) {
    const std::int64_t others = waiting.size();
    const std::int64_t least_urgent =
        others == 0 ? -1 : level_of(sequences[std::size_t(waiting.at(others - 1))].priority);
    admissions.left(now, level_of(sequence.priority), least_urgent);
  }
  // Sequences whose KV has arrived and for which there is no seat.
  std::int64_t unseated() const {
    const std::int64_t inside = running + std::int64_t(landed.size());
    return std::clamp<std::int64_t>(inside - common->seats, 0, std::int64_t(landed.size()));
  }
  // Whether the cache of a sequence that leaves is given up after that of others.
  bool pins(const Sequence& sequence) const {
    return common->settings->retention.policy == Retention::pinned && !sequence.closes;
  }
  // Notes when the client of a sequence from another pool has its first token, where this pool tells it.
  void tell_first_token(Sequence& sequence, double now, double told) const {
    if (common->first_token != ReadToken::told_on_arrival) return;
    // A sequence that goes on here after a failure elsewhere has told it before.
    if (sequence.generated == 1) sequence.first_token = told;
    sequence.last_token = now;
  }
  // Whether prefixes may be loaded from tiers below.
  bool loads() const { return common->seconds_to_read_a_token > 0; }
  // Frees blocks that waiting requests hold for loads. First those that hold something that was loaded let go of it: it stays in
  // the cache like any other prefix. Where nobody holds such a thing, loads that are under way lose the room that was set aside
  // for them. False where there was nothing to free.
  bool let_go_of_loads() {
    const bool some_loaded = holders > 0;
    for (std::int64_t place = 0; holders > 0 && place < waiting.size(); ++place) {
      Sequence& sequence = sequences[std::size_t(waiting.at(place))];
      if (sequence.kv.parts.empty()) continue;
      held_waiting -= sequence.kv.shared;
      pool.release(sequence.kv, sequence.kv.shared);
      --holders;
    }
    return some_loaded || give_up_loads_under_way();
  }
  bool give_up_loads_under_way() {
    bool some = false;
    for (std::int32_t slot = 0; slot < slots; ++slot) {
      Sequence& sequence = sequences[std::size_t(slot)];
      if (sequence.whereabouts != Whereabouts::loading || !sequence.has_room_to_load()) continue;
      give_back_room_to_load(sequence);
      some = true;
    }
    return some;
  }
  // KV tokens by which running sequences together hold less than the sum of what each holds. Blocks that waiting requests hold do not count.
  double saved_by_sharing() const {
    return pool.tokens_saved_by_sharing() - double(held_waiting * pool.block_size());
  }
  // Gives back the blocks that were set aside for a sequence that loads, and what it holds of the cache.
  void give_back_room_to_load(Sequence& sequence) {
    const std::int64_t set_aside = sequence.taken - sequence.kv.shared;
    parked_blocks -= set_aside;
    pool.put_back(set_aside);
    held_waiting -= sequence.kv.shared;
    pool.release(sequence.kv, sequence.kv.shared);
    sequence.taken = 0;
  }
  bool wants_room() const { return !kept.empty() || !arriving.empty(); }
  bool more_to_come() const { return !landed.empty() || wants_room(); }
  // Encodes the images of so many requests, as many at a time as may be encoded together. Returns the seconds that takes.
  double encode(std::size_t requests) {
    PoolSums& sums = *common->sums;
    const std::span<const double> taken = common->encode_seconds;
    sums.encoded += double(requests);
    sums.encoded_together.resize(taken.size());
    double seconds = 0;
    while (requests > 0) {
      const std::size_t together = std::min(requests, taken.size());
      seconds += taken[together - 1];
      sums.encoded_together[together - 1] += 1;
      requests -= together;
    }
    return seconds * common->encode_slower;
  }
};

}  // namespace engine
