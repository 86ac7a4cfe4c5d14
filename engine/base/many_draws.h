// Many random numbers at once, in half of the time that one by one takes.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/random.h"

namespace engine {

// The n-th uniform number of somebody's own: `uniform(mixed_seed(seed, owner), stream, n)`.
struct Draw {
  std::uint64_t owner = 0, n = 0;
  double u = 0;
};
void draw(std::uint64_t seed, Stream stream, std::span<Draw> draws);

}  // namespace engine
