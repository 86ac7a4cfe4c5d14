// What the lanes of a replica share: its queue, its sequences, its KV pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/serving/lane/front_end.h"
#include "engine/serving/lane/pool_constants.h"
#include "engine/serving/sequences/admission_pace.h"
#include "engine/serving/sequences/fair_share.h"

namespace engine {

class Lane;
class LockstepGroup;

using FewSlots = SmallList<std::int32_t, 2>;

// What every event looks at, before what few do: with many replicas every line of memory has to be fetched anew.
struct ReplicaState {
  const PoolConstants* common = nullptr;
  LockstepGroup* group = nullptr;  // it steps with; null: with nobody
  std::int32_t number = 0;
  bool halted = false;  // it has failed: no lane plans

  Sequences sequences;
  std::int32_t slots = 0;          // of `sequences`, in use or to be used again:
  std::int32_t first_unused = -1;  // those are a list through `Sequence::after`, the last one first
  WaitingQueue waiting;
  FewSlots landed;               // their KV has come: they decode from the next step on
  FewSlots departed;             // slots of those that are done here with the last event
  FewSlots forking;              // their prompts were read with the last event, for several answers
  WaitingQueue arriving;         // prompts were read elsewhere: they wait for blocks
  std::int64_t running = 0;      // over all lanes
  std::int64_t outstanding = 0;  // requests inside
  std::int64_t outstanding_tokens = 0;
  double tokens_made = 0;
  double idle_seconds = 0;  // of all lanes
  FrontEnd front_end;
  // Sequences whose KV is carried from here or to here: those that hold blocks and do not run, and their
  // blocks, shared ones not counted.
  std::int64_t parked = 0;
  std::int64_t parked_blocks = 0;
  std::int64_t holders = 0;       // in the queue, of what was loaded for them
  std::int64_t held_waiting = 0;  // uses of shared blocks by these, and by those that load
  std::int64_t awaiting = 0;      // not in the queue before their adapters or images are there
  std::int64_t loading = 0;       // aside from the queue until what is loaded for them has come
  KvPool pool;  // of which every event looks at the first line; from here on few do
  FairShare shares;
  AdmissionPaces admissions;
  AdmissionPace rooms;    // of those that wait for blocks before their prompts are read
  AdmissionPace entries;  // of those that others have read, and that wait for room or seats
  double stage_free = 0;  // when the first pipeline stage takes the next batch
  const Lane* first_lane = nullptr;  // of those of the replica, which stand side by side

  // Who is more urgent overtakes only where the queue goes by that.
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
  // Those whose KV has come and for whom there is no seat.
  std::int64_t unseated() const {
    const std::int64_t inside = running + std::int64_t(landed.size());
    return std::clamp<std::int64_t>(inside - common->settings->max_num_seqs, 0,
                                    std::int64_t(landed.size()));
  }
  // Whether the cache of a sequence that leaves is given up after that of others.
  bool pins(const Sequence& sequence) const {
    return common->settings->retention.policy == Retention::pinned && !sequence.closes;
  }
  // Of a sequence that comes from another pool, where that is told here: when its client has it.
  void tell_first_token(Sequence& sequence, double now, double told) const {
    if (!common->tells_first_token) return;
    // Whoever goes on elsewhere after a failure has told it before.
    if (sequence.generated == 1) sequence.first_token = told;
    sequence.last_token = now;
  }
  // Something may come from tiers below.
  bool loads() const { return common->seconds_to_read_a_token > 0; }
  // Nobody who waits keeps blocks any more for what was loaded for it: that is cache like any other. Where nobody does, those that
  // load have no room any more for what is under way. False where there was nothing to let go of.
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
  // KV tokens that those that run hold together fewer than each for itself. What others hold while they wait is there, too.
  double saved_by_sharing() const {
    return pool.tokens_saved_by_sharing() - double(held_waiting * pool.block_size());
  }
  // Blocks that were set aside for a sequence that loads, and what it held of the cache.
  void give_back_room_to_load(Sequence& sequence) {
    const std::int64_t set_aside = sequence.taken - sequence.kv.shared;
    parked_blocks -= set_aside;
    pool.put_back(set_aside);
    held_waiting -= sequence.kv.shared;
    pool.release(sequence.kv, sequence.kv.shared);
    sequence.taken = 0;
  }
  bool more_to_come() const { return !landed.empty() || !arriving.empty(); }
  // Encodes the images of so many requests, of as many together as may be. Returns the seconds that takes.
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
