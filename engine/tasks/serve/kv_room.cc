#include "engine/tasks/serve/kv_room.h"

#include <algorithm>
#include <cmath>

#include "engine/memory/footprint.h"

namespace engine {

double set_state_aside(KvRoom room, const ModelShard& shard, std::int64_t block_size, Pace& pace) {
  const double whole = kv_bytes(shard, room.context).value, state = kv_bytes(shard, 0).value;
  if (state <= 0) return room.tokens;
  const double size = double(block_size), left = room.tokens / room.context * whole;
  // Where nothing attends tokens keep nothing: as good as nothing, so that blocks can be counted.
  const double per_token = std::max((whole - state) / room.context, left / (kMostBlocks * size));
  pace.room = std::int64_t(std::ceil(state / per_token / size) * size);
  return left / per_token;
}

}  // namespace engine
