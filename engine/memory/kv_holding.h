// What one request holds of a KV pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/small_list.h"

namespace engine {

// Blocks that the request takes while it decodes are not in here: its lane counts them.
struct KvHolding {
  struct Part {
    std::int32_t extent = -1;
    std::int32_t blocks = 0;  // of the extent, from its start
  };
  std::int64_t shared = 0;  // blocks of extents
  // The first extent of its prefix that it has neither found nor published.
  std::size_t next_extent = 0;
  SmallList<Part, 8> parts;  // what it holds of extents, in the order of its prefix

  // Empties the value and keeps its memory.
  void forget() {
    shared = 0;
    parts.clear();
    next_extent = 0;
  }
};

}  // namespace engine
