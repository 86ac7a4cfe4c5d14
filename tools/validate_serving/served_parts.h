// What tables of serving runs have in common: names of theirs for parts of our library, and the scenario those parts make.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "engine/base/result.h"
#include "engine/scenario.h"
#include "tools/validate_serving/named_specs.h"

namespace tools {

using Names = std::pair<std::string_view, std::string_view>;  // in a table, in our library

struct NamedMachine {
  std::string_view name;  // in a table
  std::string_view device, cluster;
};

// A served scenario of these parts, or which of them is missing.
struct ServedParts {
  std::string_view model, device, cluster, serving, host;
};
engine::Result<engine::Scenario> served_scenario(NamedSpecs& specs, const ServedParts& parts);

// Requests of these lengths that all come at once, measured to the last answer, as clients of benchmarks count.
engine::Load all_at_once(std::int64_t requests, std::int64_t prompt, std::int64_t output);

}  // namespace tools
