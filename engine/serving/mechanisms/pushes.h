// Requests for which blocks are set aside before their prompts are read: a replica of the last stage is asked for them; once they are
// set aside the request is dispatched to a replica that reads it; then its KV is pushed to the blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

class Pushes {
 public:
  // True where the journey says so.
  bool start(Fleet& fleet);

  // Whether blocks are set aside for such a sequence. An answer of one token is written by the replica that reads the prompt.
  bool reserves(const Sequence& sequence) const {
    return sequence.asked > sequence.generated + 1 || sequence.forks();
  }
  // The request that arrives waits for blocks where its answer will be written.
  void set_aside();
  // The same of one that lost its replica, or found none when it came.
  void set_aside_again(std::size_t writer, const Sequence& sequence);
  // Blocks have been set aside in `slot` of a replica: sends the request to a replica that reads its prompt.
  void dispatch(std::size_t writer, std::int32_t slot);
  // The prompt has been read: its KV goes where blocks were set aside for it.
  void push(std::size_t reader, std::int32_t slot);

 private:
  Fleet* fleet_ = nullptr;
  // On its way to the replica that sets blocks aside, and from there to the one that reads.
  Sequence passed_on_;
};

}  // namespace engine
