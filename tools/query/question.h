// What the verbs top, pareto and sensitivity are asked, and the rows that count for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "tools/query/points.h"

namespace tools {

enum class Better : std::uint8_t { lower, higher };

// Whether more or less of a figure is better, by its name: rates, shares in use and room are better
// high, times, prices and bytes low. A user may say otherwise.
Better better_of(std::string_view metric);

struct Objective {
  std::string column;
  Better better = Better::lower;
};

struct Question {
  std::vector<Objective> objectives;
  std::string where;     // empty: every point
  std::string group_by;  // an axis or a setting; empty: all in one
};

// The rows that work, pass --where and have every figure asked for; and the figures, all rows of them.
struct Candidates {
  std::vector<std::uint32_t> rows;          // ascending
  std::vector<std::vector<double>> values;  // one column an objective
  Coded group;                              // empty without group_by
  std::string group_column;
  std::size_t all = 0;
  std::size_t ok = 0;
  std::vector<std::string> notes;  // about the question

  std::uint32_t group_of(std::uint32_t row) const {
    return group.codes.empty() ? 0 : group.codes[row];
  }
};

// Every mistake at once: unknown figures, texts where numbers are wanted, an expression that is wrong.
engine::Result<Candidates> candidates(const RunRows& rows, const Question& question);

}  // namespace tools
