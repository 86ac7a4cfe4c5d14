// The values of one axis: a list, or a linear, geometric or power-of-two range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/language/node.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/reading.h"

namespace sweep {

// One value an axis can take.
struct AxisValue {
  std::string label;
  std::vector<Edit> edits;
  const Node* when = nullptr;
};

// What was written for a path under `axes`, `zip` or `of`.
struct AxisForm {
  std::vector<AxisValue> values;
  std::optional<Interval> interval;  // `of` only: a stretch to draw from
  const Node* when = nullptr;
};

// An axis longer than this is refused: its labels would have to be held in memory.
constexpr std::int64_t kMostValues = 1'000'000;

enum class FormPlace : std::uint8_t {
  axis,    // values must differ
  zip,     // they may repeat
  sample,  // two numbers are an interval
};

// Empty where there are mistakes.
AxisForm read_form(const Target& target, const NodeEntry& entry, FormPlace place, Reading& reading);

}  // namespace sweep
