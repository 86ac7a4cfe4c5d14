// Many random numbers at once, in a quarter of the time that one by one takes.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/random.h"

namespace engine {

// The n-th uniform numbers of their owners, one after the other: `uniform(mixed_seed(seed, owner), stream, n)`.
struct Draws {
  std::vector<std::uint64_t> owner, n;
  std::vector<double> u;

  std::size_t size() const { return u.size(); }
  void resize(std::size_t size) {
    owner.resize(size);
    n.resize(size);
    u.resize(size);
  }
};
void draw(std::uint64_t seed, Stream stream, Draws& draws);

}  // namespace engine
