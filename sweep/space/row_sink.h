// Where evaluated points go and where finished ones may be found: what the runner asks of results.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/outcome.h"
#include "sweep/space/index_set.h"
#include "sweep/space/point.h"

namespace sweep {

// How many positions came to what.
struct Tally {
  std::array<std::uint64_t, enum_names(engine::Status{}).size()> by_status{};
  // Points that do not work, by engine::ReasonClass.
  std::array<std::uint64_t, enum_names(engine::ReasonClass{}).size()> by_class{};
  std::vector<std::uint64_t> rejected;  // by requirement
  std::uint64_t not_applicable = 0;
  std::uint64_t reused = 0;  // of by_status: taken from an earlier run

  std::uint64_t rows() const;
  std::uint64_t positions() const;
  void count(const engine::Outcome& outcome);
  void add(const Tally& other);
  bool operator==(const Tally&) const = default;
};

// The rows of one chunk of positions, filled by one thread.
class ChunkRows {
 public:
  virtual ~ChunkRows() = default;
  virtual void add(const Point& point, const engine::Outcome& outcome) = 0;
};

// Takes chunks from any thread, in any order. Once `flush` returns, every chunk taken is permanent.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual std::unique_ptr<ChunkRows> start_chunk() = 0;
  virtual void finish_chunk(std::unique_ptr<ChunkRows> rows, IndexRange positions,
                            const Tally& tally) = 0;
  virtual void flush() = 0;
};

// Outcomes of an earlier run, by key; asked from any thread.
class OutcomeArchive {
 public:
  virtual ~OutcomeArchive() = default;
  virtual bool find(const engine::Key& key, engine::Outcome& outcome) = 0;
};

}  // namespace sweep
