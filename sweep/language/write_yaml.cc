#include "sweep/language/write_yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <vector>

#include "sweep/language/read_value.h"

namespace sweep {
namespace {

using engine::Leaf;
using engine::Section;

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t dot = path.find('.');
    parts.push_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
           c == '+' || c == '-' || c == ' ';
  };
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), is_plain) &&
                     std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
                     text.back() != ' ' && text != "null";
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\x%02x", unsigned(static_cast<unsigned char>(c)));
      quoted += code.data();
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string fields_yaml(const engine::Scenario& scenario, const Section* section,
                        LeavesToWrite which) {
  const engine::LeafTable& table = engine::leaf_table();
  const engine::Scenario defaults;
  const std::size_t skip = section == nullptr ? 0 : section->path.size() + 1;
  const std::size_t first = section == nullptr ? 0 : section->first_leaf;
  const std::size_t last = section == nullptr ? table.leaves.size() : section->last_leaf;
  std::string text;
  std::vector<std::string_view> open;  // sections whose heading is written
  for (std::size_t i = first; i < last; ++i) {
    const Leaf& leaf = table.leaves[i];
    // A role's fields follow the main deployment's: what is said of it is for the caller to write.
    if (section == nullptr && engine::of_role(leaf)) continue;
    const engine::LeafValue value = engine::get_leaf(scenario, leaf);
    if (which == LeavesToWrite::all_but_defaults && value == engine::get_leaf(defaults, leaf))
      continue;
    const std::vector<std::string_view> parts = parts_of(std::string_view(leaf.path).substr(skip));
    std::size_t shared = 0;
    while (shared < open.size() && shared + 1 < parts.size() && open[shared] == parts[shared])
      ++shared;
    open.resize(shared);
    for (; open.size() + 1 < parts.size(); open.push_back(parts[open.size()])) {
      text += std::string(2 * open.size(), ' ') + std::string(parts[open.size()]) + ":\n";
    }
    text += std::string(2 * open.size(), ' ') + std::string(parts.back()) + ": " +
            yaml_scalar(value_text(leaf, value)) + "\n";
  }
  return text;
}

}  // namespace sweep
