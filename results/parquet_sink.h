// Takes chunks of rows from all threads and makes them permanent, part by part.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "results/run_folder.h"
#include "results/schema.h"
#include "sweep/space/row_sink.h"

namespace results {

struct SinkOptions {
  // A part is closed when it has this many points, this many rows of another table, or is this old
  // when a chunk comes in. Bigger parts mean fewer files and more memory; a kill loses at most the
  // open ones.
  std::size_t points_per_part = 16 << 10;
  std::size_t details_per_part = 512 << 10;
  std::chrono::milliseconds oldest{10'000};
  // For tests: the clock that ages parts.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// The worker that completes a part encodes it while the others go on; one thread of the sink's own
// writes the bytes, so that no worker waits for the disk unless the disk cannot keep up. Memory is
// at most one open part, one part a worker, and four encoded ones.
//
// When the disk fails, finish_chunk and flush throw the Failure, then and ever after; what was
// committed before stays.
class ParquetSink final : public sweep::RowSink {
 public:
  // The folder must outlive the sink.
  ParquetSink(RunFolder& folder, const SchemaInputs& inputs, SinkOptions options = {});
  // Commits the parts that are complete; an open part is lost without a flush.
  ~ParquetSink() override;

  std::unique_ptr<sweep::ChunkRows> start_chunk() override;
  void finish_chunk(std::unique_ptr<sweep::ChunkRows> rows, sweep::IndexRange positions,
                    const sweep::Tally& tally) override;
  void flush() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace results
