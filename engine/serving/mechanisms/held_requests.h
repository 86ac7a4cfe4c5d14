// Requests, and sequences whose KV is to be carried, while no replica can take them because all have failed or are off. They wait
// outside, and are sent on when one takes requests again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

// Why a sequence is sent anew. One that only waited for a replica is turned away where it would come too late.
enum class Sent : std::uint8_t { after_failure, after_waiting };

class HeldRequests {
 public:
  void start(Fleet& fleet);

  bool empty() const { return requests_.empty() && back_.empty(); }
  // Those outside all replicas, and those of them that wait for one of this pool, KV included.
  std::size_t requests() const { return requests_.size(); }
  std::int64_t of_pool(std::size_t pool) const;

  // No replica of the pool takes requests now: the one that arrives is held, unless the wait would be too long.
  void hold(Pool& pool);
  // The sequence in that slot waits until a replica of the pool that it is to go to takes requests.
  void hold_back(std::size_t replica, std::int32_t slot);
  void hold_back_no_more(std::size_t replica, std::int32_t slot);
  // Replicas take requests again.
  void send_all();
  // Sends a sequence to the pool that reads prompts, from its start or after what it has written, or first to the replica that sets
  // blocks aside. The pool that writes reads itself what no reader has room for: an answer that was begun, or a prompt that it mostly
  // had.
  void send(const Sequence& sequence, Sent sent);

 private:
  struct HeldBack {
    std::size_t replica = 0;
    std::int32_t slot = -1;
  };
  bool readers_fit(const Sequence& sequence) const;
  // Where a sequence that is sent goes first.
  std::size_t entry_stage(const Sequence& sequence) const;
  // The stage that it waits for: after reading the one that writes, after setting blocks aside the one that reads.
  std::size_t awaited_stage(const HeldBack& one) const {
    return (fleet_->stage_of(one.replica) + 1) % fleet_->stages().size();
  }

  Fleet* fleet_ = nullptr;
  std::vector<Sequence> requests_;
  std::vector<HeldBack> back_;
};

}  // namespace engine
