// What a part of a --where expression comes to, row by row, and in which unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "tools/query/points.h"

namespace tools {

struct WhereValue {
  enum class Kind : std::uint8_t { number, text, literal_number, literal_text };
  Kind kind = Kind::number;
  std::vector<double> numbers;  // of a literal one for all rows
  Coded texts;                  // of a column of texts
  std::string literal;          // of a text in quotes
  std::string name;             // of a column
  // What figures are in; of a written quantity, which is in base units, the symbol of its dimension; empty: nothing.
  std::string unit;
  std::size_t offset = 0;

  bool is_text() const { return kind == Kind::text || kind == Kind::literal_text; }
  bool is_literal() const { return kind == Kind::literal_number; }
  bool is_quantity() const { return is_literal() && !unit.empty(); }
  double at(std::size_t row) const { return numbers.size() == 1 ? numbers[0] : numbers[row]; }
};

// Thrown where an expression makes no sense.
struct WhereStop {
  engine::Mistake mistake;
};
[[noreturn]] void stop_where(std::size_t offset, const std::string& what, const std::string& hint);

// Brings what is compared or added up to one unit. A quantity must be of the dimension of what stands beside it.
void match_units(WhereValue& left, WhereValue& right);
// The unit of a sum of two that match. Plain numbers beside figures are in their unit.
std::string unit_of_sum(const WhereValue& left, const WhereValue& right);
// The units of products and ratios. What divides something of its own dimension is brought to one unit with it.
std::string unit_of_product(const WhereValue& left, const WhereValue& right);
std::string unit_of_ratio(WhereValue& left, WhereValue& right);

}  // namespace tools
