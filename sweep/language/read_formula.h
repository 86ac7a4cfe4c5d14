// An expression as written, checked and made ready to compile.
#pragma once

#include <optional>
#include <string_view>

#include "engine/leaves/leaves.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"
#include "sweep/space/expression.h"

namespace sweep {

// A condition (`require`, `when`): true or false.
std::optional<Formula> read_condition(const Node& node, std::string_view said, Reading& reading);

// A value for a leaf (`derive`).
std::optional<Formula> read_derivation(const Node& node, const engine::Leaf& target,
                                       std::string_view said, Reading& reading);

}  // namespace sweep
