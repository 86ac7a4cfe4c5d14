#include "sweep/space/leaf_write.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <variant>

#include "sweep/space/space_parts.h"

namespace sweep {
namespace {

LeafWrite laid_out(const Edit& edit) {
  const engine::Leaf& leaf = engine::leaf_table().leaves[std::size_t(edit.leaf)];
  LeafWrite write;
  write.offset = std::uint32_t(leaf.offset);
  write.kind = leaf.kind;
  if (const double* number = std::get_if<double>(&edit.value)) write.number = *number;
  if (const std::int64_t* integer = std::get_if<std::int64_t>(&edit.value))
    write.integer = *integer;
  if (const bool* boolean = std::get_if<bool>(&edit.value)) write.integer = *boolean ? 1 : 0;
  if (const std::string* text = std::get_if<std::string>(&edit.value)) write.text = text;
  return write;
}

}  // namespace

void write(const LeafWrite& edit, engine::Scenario& scenario) {
  char* place = reinterpret_cast<char*>(&scenario) + edit.offset;
  switch (edit.kind) {
    case engine::LeafKind::quantity:
    case engine::LeafKind::number:
      std::memcpy(place, &edit.number, sizeof edit.number);
      return;
    case engine::LeafKind::integer:
      std::memcpy(place, &edit.integer, sizeof edit.integer);
      return;
    case engine::LeafKind::boolean:
    case engine::LeafKind::enumeration:
      *reinterpret_cast<std::uint8_t*>(place) = std::uint8_t(edit.integer);
      return;
    case engine::LeafKind::text:
      *reinterpret_cast<std::string*>(place) = *edit.text;
      return;
  }
}

void compile_writes(SpaceParts& parts) {
  const std::vector<engine::Leaf>& leaves = engine::leaf_table().leaves;
  // What gives way has been written already where another axis says what the base says.
  std::unordered_set<int> yielded;
  for (const Axis& axis : parts.axes) {
    if (!axis.yields) continue;
    for (const Edit& edit : axis.edits) yielded.insert(edit.leaf);
  }
  for (Axis& axis : parts.axes) {
    // A role is like the main deployment of its point, not like the base.
    const bool always = axis.inside_another || axis.role != kNone;
    axis.writes.clear();
    for (Setting& setting : axis.settings) {
      setting.first_write = std::uint32_t(axis.writes.size());
      for (std::uint32_t i = setting.first_edit; i < setting.last_edit; ++i) {
        const Edit& edit = axis.edits[i];
        const engine::Leaf& leaf = leaves[std::size_t(edit.leaf)];
        const bool may_differ = always || yielded.contains(edit.leaf);
        if (!may_differ && edit.value == engine::get_leaf(parts.base, leaf)) continue;
        axis.writes.push_back(laid_out(edit));
      }
      setting.last_write = std::uint32_t(axis.writes.size());
    }
  }
  parts.writes_of_roles.clear();
  for (const Edit& edit : parts.stated_of_roles) parts.writes_of_roles.push_back(laid_out(edit));
}

}  // namespace sweep
