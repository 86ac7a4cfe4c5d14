// One point of a space: its place, its labels, its scenario and its identity.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/leaves/leaves.h"
#include "engine/scenario.h"

namespace sweep {

struct Point {
  std::uint64_t index = 0;
  engine::Key key;
  engine::Scenario scenario;
  // One code a label column of the space (see Space::label_columns); -1 where none applies.
  std::vector<std::int32_t> labels;
};

// Whether a position of the grid is a point to evaluate.
enum class Admission : std::uint8_t {
  admitted,
  rejected,        // a `require` is false here
  not_applicable,  // an axis whose `when` is false here; its first position stands for all
};

}  // namespace sweep
