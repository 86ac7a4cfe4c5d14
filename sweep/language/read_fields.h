// Fields of a scenario or of one of its sections, as `base`, an axis or a spec file writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"

namespace sweep {

// Where a map of fields stands: the section its keys belong to (nullptr: the whole scenario), and
// what to put before a key in messages.
struct FieldScope {
  const engine::Section* section = nullptr;
  std::string said;
};

// A map of fields. Broad paths come before narrow ones; a path set twice is a mistake.
std::vector<Assignment> read_fields(const Node& map, const FieldScope& scope, Reading& reading);

// What a section may be: a name of its library, a map with `from:` and overrides (one assignment of
// the whole section), or a plain map (one assignment a field).
std::vector<Assignment> read_section(const engine::Section& section, const Node& node,
                                     std::string_view said, Reading& reading);

// What a path stands for: `speculation.draft` names the model of the deployment that drafts. Other paths
// stand for themselves.
std::string meant_by(std::string_view path);

// A leaf or section by its full path, with a mistake and a suggestion where there is none such.
struct Target {
  const engine::Leaf* leaf = nullptr;
  const engine::Section* section = nullptr;
};
Target find_target(const Node& path, Reading& reading);

// All edits in order; the last one for a leaf wins. Sorted by leaf.
std::vector<Edit> merged(const std::vector<Assignment>& assignments);

// Every path of the scenario: leaves and sections.
std::vector<std::string> all_paths();

}  // namespace sweep
