// `expect`: what must hold of a sweep's results, beside the sweep that gives them. Running does not ask; `llmsweep suite` does.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace sweep {

struct Node;
class Reading;

// A column lies between two ends, at every point or at one; or its value at one point is a stated multiple of that at another.
struct Expectation {
  std::string column;
  std::optional<std::uint64_t> at;    // a position; none: all of them
  std::optional<std::uint64_t> over;  // the position to divide by; none: the value itself
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string why;
  engine::Location where;
};

// A list of maps: {of: tpot_s, at: 0, over: 1, within: [1.2, 2], why: ...}; `above` and `below` state one end.
std::vector<Expectation> read_expectations(const Node& list, Reading& reading);

// Refuses positions that a sweep with that number of points does not have.
void check_positions(const std::vector<Expectation>& expectations, std::uint64_t positions,
                     Reading& reading);

// "tpot_s[0] / tpot_s[1] within 1.2 and 2".
std::string text_of(const Expectation& expectation);

}  // namespace sweep
