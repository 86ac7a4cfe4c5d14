#include "results/batch_sink.h"

#include <algorithm>
#include <utility>

namespace results {
namespace {

RowLayout without_details(const SchemaInputs& inputs) {
  RowLayout layout(inputs);
  layout.keeps_details = false;
  return layout;
}

}  // namespace

BatchSink::BatchSink(const SchemaInputs& inputs, const std::vector<std::string>& only)
    : layout_(without_details(inputs)), encoder_(inputs, {}, only) {}

std::unique_ptr<sweep::ChunkRows> BatchSink::start_chunk() {
  return std::make_unique<ChunkBuffer>(layout_);
}

void BatchSink::finish_chunk(std::unique_ptr<sweep::ChunkRows> rows, sweep::IndexRange,
                             const sweep::Tally&) {
  ChunkPtr chunk(static_cast<ChunkBuffer*>(rows.release()));
  if (chunk->rows() == 0) return;
  const std::lock_guard lock(mutex_);
  chunks_.push_back(std::move(chunk));
}

std::size_t BatchSink::rows() const {
  const std::lock_guard lock(mutex_);
  std::size_t rows = 0;
  for (const ChunkPtr& chunk : chunks_) rows += chunk->rows();
  return rows;
}

FileBytes BatchSink::file() {
  PartRows part;
  part.rows[Table::points] = rows();
  std::ranges::sort(chunks_, {}, [](const ChunkPtr& chunk) { return chunk->indices()[0]; });
  for (const ChunkPtr& chunk : chunks_) part.chunks.push_back(chunk.get());
  return encoder_.file(Table::points, part);
}

}  // namespace results
