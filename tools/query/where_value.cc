#include "tools/query/where_value.h"

#include <cmath>

#include "sweep/language/parse_quantity.h"

namespace tools {
namespace {

// How many base units one of a column's unit is: a column in USD/h is compared with a quantity in USD/s.
double base_units(const WhereValue& value) {
  const auto unit = sweep::find_unit(value.unit);
  if (value.is_literal() || !unit) return 1;
  return std::pow(10.0, unit->exponent) * unit->factor / unit->divisor;
}

// Of units that only columns have, as USD/Mtok, each is a dimension.
std::string dimension_of(const std::string& unit) {
  const auto known = sweep::find_unit(unit);
  return known ? std::string(known->symbol) : unit;
}
bool same_dimension(const WhereValue& left, const WhereValue& right) {
  return !left.unit.empty() && dimension_of(left.unit) == dimension_of(right.unit);
}

void bring(WhereValue& value, const WhereValue& beside) {
  const double ratio = base_units(value) / base_units(beside);
  if (ratio == 1) return;
  for (double& number : value.numbers) number *= ratio;
}
void bring_together(WhereValue& left, WhereValue& right) {
  left.is_literal() ? bring(left, right) : bring(right, left);
}

// Of figures that a quantity is multiplied with or divided by: the base unit, where dimensions have one of another name.
std::string unit_in_figures(const WhereValue& value, const WhereValue& beside) {
  if (!value.is_quantity() || beside.is_literal()) return value.unit;
  return value.unit == "USD/h" ? "USD/s" : value.unit;
}

// A product of hours and dollars an hour is one of seconds and dollars a second only where all are in base units.
void refuse_mixture(const WhereValue& left, const WhereValue& right) {
  if (!left.is_quantity() && !right.is_quantity()) return;
  if (base_units(left) == 1 && base_units(right) == 1) return;
  const WhereValue& figures = left.is_literal() ? right : left;
  stop_where(
      right.offset,
      "a number with a unit is neither multiplied with nor divided by what is in " + figures.unit,
      "write a plain number");
}

}  // namespace

void stop_where(std::size_t offset, const std::string& what, const std::string& hint) {
  throw WhereStop{{{.file = "--where", .line = 1, .column = int(offset) + 1}, what, hint}};
}

void match_units(WhereValue& left, WhereValue& right) {
  if (left.is_text() || right.is_text()) return;
  if (same_dimension(left, right)) return bring_together(left, right);
  if (!left.is_quantity() && !right.is_quantity()) return;
  const WhereValue& quantity = left.is_quantity() ? left : right;
  const WhereValue& other = left.is_quantity() ? right : left;
  stop_where(quantity.offset,
             other.unit.empty() ? "this number has a unit, and what it is compared with has none"
                                : "this unit does not measure what the column is in: " + other.unit,
             other.unit.empty() ? "write a plain number" : "write a number in " + other.unit);
}

std::string unit_of_sum(const WhereValue& left, const WhereValue& right) {
  if (left.is_literal() && (left.unit.empty() || !right.is_literal())) return right.unit;
  if (right.is_literal() || same_dimension(left, right)) return left.unit;
  return "";
}

std::string unit_of_product(const WhereValue& left, const WhereValue& right) {
  if (left.unit.empty()) return unit_in_figures(right, left);
  if (right.unit.empty()) return unit_in_figures(left, right);
  refuse_mixture(left, right);
  return "";
}

std::string unit_of_ratio(WhereValue& left, WhereValue& right) {
  if (right.unit.empty()) return unit_in_figures(left, right);
  if (left.unit.empty()) return "";
  if (same_dimension(left, right)) {
    bring_together(left, right);
  } else {
    refuse_mixture(left, right);
  }
  return "";
}

}  // namespace tools
