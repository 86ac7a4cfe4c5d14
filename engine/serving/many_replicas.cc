// Replicas that do not stay in a core's cache: where their memory lies, and what is asked for before an event needs it.
#include <span>

#include "engine/base/large_pages.h"
#include "engine/serving/serving_sim.h"

namespace engine {

// Many of them lie in large pages, their sequences side by side, too: what a replica reserves for itself is in small ones.
void ServingSim::make_replicas(std::size_t replicas, std::size_t lanes) {
  if (many_) {
    reserve_large_pages(replicas_, replicas);
    reserve_large_pages(lanes_, lanes);
  }
  replicas_.resize(replicas);
  lanes_.resize(lanes);
  if (!many_) return;
  const std::size_t wanted = replicas * kUsualSequences;
  if (sequences_.size() < wanted) {
    sequences_ = {};
    reserve_large_pages(sequences_, wanted);
    sequences_.resize(wanted);
  }
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    replicas_[i].use_room({sequences_.data() + i * kUsualSequences, kUsualSequences});
  }
}

void ServingSim::look_ahead(const EventQueue::Turn& turn) {
  if (turn.replica == next_) return;  // nothing but an arrival since
  if (turn.replica != after_next_) fetch_lines_of(turn.replica);
  next_ = turn.replica;
  after_next_ = events_.after(turn);
  fetch_lines_of(after_next_);
}

// Halfway through an event, when what was asked for at its start is there: it is a while until the next one.
void ServingSim::look_further_ahead() {
  fetch_sequences_of(after_next_);
  if (++events_since_expected_ == 2) replicas_[expected_].fetch_new_slot();
}

void ServingSim::fetch_behind_sequences(std::size_t index, const RequestSource& source) const {
  const Replica& replica = replicas_[index];
  const Lane& lane = lanes_[index];
  if (const std::int32_t done = lane.first_done(); done >= 0) {
    const Sequence& sequence = replica.sequence(done);
    if (sequence.before >= 0) replica.sequence(sequence.before).fetch_place();
    if (sequence.after >= 0) replica.sequence(sequence.after).fetch_place();
    source.fetch_client(sequence.client);
    replica.fetch_cache_of(done);
  }
  if (const std::int32_t reader = lane.first_reader(); reader >= 0) replica.fetch_cache_of(reader);
  replica.fetch_cache_for_queue();
}

void ServingSim::expect_request(const Pool& pool) {
  if (pool.weight != ReplicaWeight::none) {
    expected_ = pool.first + pool.weights.first();
  } else if (pool.route == route_round_robin && pool.scaler.open() > 0) {
    const std::span<const std::int32_t> takers = pool.scaler.takers();
    expected_ = pool.first + std::size_t(takers[std::size_t(pool.routed) % takers.size()]);
  } else {
    return;
  }
  events_since_expected_ = 0;
  fetch_lines_for_arrival(expected_);
}

}  // namespace engine
