// Scenarios and spaces back to YAML, with units, so that reading gives the very same values.
#pragma once

#include <string>
#include <string_view>

#include "engine/leaves/leaves.h"
#include "engine/scenario.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// A scalar, in quotes where it needs them.
std::string yaml_scalar(std::string_view text);

enum class LeavesToWrite : std::uint8_t { all, all_but_defaults };

// The fields of a section (nullptr: of the whole scenario, without its roles), one a line.
std::string fields_yaml(const engine::Scenario& scenario, const engine::Section* section,
                        LeavesToWrite which);

// `base`, `axes`, `derive` and `require`: everything that decides the points.
std::string space_yaml(const SpaceParts& parts);

}  // namespace sweep
