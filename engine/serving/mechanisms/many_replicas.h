// Replicas that do not stay in a core's cache: where their memory lies, and what is asked for before an event needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

// With so many replicas, what their turns look at (some 4 KB each) does not stay in a core's own cache.
constexpr std::size_t kManyReplicas = 256;

// What an event looks at is fetched while the event before it is worked on. There are two steps, since the first brings the
// addresses for the second: first the replica with its lists, then the sequences that these name.
class ManyReplicas {
 public:
  // Makes the replicas of a fleet. True where they are many, with one lane each.
  bool start(Fleet& fleet, std::size_t replicas, std::size_t lanes);

  // A replica's turn is next, unless a request arrives before it.
  void look_ahead(const EventQueue::Turn& turn);
  // Halfway through an event, when what was asked for at its start is there: it is a while until the next one.
  void look_further_ahead();
  // A third step at the start of a turn fetches what those sequences lead to: the neighbours in its list of the one that is done,
  // its client, and what the cache has of it, of the one that reads its prompt and of the first in the queue.
  void fetch_behind_sequences(std::size_t replica) const;
  // A request goes to a replica; and the next one will go to a replica of that pool.
  void arrives_at(std::size_t replica) const {
    if (replica != expected_) fetch_for_arrival(replica);
  }
  void expect_request(const Pool& pool);

 private:
  void fetch_replica(std::size_t replica) const;
  void fetch_for_arrival(std::size_t replica) const;
  void fetch_lines_of(std::size_t replica) const;

  const Fleet* fleet_ = nullptr;
  bool caches_ = false;              // some pool caches prefixes
  std::vector<Sequence> sequences_;  // of all replicas, side by side
  // Whose turn is next, whose comes after it, and where the next request goes, as far as one can tell.
  std::size_t next_ = 0, after_next_ = 0, expected_ = 0;
  std::int64_t events_since_expected_ = 0;
};

}  // namespace engine
