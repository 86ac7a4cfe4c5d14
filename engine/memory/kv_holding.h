// What one request holds of a KV pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/small_list.h"

namespace engine {

// Blocks that it grows by while decoding are counted by who decodes.
struct KvHolding {
  struct Part {
    std::int32_t extent = -1;
    std::int32_t blocks = 0;  // of the extent, from its start
  };
  std::int64_t shared = 0;      // blocks in extents
  std::size_t next_extent = 0;  // of its prefix, the first it has neither found nor published
  SmallList<Part, 8> parts;     // held, in the order of the sequence

  // Holds nothing; its memory stays.
  void forget() {
    shared = 0;
    parts.clear();
    next_extent = 0;
  }
};

}  // namespace engine
