// The points of one batch as the bytes of one Parquet file, without a folder.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "results/chunk_buffer.h"
#include "results/part_encoder.h"
#include "results/schema.h"
#include "results/spare_chunks.h"
#include "sweep/space/row_sink.h"

namespace results {

class BatchSink final : public sweep::RowSink {
 public:
  // Only the columns of these names, in the order of the table; none named: all of them.
  BatchSink(const SchemaInputs& inputs, const std::vector<std::string>& only);

  std::unique_ptr<sweep::ChunkRows> start_chunk() override;
  void finish_chunk(std::unique_ptr<sweep::ChunkRows> rows, sweep::IndexRange positions,
                    const sweep::Tally& tally) override;
  void flush() override {}

  std::size_t rows() const;
  // Every row taken, in the order of their positions; there is one.
  FileBytes file();

 private:
  RowLayout layout_;
  PartEncoder encoder_;
  mutable std::mutex mutex_;
  std::vector<ChunkPtr> chunks_;
};

}  // namespace results
