// What a replica's KV cache has room for.
#pragma once

#include "engine/model/model_shard.h"
#include "engine/step/pace.h"

namespace engine {

// More blocks than any machine holds; a product with a block's tokens still fits 64 bits.
constexpr double kMostBlocks = 1e9;

// Room for so many tokens, in sequences of `context` of them.
struct KvRoom {
  double tokens = 0;
  double context = 1;
};

// What a sequence keeps whatever its length (the state of a scan) it takes when it is admitted: as room for tokens that
// it never makes, which the pace has from now on. Returns the tokens there is room for when that is counted by itself.
double set_state_aside(KvRoom room, const ModelShard& shard, std::int64_t block_size, Pace& pace);

}  // namespace engine
