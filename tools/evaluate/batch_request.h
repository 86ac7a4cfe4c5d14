// One request of the open pipe: a base, and what each scenario of a batch sets, as one line of JSON.
//   {"base": {"task": "step", ...}, "set": {"device": ["h100-sxm", ...], "step.batch": [1, ...]}, "columns": ["status", ...]}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/batch_reader.h"

namespace tools {

struct BatchRequest {
  std::string base;  // as JSON
  std::vector<sweep::BatchField> fields;
  std::vector<std::string> columns;  // of the answer; none: all of the table
  std::size_t scenarios = 1;
};

// Mistakes in the values are at the place "scenario 17", counted from 0.
engine::Result<BatchRequest> parse_request(std::string_view line);

// The number of the scenario that a mistake is about, or -1.
std::int64_t scenario_of(const engine::Mistake& mistake);

}  // namespace tools
