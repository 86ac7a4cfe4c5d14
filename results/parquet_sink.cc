#include "results/parquet_sink.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "results/chunk_buffer.h"
#include "results/durable_file.h"
#include "results/part_encoder.h"
#include "results/seal.h"
#include "results/spare_chunks.h"

namespace results {
namespace {

// Encoded parts that may wait for the disk: enough to ride out one slow sync.
constexpr std::size_t kMostWaiting = 4;
// Parts that may be in encoding, each some 100 MB with all that takes. Four workers encode several
// million points a second, which is more than a disk takes.
constexpr std::size_t kMostEncoding = 4;
// Buffers kept for chunks to come: about those of one part.
constexpr std::size_t kMostSpareBytes = 48 << 20;

// Chunks on their way into one file a table.
struct OpenPart {
  std::vector<ChunkPtr> chunks;  // those with rows
  sweep::IndexSet positions;
  sweep::Tally tally;
  ByTable<std::size_t> rows;
  std::size_t bytes = 0;  // of the chunks
  std::chrono::steady_clock::time_point begun;

  bool empty() const { return positions.empty(); }
};

// A part ready for the disk.
struct EncodedPart {
  PartRecord record;
  ByTable<FileBytes> files;
};

}  // namespace

class ParquetSink::Impl {
 public:
  Impl(RunFolder& folder, const SchemaInputs& inputs, SinkOptions options)
      : folder_(folder),
        options_(std::move(options)),
        layout_(inputs),
        encoder_(inputs, folder.identity()),
        spare_(layout_, kMostSpareBytes),
        committer_([this] { commit_loop(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    committer_.join();
  }

  ChunkPtr start_chunk() { return spare_.take(); }

  SinkMemory memory() const {
    const std::lock_guard lock(mutex_);
    return {.open = open_.bytes, .encoding = encoding_bytes_, .spare = spare_.bytes()};
  }

  void finish_chunk(ChunkPtr chunk, sweep::IndexRange positions, const sweep::Tally& tally) {
    engine::check(chunk->rows() == tally.rows(), "the tally counts the rows of its chunk");
    if (chunk->rows() == 0) {
      std::vector<ChunkPtr> empty;
      empty.push_back(std::exchange(chunk, nullptr));
      spare_.give_back(std::move(empty));
    } else {
      chunk->trim();
    }
    OpenPart full;
    {
      std::unique_lock lock(mutex_);
      // A thread with a chunk for a part that is full, and that may not encode that part, waits: so memory is bounded.
      changed_.wait(lock,
                    [this] { return failure_ || encoding_ < kMostEncoding || !open_is_full(); });
      rethrow();
      const auto now = options_.now();
      if (open_.empty()) open_.begun = now;
      open_.positions.add(positions);
      open_.tally.add(tally);
      if (chunk != nullptr) {
        const ByTable<std::size_t> rows = chunk->row_counts();
        for (const Table table : kDetailsFirst) open_.rows[table] += rows[table];
        open_.bytes += chunk->bytes();
        open_.chunks.push_back(std::move(chunk));
      }
      const bool ripe = open_is_full() || now - open_.begun >= oldest(now);
      if (!ripe || encoding_ >= kMostEncoding) return;
      full = take_open();
    }
    encode(std::move(full));
  }

  void flush() {
    OpenPart rest;
    {
      const std::lock_guard lock(mutex_);
      rethrow();
      if (!open_.empty()) rest = take_open();
    }
    if (!rest.empty()) encode(std::move(rest));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return unfinished_ == 0 || failure_; });
    rethrow();
  }

 private:
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  // Under the lock.
  bool open_is_full() const {
    return std::ranges::any_of(kDetailsFirst, [this](Table table) {
      const bool points = table == Table::points;
      return open_.rows[table] >= (points ? options_.points_per_part : options_.details_per_part);
    });
  }

  // A kill may cost a hundredth of what a run has taken so far; parts of ten seconds would be thousands
  // of files a day, of every worker.
  std::chrono::steady_clock::duration oldest(std::chrono::steady_clock::time_point now) const {
    return std::max<std::chrono::steady_clock::duration>(options_.oldest, (now - started_) / 100);
  }

  // Under the lock.
  OpenPart take_open() {
    ++unfinished_;
    ++encoding_;
    encoding_bytes_ += open_.bytes;
    return std::exchange(open_, {});
  }

