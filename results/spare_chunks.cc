#include "results/spare_chunks.h"

#include <utility>

namespace results {

ChunkPtr SpareChunks::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!chunks_.empty()) {
      ChunkPtr chunk = std::move(chunks_.back());
      chunks_.pop_back();
      bytes_ -= chunk->bytes();
      return chunk;
    }
  }
  return std::make_unique<ChunkBuffer>(layout_);
}

void SpareChunks::give_back(std::vector<ChunkPtr> chunks) {
  for (const ChunkPtr& chunk : chunks) chunk->clear();
  const std::lock_guard lock(mutex_);
  for (ChunkPtr& chunk : chunks) {
    const std::size_t bytes = chunk->bytes();
    if (bytes_ + bytes > most_bytes_) continue;  // freed with `chunks`, by the caller's thread
    bytes_ += bytes;
    chunks_.push_back(std::move(chunk));
  }
}

std::size_t SpareChunks::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace results
