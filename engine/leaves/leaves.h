// The scenario as a flat table of leaves: path, kind, unit, range, meaning and place. Built once from
// the field lists; the YAML reader, axes, keys, Parquet columns and `describe` all work on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/deployment_role.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/leaves/key.h"
#include "engine/scenario.h"

namespace engine {

enum class LeafKind : std::uint8_t { quantity, number, integer, boolean, enumeration, text };

// The upper end of a leaf of this kind that states none.
double most_of(LeafKind kind);

struct Leaf {
  std::string path;  // "device.memory_bandwidth"
  LeafKind kind = LeafKind::number;
  Unit unit;                                // of a quantity
  std::span<const std::string_view> names;  // of an enumeration
  Range range;
  std::string_view meaning;
  std::size_t offset = 0;                      // of the value within Scenario
  int section = -1;                            // the innermost around it; -1: none
  DeploymentRole role = DeploymentRole::main;  // whose leaf it is
  // Of a leaf of a role ("prefill.device.clock"), the leaf that says whether the role is present, and the
  // leaf of the main deployment that it is like unless it is stated; -1 elsewhere.
  int presence = -1;
  int of_main = -1;
};

// A struct inside the scenario, with the folder of specs/ its named values live in (or empty).
struct Section {
  std::string path;  // "device", "device.scale_up"
  std::string_view library;
  std::string_view meaning;
  Range range;                 // what holds of its leaves
  int around = -1;             // the section it lies in; -1: none
  std::size_t first_leaf = 0;  // its leaves are [first_leaf, last_leaf) of the table
  std::size_t last_leaf = 0;
  std::size_t offset = 0;                     // of the struct within Scenario
  void (*complete)(void* section) = nullptr;  // fills in what a spec file leaves to convention
  void (*rate)(void* section) = nullptr;      // of a whole spec: what things made from it follow
};

struct LeafTable {
  std::vector<Leaf> leaves;
  std::vector<Section> sections;

  // Position of a path, or -1.
  int find_leaf(std::string_view path) const { return find(leaf_numbers, path); }
  int find_section(std::string_view path) const { return find(section_numbers, path); }

  using Numbers = std::map<std::string, int, std::less<>>;  // by path
  Numbers leaf_numbers;
  Numbers section_numbers;

 private:
  static int find(const Numbers& numbers, std::string_view path) {
    const auto found = numbers.find(path);
    return found == numbers.end() ? -1 : found->second;
  }
};

const LeafTable& leaf_table();
inline const Leaf& leaf_at(int number) { return leaf_table().leaves[std::size_t(number)]; }

// Fills in what the spec file of a section leaves to convention.
void complete_section(Scenario& scenario, const Section& section);
// The same of a whole spec, which other things may be made from.
void complete_spec(Scenario& scenario, const Section& section);

// Whether the leaf belongs to a deployment beside the main one.
inline bool of_role(const Leaf& leaf) { return leaf.role != DeploymentRole::main; }
// Whether the leaf means something in a scenario: not that of a role which is not there.
bool is_present(const Scenario& scenario, const Leaf& leaf);

// A quantity or number is a double in base units, an enumeration its number.
using LeafValue = std::variant<double, std::int64_t, bool, std::string>;

LeafValue get_leaf(const Scenario& scenario, const Leaf& leaf);
// The value must hold the alternative the leaf's kind asks for (enumeration: std::int64_t).
void set_leaf(Scenario& scenario, const Leaf& leaf, const LeafValue& value);

// The value of a numeric, boolean or enumeration leaf as a double; NaN for text.
double leaf_as_double(const Scenario& scenario, const Leaf& leaf);
// Direct access for the fast paths; the kind must match.
double leaf_double(const Scenario& scenario, const Leaf& leaf);
std::int64_t leaf_integer(const Scenario& scenario, const Leaf& leaf);  // also enumeration, boolean
const std::string& leaf_text(const Scenario& scenario, const Leaf& leaf);

}  // namespace engine
