#include "engine/serving/mechanisms/many_replicas.h"

#include <algorithm>
#include <span>

#include "engine/base/large_pages.h"

namespace engine {

// Many of them lie in large pages, their sequences side by side, too: what a replica reserves for itself is in small ones.
bool ManyReplicas::start(Fleet& fleet, std::size_t replicas, std::size_t lanes) {
  fleet_ = &fleet;
  const bool many = replicas >= kManyReplicas && lanes == replicas;
  if (many) {
    reserve_large_pages(fleet.replicas, replicas);
    reserve_large_pages(fleet.lanes, lanes);
  }
  fleet.replicas.resize(replicas);
  fleet.lanes.resize(lanes);
  if (!many) return false;
  caches_ = std::ranges::any_of(fleet.problem->pools,
                                [](const PoolSetup& pool) { return pool.settings.prefix_caching; });
  next_ = after_next_ = expected_ = 0;
  events_since_expected_ = 0;
  const std::size_t wanted = replicas * kUsualSequences;
  if (sequences_.size() < wanted) {
    sequences_ = {};
    reserve_large_pages(sequences_, wanted);
    sequences_.resize(wanted);
  }
  for (std::size_t i = 0; i < replicas; ++i) {
    fleet.replicas[i].use_room({sequences_.data() + i * kUsualSequences, kUsualSequences});
  }
  return true;
}

[[gnu::always_inline]] inline void ManyReplicas::fetch_replica(std::size_t replica) const {
  const Replica& there = fleet_->replicas[replica];
  caches_ ? there.fetch_own_and_cache() : there.fetch_own_lines();
}

[[gnu::always_inline]] inline void ManyReplicas::fetch_lines_of(std::size_t replica) const {
  fetch_replica(replica);
  fleet_->lanes[replica].fetch_own_lines();
}

void ManyReplicas::fetch_for_arrival(std::size_t replica) const {
  fetch_replica(replica);
  fleet_->lanes[replica].fetch_work();
}

void ManyReplicas::look_ahead(const EventQueue::Turn& turn) {
  fleet_->source->fetch_next_client();
  if (turn.replica == next_) return;  // nothing but an arrival since
  if (turn.replica != after_next_) fetch_lines_of(turn.replica);
  next_ = turn.replica;
  after_next_ = fleet_->events.after(turn);
  fetch_lines_of(after_next_);
}

void ManyReplicas::look_further_ahead() {
  fleet_->replicas[after_next_].fetch_first_in_queue();
  fleet_->lanes[after_next_].fetch_sequences();
  if (++events_since_expected_ == 2) fleet_->replicas[expected_].fetch_new_slot();
}

void ManyReplicas::fetch_behind_sequences(std::size_t index) const {
  const Replica& replica = fleet_->replicas[index];
  const Lane& lane = fleet_->lanes[index];
  if (const std::int32_t done = lane.first_done(); done >= 0) {
    const Sequence& sequence = replica.sequence(done);
    if (sequence.before >= 0) replica.sequence(sequence.before).fetch_place();
    if (sequence.after >= 0) replica.sequence(sequence.after).fetch_place();
    fleet_->source->fetch_client(sequence.client);
    replica.fetch_cache_of(done);
  }
  if (const std::int32_t reader = lane.first_reader(); reader >= 0) replica.fetch_cache_of(reader);
  replica.fetch_cache_for_queue();
}

void ManyReplicas::expect_request(const Pool& pool) {
  if (pool.weight != ReplicaWeight::none) {
    expected_ = pool.first + pool.weights.first();
  } else if (pool.route == route_round_robin && pool.scaler.open() > 0) {
    const std::span<const std::int32_t> takers = pool.scaler.takers();
    expected_ = pool.first + std::size_t(takers[std::size_t(pool.routed) % takers.size()]);
  } else {
    return;
  }
  events_since_expected_ = 0;
  fetch_for_arrival(expected_);
}

}  // namespace engine
