#include "sweep/language/parse_quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>

#include "sweep/space/sampled_value.h"

namespace sweep {
namespace {

struct Prefix {
  std::string_view text;
  int exponent = 0;
  double factor = 1;
};
constexpr Prefix kNoPrefix[] = {{"", 0}};
constexpr Prefix kSmall[] = {{"p", -12},     {"n", -9},      {"u", -6},
                             {"\u00b5", -6}, {"\u03bc", -6}, {"m", -3}};
constexpr Prefix kLarge[] = {{"k", 3},  {"K", 3},  {"M", 6}, {"G", 9},
                             {"T", 12}, {"P", 15}, {"E", 18}};
constexpr Prefix kBinary[] = {
    {"Ki", 0, 0x1p10}, {"Mi", 0, 0x1p20}, {"Gi", 0, 0x1p30}, {"Ti", 0, 0x1p40}};

// What may stand before a unit.
enum PrefixSet : unsigned { none = 0, small = 1, large = 2, binary = 4 };

struct Stem {
  std::string_view text;
  std::string_view symbol;
  std::string_view measure;
  unsigned prefixes = none;
  double factor = 1;
  double divisor = 1;
};
constexpr Stem kStems[] = {
    {"s", "s", "time", small},
    {"min", "s", "time", none, 60},
    {"h", "s", "time", none, 3600},
    {"d", "s", "time", none, 86400},
    {"Hz", "Hz", "frequency", large},
    {"B", "B", "memory", large | binary},
    {"B/s", "B/s", "bandwidth", large | binary},
    {"Bps", "B/s", "bandwidth", large},
    {"b/s", "B/s", "bandwidth", large, 1, 8},
    {"bit/s", "B/s", "bandwidth", large, 1, 8},
    {"bps", "B/s", "bandwidth", large, 1, 8},
    {"FLOP", "FLOP", "arithmetic", large},
    {"FLOP/s", "FLOP/s", "arithmetic rate", large},
    {"FLOPS", "FLOP/s", "arithmetic rate", large},
    {"OP/s", "FLOP/s", "arithmetic rate", large},
    {"OPS", "FLOP/s", "arithmetic rate", large},
    {"J", "J", "energy", small | large},
    {"W", "W", "power", small | large},
    {"USD", "USD", "price", none},
    {"USD/h", "USD/h", "rent", none, 1, 3600},
    {"USD/hour", "USD/h", "rent", none, 1, 3600},
    {"USD/s", "USD/h", "rent", none},
    {"req/s", "req/s", "request rate", large},
    {"req/min", "req/s", "request rate", none, 1, 60},
    {"req/h", "req/s", "request rate", none, 1, 3600},
    {"tok/s", "tok/s", "token rate", large},
};

std::optional<KnownUnit> match(std::string_view text, const Stem& stem,
                               std::span<const Prefix> prefixes) {
  for (const Prefix& prefix : prefixes) {
    if (text.size() == prefix.text.size() + stem.text.size() && text.starts_with(prefix.text) &&
        text.ends_with(stem.text)) {
      return KnownUnit{stem.symbol, stem.measure, prefix.exponent, prefix.factor * stem.factor,
                       stem.divisor};
    }
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Length of the number that leads the text, 0 if none does. '_' may stand between digits.
std::size_t number_length(std::string_view text) {
  std::size_t i = 0;
  std::size_t digits = 0;
  const auto run = [&] {
    while (i < text.size()) {
      if (is_digit(text[i])) {
        ++digits;
      } else if (text[i] != '_' || i == 0 || !is_digit(text[i - 1]) || i + 1 >= text.size() ||
                 !is_digit(text[i + 1])) {
        break;
      }
      ++i;
    }
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  run();
  if (i < text.size() && text[i] == '.') {
    ++i;
    run();
  }
  if (digits == 0) return 0;
  if (i + 1 < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (text[j] == '-' || text[j] == '+') ++j;
    if (j < text.size() && is_digit(text[j])) {
      while (j < text.size() && is_digit(text[j])) ++j;
      i = j;
    }
  }
  return i;
}

// Shifts by powers of ten in the text, so that "3.35 TB/s" is the double nearest to 3.35e12.
std::optional<double> scaled_number(std::string_view number, int exponent) {
  std::string digits;
  for (const char c : number) {
    if (c != '_' && c != '+') digits += c;
  }
  const std::size_t e = digits.find_first_of("eE");
  int own = 0;
  if (e != std::string::npos) {
    const char* first = digits.data() + e + 1;
    if (std::from_chars(first, digits.data() + digits.size(), own).ec != std::errc{}) {
      return std::nullopt;
    }
    // '+' was dropped above, also from the exponent. Far beyond every double, so that the sum below
    // cannot pass the end of an int either.
    own = std::clamp(own, -100'000, 100'000);
    digits.resize(e);
  }
  digits += "e" + std::to_string(own + exponent);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Decimal digits and the exponent of the first, shortest that reads back exactly.
struct Digits {
  std::string digits;
  int exponent = 0;
  bool negative = false;
};
Digits shortest_digits(double value) {
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), std::size_t(end - buffer.data()));
  Digits result;
  const std::size_t e = text.find('e');
  for (const char c : text.substr(0, e)) {
    if (c == '-') result.negative = true;
    if (is_digit(c)) result.digits += c;
  }
  result.exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  return result;
}

// Writes digits with the point after `before` of them: ("335", 1) -> "3.35", ("2", 4) -> "2000".
std::string placed(const Digits& number, int before) {
  std::string text = number.negative ? "-" : "";
  if (before <= 0) {
    return text + "0." + std::string(std::size_t(-before), '0') + number.digits;
  }
  const int count = int(number.digits.size());
  if (before >= count) return text + number.digits + std::string(std::size_t(before - count), '0');
  return text + number.digits.substr(0, std::size_t(before)) + "." +
         number.digits.substr(std::size_t(before));
}

unsigned prefixes_of(std::string_view stem) {
  for (const Stem& known : kStems) {
    if (known.text == stem) return known.prefixes;
  }
  return none;
}

// "3.35 TB/s" for a unit whose prefixes are powers of ten.
std::string decimal_text(double value, std::string_view symbol) {
  const Digits number = shortest_digits(value);
  const unsigned allowed = prefixes_of(symbol);
  Prefix best{};
  const auto consider = [&](std::span<const Prefix> prefixes) {
    for (const Prefix& prefix : prefixes) {
      if (prefix.text == "K" || prefix.text.size() > 1) continue;
      const bool fits = prefix.exponent <= number.exponent;
      const bool best_fits = best.exponent <= number.exponent;
      // The largest prefix not above the number; below all of them, the smallest.
      if (fits ? (!best_fits || prefix.exponent > best.exponent)
               : (!best_fits && prefix.exponent < best.exponent)) {
        best = prefix;
      }
    }
  };
  if (value != 0) {
    if (allowed & small) consider(kSmall);
    if (allowed & large) consider(kLarge);
  }
  const int before = number.exponent - best.exponent + 1;
  const std::string unit = std::string(best.text) + std::string(symbol);
  if (before < -6 || before > 21) return format_number(value) + " " + std::string(symbol);
  return placed(number, before) + " " + unit;
}

// "80 GiB", or nothing if the value is no whole number of a binary unit.
std::string binary_text(double value) {
  for (int i = 3; i >= 0; --i) {
    const double count = value / kBinary[i].factor;
    if (count >= 1 && count < 0x1p20 && count == std::floor(count)) {
      return format_number(count) + " " + std::string(kBinary[i].text) + "B";
    }
  }
  return "";
}

}  // namespace

std::optional<KnownUnit> find_unit(std::string_view text) {
  for (const Stem& stem : kStems) {
    if (auto unit = match(text, stem, kNoPrefix)) return unit;
    if (stem.prefixes & small) {
      if (auto unit = match(text, stem, kSmall)) return unit;
    }
    if (stem.prefixes & large) {
      if (auto unit = match(text, stem, kLarge)) return unit;
    }
    if (stem.prefixes & binary) {
      if (auto unit = match(text, stem, kBinary)) return unit;
    }
  }
  return std::nullopt;
}

std::size_t leading_number(std::string_view text) { return number_length(text); }

bool is_digits(std::string_view text) {
  text = trimmed(text);
  return !text.empty() && number_length(text) == text.size();
}

std::optional<NumberAndUnit> split_quantity(std::string_view text) {
  text = trimmed(text);
  const bool dollars = text.starts_with('$');
  if (dollars) text = trimmed(text.substr(1));
  const std::size_t length = number_length(text);
  if (length == 0) return std::nullopt;
  NumberAndUnit parts;
  parts.number = text.substr(0, length);
  parts.unit = (dollars ? "USD" : "") + std::string(trimmed(text.substr(length)));
  return parts;
}

std::optional<ParsedQuantity> parse_quantity(std::string_view text) {
  const auto parts = split_quantity(text);
  if (!parts) return std::nullopt;
  const auto unit = find_unit(parts->unit);
  if (!unit) return std::nullopt;
  const auto value = scaled_number(parts->number, unit->exponent);
  if (!value) return std::nullopt;
  const double scaled = *value * unit->factor / unit->divisor;
  if (!std::isfinite(scaled)) return std::nullopt;
  return ParsedQuantity{scaled, *unit};
}

std::optional<double> parse_number(std::string_view text) {
  if (!is_digits(text)) return std::nullopt;
  return scaled_number(trimmed(text), 0);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (!is_digits(text)) return std::nullopt;
  text = trimmed(text);
  if (text.find_first_of(".eE") == std::string_view::npos) {
    std::string digits;
    for (const char c : text) {
      if (c != '_' && c != '+') digits += c;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  }
  if (text.find('.') != std::string_view::npos) return std::nullopt;
  const auto value = scaled_number(text, 0);
  if (!value || *value != std::floor(*value) || std::abs(*value) > 0x1p53) return std::nullopt;
  return std::int64_t(*value);
}

std::string format_number(double value) {
  if (value == 0) return "0";
  const Digits number = shortest_digits(value);
  if (number.exponent >= -5 && number.exponent <= 15) return placed(number, number.exponent + 1);
  return placed(number, 1) + "e" + std::to_string(number.exponent);
}

std::string format_quantity(double value, const engine::Unit& unit) {
  const std::string_view symbol = unit.symbol;
  if (unit.per_base == 1) {
    const std::string decimal = decimal_text(value, symbol);
    const std::string binary_unit = symbol == "B" ? binary_text(value) : "";
    // Whichever a person would rather read; a tie goes to the decimal one.
    return !binary_unit.empty() && binary_unit.size() + 1 < decimal.size() ? binary_unit : decimal;
  }
  // The shortest number of the scaled unit that reads back exactly; rarely there is none.
  for (int digits = 1; digits <= 17; ++digits) {
    const double scaled = rounded(value * unit.per_base, digits);
    if (scaled / unit.per_base == value) return format_number(scaled) + " " + std::string(symbol);
  }
  return format_number(value) + " USD/s";
}

std::vector<std::string> units_of(const engine::Unit& unit) {
  std::vector<std::string> units;
  for (const Stem& stem : kStems) {
    if (stem.symbol == unit.symbol) units.emplace_back(stem.text);
  }
  return units;
}

std::string_view example_of(const engine::Unit& unit) {
  struct Example {
    std::string_view symbol;
    std::string_view text;
  };
  constexpr Example examples[] = {
      {"s", "10 us"},         {"Hz", "1.5 GHz"},     {"B", "80 GB"},
      {"B/s", "3.35 TB/s"},   {"FLOP", "1 TFLOP"},   {"J", "5 J"},
      {"W", "700 W"},         {"USD", "25000 USD"},  {"FLOP/s", "989 TFLOP/s"},
      {"USD/h", "2.5 USD/h"}, {"req/s", "10 req/s"}, {"tok/s", "100 tok/s"},
  };
  for (const Example& example : examples) {
    if (example.symbol == unit.symbol) return example.text;
  }
  return "1";
}

}  // namespace sweep
