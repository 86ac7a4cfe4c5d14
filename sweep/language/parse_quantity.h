// Text to numbers and back: "3.35 TB/s" <-> 3.35e12. Scaling happens here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/units.h"

namespace sweep {

// A unit someone wrote: which dimension it measures and how many base units it is.
struct KnownUnit {
  std::string_view symbol;   // of the dimension, as engine::Unit has it: "B/s"
  std::string_view measure;  // "bandwidth"
  int exponent = 0;          // of ten
  double factor = 1;         // on top of it: 1024 for KiB
  double divisor = 1;        // 3600 for USD/h
};
std::optional<KnownUnit> find_unit(std::string_view text);

struct ParsedQuantity {
  double value = 0;  // in base units
  KnownUnit unit;
};
// A number and a unit of any dimension. What no double can hold in base units is none.
std::optional<ParsedQuantity> parse_quantity(std::string_view text);

// Whether it is written as a number: digits with optional '_' between them, fraction and exponent.
bool is_digits(std::string_view text);
// One of 0 to 9, whatever the locale counts as a digit.
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Such a number, if a double can hold it.
std::optional<double> parse_number(std::string_view text);
// A whole number: digits with optional '_', or one with an exponent that leaves it whole ("1e6").
std::optional<std::int64_t> parse_integer(std::string_view text);

// How many characters of the text are the number it starts with; 0 if none does.
std::size_t leading_number(std::string_view text);

// Splits "80 GB" into its number and its unit; the unit may be empty. Nothing if no number leads.
struct NumberAndUnit {
  std::string number;
  std::string unit;
};
std::optional<NumberAndUnit> split_quantity(std::string_view text);

// The shortest text that reads back as exactly this value.
std::string format_number(double value);
// The same in a unit a person would choose: "3.35 TB/s", "80 GiB", "300 us".
std::string format_quantity(double value, const engine::Unit& unit);

// "80 GB": how a value of this unit may be written.
std::string_view example_of(const engine::Unit& unit);
// "s", "min", "h", "d": what measures the same, without prefixes.
std::vector<std::string> units_of(const engine::Unit& unit);

}  // namespace sweep
