// The values of one axis: a list, or a linear, geometric or power-of-two range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/language/node.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/reading.h"

namespace sweep {

// What was written for a path under `axes`, `zip` or `of`.
struct AxisForm {
  // As an Axis has them, but for labels and conditions, which get their numbers there.
  std::vector<Setting> settings;
  std::vector<Edit> edits;
  std::vector<std::string> labels;   // one a setting
  std::vector<const Node*> whens;    // one a setting; nullptr: none
  std::optional<Interval> interval;  // `of` only: a stretch to draw from
  const Node* when = nullptr;
  bool yields = false;  // to whatever else the sweep says of the path

  void add(std::string label, const std::vector<Edit>& made, const Node* only_when = nullptr);
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
