// What becomes of a run when replicas fail. A replica that fails ends the step it is in; what that made is told, and everything else
// is lost: each of its sequences goes on elsewhere, or is given up. `fleet/failures.h` says when replicas fail and are repaired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/fleet/failures.h"
#include "engine/serving/mechanisms/fleet.h"

namespace engine {

class Outages {
 public:
  // True where replicas of some pool fail.
  bool start(Fleet& fleet);

  // When a replica fails or has been repaired next, and what that does.
  double next() const;
  void act(double time);
  // A replica that failed has ended what it was doing, at least in one of its lanes.
  void ends_work(std::size_t replica);
  // A prompt has been read, and the replica that was to write the answer has failed.
  void read_in_vain(std::size_t replica, std::int32_t slot);

  const Failures& of(std::size_t pool) const { return failures_[pool]; }
  // Whether what failures do to figures is known: none are stated, or there were many of them.
  bool known() const;

 private:
  void fail(std::size_t pool, std::size_t unit);
  void repair(std::size_t pool, std::size_t unit);
  void abandon(std::size_t replica);
  void move_on(std::size_t replica, const Replica::Stranded& stranded);
  // For a sequence whose blocks were set aside by a replica that then failed, before its prompt was read.
  void move_reservation(std::size_t replica, const Replica::Stranded& stranded);
  void call_back(std::size_t replica, std::int32_t slot, Sequence& sequence);
  void take_back_first_token(Sequence& sequence) const;
  // Begins a sequence again whose KV in a replica is lost.
  void try_again(std::size_t replica, Sequence& sequence);

  Fleet* fleet_ = nullptr;
  std::vector<Failures> failures_;  // by pool
};

}  // namespace engine
