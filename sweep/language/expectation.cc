#include "sweep/language/expectation.h"

#include <cmath>

#include "sweep/language/node.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/read_value.h"
#include "sweep/language/reading.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

const std::vector<std::string> kKeys{"of", "at", "over", "within", "above", "below", "why"};
constexpr const char* kForm = "write '{of: tpot_s, at: 0, over: 1, within: [1.2, 2]}'";

std::optional<double> read_number(const Node& node, std::string_view said, Reading& reading) {
  const auto number = node.is_scalar() ? parse_number(node.text) : std::nullopt;
  if (!number || !std::isfinite(*number)) {
    reading.mistake(node.where, std::string(said) + " is not a number", kForm);
    return std::nullopt;
  }
  return number;
}

void read_range(const Node& node, Expectation& expectation, Reading& reading) {
  if (!node.is_sequence() || node.items.size() != 2) {
    return reading.mistake(node.where, "expect: 'within' takes two ends", kForm);
  }
  const auto low = read_number(node.items[0], "expect.within", reading);
  const auto high = read_number(node.items[1], "expect.within", reading);
  if (!low || !high) return;
  if (*low > *high) {
    return reading.mistake(node.where, "expect: 'within' ends before it starts", kForm);
  }
  expectation.low = *low;
  expectation.high = *high;
}

std::optional<std::uint64_t> read_position(const NodeEntry& entry, Reading& reading) {
  const auto number = read_count(entry.value, "expect." + entry.key.text, 0, reading);
  return number ? std::optional(std::uint64_t(*number)) : std::nullopt;
}

void read_entry(const NodeEntry& entry, Expectation& expectation, Reading& reading) {
  const std::string& key = entry.key.text;
  if (key == "of") {
    expectation.column = read_text(entry.value, "expect.of", reading).value_or("");
  } else if (key == "why") {
    expectation.why = read_text(entry.value, "expect.why", reading).value_or("");
  } else if (key == "within") {
    read_range(entry.value, expectation, reading);
  } else if (key == "at") {
    expectation.at = read_position(entry, reading);
  } else if (key == "over") {
    expectation.over = read_position(entry, reading);
  } else if (key == "above" || key == "below") {
    double& end = key == "above" ? expectation.low : expectation.high;
    end = read_number(entry.value, "expect." + key, reading).value_or(end);
  } else {
    reading.mistake(entry.key.where, "expect: unknown key '" + key + "'",
                    suggestion(key, kKeys, "known keys"));
  }
}

}  // namespace

std::vector<Expectation> read_expectations(const Node& list, Reading& reading) {
  std::vector<Expectation> expectations;
  if (!list.is_sequence()) {
    reading.mistake(list.where, "expect is " + std::string(name_of(list.kind)) + ", not a list",
                    kForm);
    return expectations;
  }
  for (const Node& item : list.items) {
    Expectation& expectation = expectations.emplace_back(Expectation{.where = item.where});
    for (const NodeEntry& entry : item.entries) read_entry(entry, expectation, reading);
    const bool bounded = std::isfinite(expectation.low) || std::isfinite(expectation.high);
    if (!item.is_map() || expectation.column.empty() || !bounded) {
      reading.mistake(item.where, "an expectation says of which column, and within which ends",
                      kForm);
    } else if (expectation.over && !expectation.at) {
      reading.mistake(item.where, "expect: 'over' without 'at'", kForm);
    } else if (expectation.low > expectation.high) {
      reading.mistake(item.where, "expect: nothing is above the one end and below the other",
                      "'above' is the lower end");
    }
  }
  return expectations;
}

void check_positions(const std::vector<Expectation>& expectations, std::uint64_t positions,
                     Reading& reading) {
  for (const Expectation& expectation : expectations) {
    for (const auto& position : {expectation.at, expectation.over}) {
      if (!position || *position < positions) continue;
      reading.mistake(expectation.where,
                      "expect: there is no position " + std::to_string(*position),
                      "the sweep has positions 0 to " + std::to_string(positions - 1));
    }
  }
}

std::string text_of(const Expectation& expectation) {
  const auto value = [&](const std::optional<std::uint64_t>& position) {
    return expectation.column + (position ? "[" + std::to_string(*position) + "]" : "");
  };
  std::string text = value(expectation.at);
  if (expectation.over) text += " / " + value(expectation.over);
  if (!std::isfinite(expectation.high)) return text + " above " + format_number(expectation.low);
  if (!std::isfinite(expectation.low)) return text + " below " + format_number(expectation.high);
  return text + " within " + format_number(expectation.low) + " and " +
         format_number(expectation.high);
}

}  // namespace sweep
