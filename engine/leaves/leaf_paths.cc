#include "engine/leaves/leaf_paths.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include <fmt/core.h>

#include "engine/base/check.h"

namespace engine {

using Kind = Test::Kind;

std::vector<int> leaves_at(std::string_view path) {
  const LeafTable& table = leaf_table();
  std::vector<int> leaves;
  if (const int leaf = table.find_leaf(path); leaf >= 0) leaves.push_back(leaf);
  if (const int section = table.find_section(path); section >= 0) {
    const Section& found = table.sections[std::size_t(section)];
    for (std::size_t i = found.first_leaf; i < found.last_leaf; ++i) leaves.push_back(int(i));
  }
  check(!leaves.empty(), "a condition is about a leaf or a section that exists");
  return leaves;
}

std::string path_for(const Leaf& leaf, std::string_view path) {
  if (!of_role(leaf)) return std::string(path);
  std::string there = fmt::format("{}.{}", traits_of(leaf.role).name, path);
  const LeafTable& table = leaf_table();
  return table.find_leaf(there) >= 0 || table.find_section(there) >= 0 ? there : std::string(path);
}

std::string path_of(const LeafUse& use, std::string_view path) {
  if (path.starts_with('.')) {
    return leaf_table().sections[std::size_t(use.section)].path + std::string(path);
  }
  return use.of_main ? std::string(path) : path_for(leaf_at(use.leaf), path);
}

bool follows_from_place(const Test& test) {
  return test.kind == Kind::role || test.kind == Kind::inside || test.kind == Kind::outside;
}

bool holds_in_place(const Test& test, const Leaf& leaf) {
  if (test.kind == Kind::role) return (test.names >> std::uint64_t(leaf.role) & 1) != 0;
  const bool inside = leaf.path.starts_with(test.path) && leaf.path[test.path.size()] == '.';
  return inside == (test.kind == Kind::inside);
}

namespace {

// "is a", "is a, b or c", "is not a", "is neither a nor b", "is none of a, b and c".
std::string among(const Test& test, const Leaf& leaf) {
  const int count = std::popcount(test.names);
  const bool not_named = test.kind == Kind::not_named;
  std::string text = !not_named   ? "is "
                     : count == 1 ? "is not "
                     : count == 2 ? "is neither "
                                  : "is none of ";
  const char* last = !not_named ? " or " : count == 2 ? " nor " : " and ";
  int said = 0;
  for (std::size_t i = 0; i < leaf.names.size(); ++i) {
    if ((test.names >> i & 1) == 0) continue;
    if (said > 0) text += said + 1 == count ? last : ", ";
    text += leaf.names[i];
    ++said;
  }
  return text;
}

std::string set_text(const Leaf& leaf) {
  if (leaf.kind == LeafKind::enumeration) return fmt::format("is not {}", leaf.names.front());
  return leaf.kind == LeafKind::boolean ? "is true" : "is set";
}

std::string zero_text(const Leaf& leaf) {
  if (leaf.kind == LeafKind::boolean) return "is false";
  const bool has_word = leaf.range.word != nullptr && leaf.range.word_value == 0;
  return has_word ? fmt::format("is {}", leaf.range.word) : "is 0";
}

std::string text_of(const LeafUse& use, const Test& test) {
  const std::string path = path_of(use, test.path);
  const Leaf& leaf = leaf_at(leaves_at(path).front());
  switch (test.kind) {
    case Kind::named:
    case Kind::not_named:
      return fmt::format("{} {}", path, among(test, leaf));
    case Kind::above:
      return fmt::format("{} is above {}", path, test.bound);
    case Kind::zero:
      return fmt::format("{} {}", path, zero_text(leaf));
    case Kind::set:
      return fmt::format("{} {}", path, set_text(leaf));
    default:
      break;
  }
  check(false, "a condition that is not about the value of one leaf has words of its own");
  return "";
}

// What stands for "{}" in a condition's own words.
std::string filling(const LeafUse& use) {
  for (const Test& test : *use.condition) {
    if (test.kind == Kind::role) return std::string(traits_of(leaf_at(use.leaf).role).called);
    if (test.kind == Kind::named || test.kind == Kind::not_named) {
      return among(test, leaf_at(leaves_at(path_of(use, test.path)).front()));
    }
  }
  return "";
}

}  // namespace

std::string LeafUse::where() const {
  std::string text(condition->words);
  if (text.empty()) {
    for (const Test& test : *condition) {
      if (!follows_from_place(test)) text += (text.empty() ? "" : ", or ") + text_of(*this, test);
    }
    return text;
  }
  if (const std::size_t place = text.find("{}"); place != std::string::npos) {
    text.replace(place, 2, filling(*this));
  }
  return text;
}

}  // namespace engine
