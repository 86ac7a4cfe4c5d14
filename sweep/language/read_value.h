// One value for one leaf: what was written becomes a number in base units, or a mistake.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/leaves/leaves.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"

namespace sweep {

// `said` is what the user calls the leaf here, for the message.
std::optional<engine::LeafValue> read_value(const engine::Leaf& leaf, const Node& node,
                                            std::string_view said, Reading& reading);

// Whether a number may stand in the leaf; if not, the mistake is noted.
bool check_range(const engine::Leaf& leaf, double value, const Node& node, std::string_view said,
                 Reading& reading);

// "at least 1", "above 0", "between 0 and 1"; empty where anything goes.
std::string range_text(const engine::Leaf& leaf);

// The value as a spec writes it: "3.35 TB/s", "64", "true", "bf16", "h100-sxm".
std::string value_text(const engine::Leaf& leaf, const engine::LeafValue& value);

// A whole number in an option of the language itself (`count: 8`), at least `low`.
std::optional<std::int64_t> read_count(const Node& node, std::string_view said, std::int64_t low,
                                       Reading& reading);

// The text of a scalar, or a mistake.
std::optional<std::string> read_text(const Node& node, std::string_view said, Reading& reading);

}  // namespace sweep
