// A document as our own tree: what was written, and where. Nothing beyond yaml_file.cc knows YAML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace sweep {

struct NodeEntry;

struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };

  Kind kind = Kind::null;
  std::string text;     // of a scalar
  bool quoted = false;  // a scalar in quotes, or a block scalar
  engine::Location where;
  std::vector<Node> items;         // of a sequence
  std::vector<NodeEntry> entries;  // of a map, in the order written

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_map() const { return kind == Kind::map; }

  // The value under a key of a map, or nullptr.
  const Node* find(std::string_view key) const;
};

struct NodeEntry {
  Node key;
  Node value;
};

inline const Node* Node::find(std::string_view key) const {
  for (const NodeEntry& entry : entries) {
    if (entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

// "a list", for messages.
inline std::string_view name_of(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "a single value";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map";
  }
  return "";
}

// Everything in it that a limit counts: values, lists, maps and keys.
std::int64_t node_count(const Node& node);

// The node in one line, as a user would write it: "{from: h100-sxm, clock: 1.5 GHz}".
std::string flow_text(const Node& node);

}  // namespace sweep
