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

namespace results {
namespace {

using ChunkPtr = std::unique_ptr<ChunkBuffer>;

// Encoded parts that may wait for the disk: enough to ride out one slow sync.
constexpr std::size_t kMostWaiting = 4;

// Chunks on their way into one file a table.
struct OpenPart {
  std::vector<ChunkPtr> chunks;  // those with rows
  sweep::IndexSet positions;
  sweep::Tally tally;
  ByTable<std::size_t> rows;
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
        committer_([this] { commit_loop(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    committer_.join();
  }

  ChunkPtr start_chunk() {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        ChunkPtr chunk = std::move(spare_.back());
        spare_.pop_back();
        return chunk;
      }
    }
    return std::make_unique<ChunkBuffer>(layout_);
  }

  void finish_chunk(ChunkPtr chunk, sweep::IndexRange positions, const sweep::Tally& tally) {
    engine::check(chunk->rows() == tally.rows(), "the tally counts the rows of its chunk");
    OpenPart full;
    {
      const std::lock_guard lock(mutex_);
      rethrow();
      const auto now = options_.now();
      if (open_.empty()) open_.begun = now;
      open_.positions.add(positions);
      open_.tally.add(tally);
      const ByTable<std::size_t> rows = chunk->row_counts();
      for (const Table table : kDetailsFirst) open_.rows[table] += rows[table];
      (chunk->rows() > 0 ? open_.chunks : spare_).push_back(std::move(chunk));
      if (!ripe(now)) return;
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
  bool ripe(std::chrono::steady_clock::time_point now) const {
    if (now - open_.begun >= options_.oldest) return true;
    return std::ranges::any_of(kDetailsFirst, [this](Table table) {
      const bool points = table == Table::points;
      return open_.rows[table] >= (points ? options_.points_per_part : options_.details_per_part);
    });
  }

  // Under the lock.
  OpenPart take_open() {
    ++unfinished_;
    return std::exchange(open_, {});
  }

  // The first failure stays; everyone who waits learns of it.
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  void encode(OpenPart part) {
    try {
      EncodedPart encoded = encoded_part(part);
      std::unique_lock lock(mutex_);
      recycle(part);
      changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting || failure_; });
      rethrow();
      waiting_.push_back(std::move(encoded));
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

  // Under the lock: the chunks' memory serves the next ones.
  void recycle(OpenPart& part) {
    for (ChunkPtr& chunk : part.chunks) {
      chunk->clear();
      spare_.push_back(std::move(chunk));
    }
    part.chunks.clear();
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
    for (const Table table : kDetailsFirst) {
      bool shown = false;
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
    folder_.record(records);
  }

  RunFolder& folder_;
  const SinkOptions options_;
  const RowLayout layout_;
  const PartEncoder encoder_;

  std::mutex mutex_;
  std::condition_variable changed_;
  OpenPart open_;
  std::vector<ChunkPtr> spare_;
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

}  // namespace results
