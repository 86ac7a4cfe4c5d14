// KV that is carried to a replica: from one that has read a prompt, or back from the host's memory after a preemption.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

class HandOver {
 public:
  // True where one pool reads and another writes, or preempted sequences leave their KV in the host's memory.
  bool start(Fleet& fleet);

  // A prompt has been read in a replica: one of the next pool is to go on with it, as soon as it has room.
  void hand_over(std::size_t replica, std::int32_t slot);
  // KV starts on its way to a replica that has room for it.
  void fetch(std::size_t replica);
  // It starts on its way to `slot` of that replica. What takes no time is there at once.
  void ship(std::size_t replica, std::int32_t slot);
  // It is there.
  void deliver(std::size_t replica, std::int32_t slot);
  // Whether the last stage reads the short prompt that arrives itself, and the replica that does.
  bool stays_local(std::size_t& replica) {
    return fleet_->problem->journey.short_prompt > 0 && fleet_->stages().size() > 1 &&
           is_short(replica);
  }

 private:
  bool is_short(std::size_t& replica);
  void restore(std::size_t replica, std::int32_t slot);

  Fleet* fleet_ = nullptr;
};

}  // namespace engine
