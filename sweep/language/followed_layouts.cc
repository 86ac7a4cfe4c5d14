#include "sweep/language/followed_layouts.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>

#include "engine/leaves/leaves.h"

namespace sweep {
namespace {

// Others are beside each replica of the main deployment, or one with it: they follow its layout on purpose.
constexpr std::array<std::string_view, 3> kWithReplicasOfTheirOwn{"prefill", "encode", "rerank"};
constexpr std::array<std::string_view, 5> kDegrees{"tp", "pp", "dp", "ep", "cp"};

// What is said of the layout of a role, and where first.
struct Stated {
  std::set<std::string_view> degrees;
  const engine::Location* where = nullptr;

  void add(std::string_view path, std::string_view section, const engine::Location& place) {
    for (const std::string_view degree : kDegrees) {
      if (path.size() != section.size() + degree.size() || !path.starts_with(section) ||
          !path.ends_with(degree))
        continue;
      degrees.insert(degree);
      if (where == nullptr) where = &place;
    }
  }
};

Stated stated_of(std::string_view section, const SpaceParts& parts,
                 const std::vector<StatedField>& base, const std::vector<engine::Location>& axes) {
  Stated stated;
  for (const StatedField& field : base) stated.add(field.path, section, field.where);
  for (std::size_t i = 0; i < parts.axes.size(); ++i) {
    for (const Edit& edit : parts.axes[i].edits) {
      stated.add(engine::leaf_at(edit.leaf).path, section, axes[i]);
    }
    const int drawn = parts.axes[i].interval.leaf;
    if (drawn != kNone) stated.add(engine::leaf_at(drawn).path, section, axes[i]);
  }
  return stated;
}

}  // namespace

std::vector<std::string> notes_on_followed_layouts(const SpaceParts& parts,
                                                   const std::vector<StatedField>& base,
                                                   const std::vector<engine::Location>& axes) {
  std::vector<std::string> notes;
  for (const std::string_view role : kWithReplicasOfTheirOwn) {
    const std::string section = std::string(role) + ".parallel.";
    const Stated stated = stated_of(section, parts, base, axes);
    if (stated.where == nullptr) continue;
    std::vector<std::string> followed;
    for (const std::string_view degree : kDegrees) {
      if (stated.degrees.contains(degree)) continue;
      const std::string path = "parallel." + std::string(degree);
      const int main = engine::leaf_table().find_leaf(path);
      const std::int64_t value = engine::leaf_integer(parts.base, engine::leaf_at(main));
      if (value > 1) followed.push_back(fmt::format("{} {}", degree, value));
    }
    if (followed.empty()) continue;
    notes.push_back(fmt::format(
        "{}:{}:{}: '{}parallel' states {} and no more, so it has {} of the main deployment; state "
        "what is to differ, also where that is 1",
        stated.where->file, stated.where->line, stated.where->column,
        section.substr(0, section.size() - 9), fmt::join(stated.degrees, ", "),
        fmt::join(followed, ", ")));
  }
  return notes;
}

}  // namespace sweep