  // Keeps the first failure, and tells all waiting threads.
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  void encode(OpenPart part) {
    try {
      EncodedPart encoded = encoded_part(part);
      spare_.give_back(std::exchange(part.chunks, {}));
      std::unique_lock lock(mutex_);
      encoding_bytes_ -= part.bytes;
      changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting || failure_; });
      rethrow();
      waiting_.push_back(std::move(encoded));
      --encoding_;
      changed_.notify_all();
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
  }

  EncodedPart encoded_part(OpenPart& part) {
    // Chunks end in any order; rows of a file are in the order of their index.
    std::ranges::sort(part.chunks, {}, [](const ChunkPtr& chunk) { return chunk->indices()[0]; });
    PartRows rows{.chunks = {}, .rows = part.rows};
    for (const ChunkPtr& chunk : part.chunks) rows.chunks.push_back(chunk.get());

    EncodedPart encoded;
    encoded.record.positions = part.positions.ranges();
    encoded.record.tally = part.tally;
    for (const Table table : kDetailsFirst) {
      if (rows.rows[table] == 0) continue;
      const FileBytes& file = encoded.files[table] = encoder_.file(table, rows);
      encoded.record.files[table] = {.name = "",  // its number is given when it is written
                                     .rows = rows.rows[table],
                                     .bytes = file.bytes.size(),
                                     .checksum = checksum_of(file.bytes)};
    }
    return encoded;
  }

  void commit_loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !waiting_.empty() || stopping_; });
      if (waiting_.empty()) return;
      std::vector<EncodedPart> parts = std::exchange(waiting_, {});
      const bool failed = failure_ != nullptr;
      changed_.notify_all();
      lock.unlock();
      try {
        if (!failed) commit(parts);
      } catch (...) {
        fail(std::current_exception());
      }
      const std::size_t finished = parts.size();
      parts.clear();
      lock.lock();
      unfinished_ -= finished;
      changed_.notify_all();
    }
  }

  // Points last: one that can be seen has its kernels and whatever else it has.
  void commit(std::vector<EncodedPart>& parts) {
    const auto& root = folder_.path();
    options_.at_step(SinkStep::encoded);
    for (EncodedPart& part : parts) {
      part.record.sequence = folder_.next_sequence();
      for (const Table table : kDetailsFirst) {
        PartFile& file = part.record.files[table];
        if (file.rows == 0) continue;
        file.name = part_name(table, folder_.identity().shard, part.record.sequence);
        make_folder((root / file.name).parent_path());
        write_hidden(root / file.name, part.files[table].bytes);
      }
    }
    options_.at_step(SinkStep::written);
    for (const Table table : kDetailsFirst) {
      bool shown = false;
      if (table == Table::points) options_.at_step(SinkStep::details_shown);
      for (const EncodedPart& part : parts) {
        const PartFile& file = part.record.files[table];
        if (file.name.empty()) continue;
        reveal(root / file.name);
        shown = true;
      }
      if (shown) sync_folder(root / engine::name_of(table));
    }
    std::vector<PartRecord> records;
    for (EncodedPart& part : parts) records.push_back(std::move(part.record));
    options_.at_step(SinkStep::points_shown);
    folder_.record(records);
    options_.at_step(SinkStep::recorded);
  }

  RunFolder& folder_;
  const SinkOptions options_;
  const std::chrono::steady_clock::time_point started_ = options_.now();
  const RowLayout layout_;
  const PartEncoder encoder_;

  SpareChunks spare_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  OpenPart open_;
  std::size_t encoding_ = 0;  // parts taken and not yet waiting for the disk
  std::size_t encoding_bytes_ = 0;
  std::vector<EncodedPart> waiting_;
  std::size_t unfinished_ = 0;  // parts taken and not yet committed
  std::exception_ptr failure_;
  bool stopping_ = false;

  std::thread committer_;  // last: it starts when all the rest is there
};

ParquetSink::ParquetSink(RunFolder& folder, const SchemaInputs& inputs, SinkOptions options)
    : impl_(std::make_unique<Impl>(folder, inputs, std::move(options))) {}
ParquetSink::~ParquetSink() = default;

std::unique_ptr<sweep::ChunkRows> ParquetSink::start_chunk() { return impl_->start_chunk(); }

void ParquetSink::finish_chunk(std::unique_ptr<sweep::ChunkRows> rows, sweep::IndexRange positions,
                               const sweep::Tally& tally) {
  impl_->finish_chunk(ChunkPtr(static_cast<ChunkBuffer*>(rows.release())), positions, tally);
}

void ParquetSink::flush() { impl_->flush(); }
SinkMemory ParquetSink::memory() const { return impl_->memory(); }

}  // namespace results
