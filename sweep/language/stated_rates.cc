#include "sweep/language/stated_rates.h"

#include <algorithm>
#include <string>

#include "sweep/language/read_fields.h"

namespace sweep {
namespace {

// Leaves of any deployment's device as those of the main one.
class DeviceLeaves {
 public:
  explicit DeviceLeaves(const engine::Section& section)
      : section_(section), main_(table().sections[std::size_t(table().find_section("device"))]) {}

  engine::Device device(const std::vector<Edit>& edits) const {
    engine::Scenario scratch;
    for (const Edit& edit : edits) apply({of_main(edit.leaf), edit.value}, scratch);
    return scratch.device;
  }
  std::string name(int leaf) const {
    return engine::leaf_at(of_main(leaf)).path.substr(main_.path.size() + 1);
  }
  // What of an altered device differs from `edits`.
  void take(const engine::Device& device, std::vector<Edit>& edits) const {
    engine::Scenario scratch;
    scratch.device = device;
    for (Edit& edit : edits)
      edit.value = engine::get_leaf(scratch, engine::leaf_at(of_main(edit.leaf)));
  }

 private:
  static const engine::LeafTable& table() { return engine::leaf_table(); }
  int of_main(int leaf) const { return leaf - int(section_.first_leaf) + int(main_.first_leaf); }

  const engine::Section& section_;
  const engine::Section& main_;
};

}  // namespace

std::vector<Edit> made_from(const engine::Section& section, const Assignment& whole,
                            const std::vector<Assignment>& stated) {
  std::vector<Assignment> all{whole};
  all.insert(all.end(), stated.begin(), stated.end());
  std::vector<Edit> edits = merged(all);
  if (section.library != engine::Device::library || whole.edits.empty()) return edits;
  const DeviceLeaves leaves(section);
  std::vector<std::string> names;
  for (const Assignment& field : stated) {
    for (const Edit& edit : field.edits) names.push_back(leaves.name(edit.leaf));
  }
  engine::Device device = leaves.device(edits);
  const auto states = [&names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (!engine::hold_stated_rates(device, states)) return edits;
  leaves.take(device, edits);
  return edits;
}

}  // namespace sweep
