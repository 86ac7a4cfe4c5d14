#include "engine/tasks/serve/kv_room.h"

#include <algorithm>
#include <cmath>

#include "engine/memory/footprint.h"

namespace engine {

TokenRoom set_state_aside(KvRoom room, const Deployed& deployed) {
  const double states = deployed.kv_of(0).value;
  if (states <= 0) {
    return {.tokens = room.tokens, .token_bytes = kv_bytes(deployed.shard, 1).value};
  }
  const double whole = deployed.kv_of(room.context).value;
  const double size = double(deployed.spec->serving.block_size);
  const double left = room.tokens / room.context * whole;
  // Where nothing attends tokens keep nothing: as good as nothing, so that blocks can be counted.
  const double per_token = std::max((whole - states) / room.context, left / (kMostBlocks * size));
  const auto in_blocks = [&](double bytes) {
    return std::int64_t(std::ceil(bytes / per_token / size) * size);
  };
  return {.tokens = left / per_token,
          .token_bytes = per_token,
          .states = in_blocks(states),
          .state = in_blocks(states / double(deployed.states))};
}

Pace beside_states(Pace pace, std::int64_t states) {
  if (states > 0) pace.room = pace.ahead() + states;
  return pace;
}

}  // namespace engine
