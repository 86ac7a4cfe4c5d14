// What somebody must know who reads or ranks rows that are `ok`: a table of notes, and how many rows each is about. `run`, `check`,
// `notes`, `top`, `pareto`, `report` and Python's `Run.notes` say them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "tools/query/points.h"

namespace tools {

struct RowNote {
  std::string_view where;   // the rows that it is about, as `--where` has it
  std::string_view says;    // what those rows do; read after "12 of 40 points"
  std::string_view remedy;  // which field states what is meant
};

// Most misleading first.
std::span<const RowNote> row_notes();

// What a note ends with: what to state in the spec, or how to ask without those rows.
enum class NoteEnd : std::uint8_t { remedy, without };

// Counts of every note over rows that come in portions, so that a run of millions of rows is never in memory.
class NoteCounts {
 public:
  NoteCounts();
  // Of all rows, or of these, those that are `ok`.
  void add(const RunRows& rows);
  void add(const RunRows& rows, std::vector<std::uint32_t> chosen);
  // "12 of 40 points are ...; 'load.requests: auto' ...", a line for each note that is about some row.
  std::vector<std::string> texts(NoteEnd end) const;

 private:
  std::size_t points_ = 0;
  std::vector<std::size_t> about_;  // by note
};

// Of what a run has so far, part by part. A folder that is no run is a mistake; a damaged file is a results::Failure.
engine::Result<std::vector<std::string>> notes_of_run(const std::string& folder);

}  // namespace tools
