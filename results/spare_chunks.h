// Buffers of chunks that are written, kept for chunks to come, but never more than a stated number of
// bytes: what a burst of large chunks needed must not stay for the rest of the run.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "results/chunk_buffer.h"

namespace results {

using ChunkPtr = std::unique_ptr<ChunkBuffer>;

// Asked from any thread.
class SpareChunks {
 public:
  SpareChunks(const RowLayout& layout, std::size_t most_bytes)
      : layout_(layout), most_bytes_(most_bytes) {}

  // An empty buffer, used before or new.
  ChunkPtr take();
  void give_back(std::vector<ChunkPtr> chunks);

  std::size_t bytes() const;

 private:
  const RowLayout& layout_;
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::vector<ChunkPtr> chunks_;
  std::size_t bytes_ = 0;
};

}  // namespace results
