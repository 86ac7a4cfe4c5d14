// Takes chunks of rows from all threads and makes them permanent, part by part.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "results/run_folder.h"
#include "results/schema.h"
#include "sweep/space/row_sink.h"

namespace results {

// The steps by which a batch of parts becomes permanent, in their order.
enum class SinkStep : std::uint8_t {
  encoded,        // all bytes are there, in memory
  written,        // hidden files, synced
  details_shown,  // all tables but points have their names
  points_shown,   // points, too
  recorded,       // the manifest says so, synced
};

struct SinkOptions {
  // A part is closed when it has this many points, this many rows of another table, or is this old
  // (or a hundredth of the time since the sink was made, where that is more) when a chunk comes in.
  // Bigger parts mean fewer files and more memory; a kill loses at most the open ones.
  std::size_t points_per_part = 16 << 10;
  std::size_t details_per_part = 512 << 10;
  std::chrono::milliseconds oldest{10'000};
  // For tests: the clock that ages parts, and what happens at each step.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::function<void(SinkStep)> at_step = [](SinkStep) {};
};

// Memory of a sink's chunks, in bytes.
struct SinkMemory {
  std::size_t open = 0;      // of the part that is being filled
  std::size_t encoding = 0;  // of parts that are being encoded
  std::size_t spare = 0;     // kept for chunks to come
};

// The worker that completes a part encodes it while the others go on; one thread of the sink's own
// writes the bytes, so that no worker waits for the disk unless the disk cannot keep up. Memory is
// at most one open part, four that are being encoded by as many workers, four encoded ones, and spare
// buffers for one part, whatever the number of workers and of points.
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
  SinkMemory memory() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace results
