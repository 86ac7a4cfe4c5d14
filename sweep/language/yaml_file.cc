#include "sweep/language/yaml_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "sweep/input/mistake_list.h"
#include "sweep/input/read_text.h"
#include "sweep/language/suggest.h"

namespace sweep {
namespace {

using engine::Location;
using engine::Mistake;

// What a tree costs. Aliases repeat what they point at: a small file could grow without bound, and in
// depth as well.
struct Extent {
  std::int64_t nodes = 1;
  std::int64_t bytes = 0;
  std::int64_t depth = 0;
};
Extent extent_of(const Node& node) {
  Extent whole{.bytes = std::int64_t(node.text.size())};
  const auto add = [&whole](const Node& part) {
    const Extent inside = extent_of(part);
    whole.nodes += inside.nodes;
    whole.bytes += inside.bytes;
    whole.depth = std::max(whole.depth, inside.depth + 1);
  };
  for (const Node& item : node.items) add(item);
  for (const NodeEntry& entry : node.entries) {
    whole.nodes += 1;
    whole.bytes += std::int64_t(entry.key.text.size());
    add(entry.value);
  }
  return whole;
}

// What most often is behind a syntax error.
std::string syntax_hint(std::string_view text, int line) {
  for (int i = 1; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  }
  if (text.starts_with('\t')) return "this line starts with a tab; indent with spaces";
  return "look for a missing colon, bracket or quote, or wrong indentation";
}

// Thrown where a limit is passed: reading on would be what the limit is there to prevent.
struct BeyondLimit : public std::exception {
  explicit BeyondLimit(Mistake found) : mistake(std::move(found)) {}
  Mistake mistake;
};

// Builds the tree from the parser's events. A frame is a sequence or map that is still open.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, const InputLimits& limits)
      : file_(std::move(file)), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) {
      mistakes.add({place(mark), "a second document starts here",
                    "a spec is one document; remove the '---'"});
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(mark, Node::Kind::null), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(mark, Node::Kind::scalar);
    if (std::int64_t(value.size()) > limits_.scalar_bytes) {
      stop(node.where, "a value of more than " + limit_text(limits_.scalar_bytes), "scalar_bytes");
    }
    node.text = value;
    node.quoted = tag == "!";  // yaml-cpp tags plain scalars "?"
    if (!node.quoted && (value == "~" || value == "null" || value.empty())) {
      node.kind = Node::Kind::null;
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Node& named = anchors_[anchor];
    const Extent extent = extent_of(named);
    take(extent, place(mark));
    check_depth(extent.depth, place(mark));
    Node copy = named;
    copy.where = place(mark);
    add(std::move(copy), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(mark, Node::Kind::sequence), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(mark, Node::Kind::map), anchor);
  }
  void OnMapEnd() override { close(); }

  Node root;
  MistakeList mistakes;

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    Node key;
    bool has_key = false;
    std::vector<Node> merged;              // what `<<` brought
    std::map<std::string, int> key_lines;  // keys of a map and where they are
  };

  Location place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] static void stop(const Location& where, std::string what, std::string_view limit) {
    throw BeyondLimit(beyond_limit(where, std::move(what), limit));
  }

  // Counts what is about to be added.
  void take(const Extent& extent, const Location& where) {
    taken_.nodes += extent.nodes;
    taken_.bytes += extent.bytes;
    const std::string what = "the document is too large once its aliases are put in place";
    if (taken_.nodes > limits_.nodes) stop(where, what, "nodes");
    if (taken_.bytes > limits_.spec_bytes) stop(where, what, "spec_bytes");
  }
  void check_depth(std::int64_t more, const Location& where) const {
    if (std::int64_t(frames_.size()) + more <= limits_.depth) return;
    stop(where, "more than " + std::to_string(limits_.depth) + " lists and maps inside one another",
         "depth");
  }

  Node make(const YAML::Mark& mark, Node::Kind kind) {
    Node node;
    node.kind = kind;
    node.where = place(mark);
    take({}, node.where);
    return node;
  }

  void open(Node node, YAML::anchor_t anchor) {
    check_depth(1, node.where);
    Frame& frame = frames_.emplace_back();
    frame.node = std::move(node);
    frame.anchor = anchor;
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    for (const Node& merged : frame.merged) {
      for (const NodeEntry& entry : merged.entries) {
        if (frame.key_lines.emplace(entry.key.text, entry.key.where.line).second) {
          frame.node.entries.push_back(entry);
        }
      }
    }
    add(std::move(frame.node), frame.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      take(extent_of(node), node.where);
      anchors_[anchor] = node;
    }
    if (frames_.empty()) {
      if (documents_ < 2) root = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.is_sequence()) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      if (node.is_null()) node.text = node.text.empty() ? "null" : node.text;
      if (node.is_sequence() || node.is_map()) {
        mistakes.add({node.where, "a key is " + std::string(name_of(node.kind)),
                      "write the key as plain text"});
        node.text = flow_text(node);
      }
      if (std::int64_t(node.text.size()) > limits_.key_bytes) {
        stop(node.where, "a key of more than " + limit_text(limits_.key_bytes), "key_bytes");
      }
      frame.key = std::move(node);
      frame.has_key = true;
    } else {
      frame.has_key = false;
      add_entry(frame, std::move(node));
    }
  }

  void add_entry(Frame& frame, Node value) {
    if (frame.key.text == "<<" && !frame.key.quoted) {
      merge(frame, value);
      return;
    }
    // A value that is not there has no place of its own.
    if (value.is_null() && value.text.empty()) value.where = frame.key.where;
    const auto [before, fresh] = frame.key_lines.emplace(frame.key.text, value.where.line);
    if (!fresh) {
      mistakes.add({frame.key.where, "duplicate key '" + frame.key.text + "'",
                    "it is already set on line " + std::to_string(before->second)});
      return;
    }
    if (std::int64_t(frame.node.entries.size()) >= limits_.keys) {
      stop(frame.key.where, "a map of more than " + std::to_string(limits_.keys) + " keys", "keys");
    }
    frame.node.entries.push_back({std::move(frame.key), std::move(value)});
  }

  // `<<: *a` or `<<: [*a, *b]`: keys of those maps that are not written here.
  void merge(Frame& frame, const Node& value) {
    const std::vector<Node> sources = value.is_sequence() ? value.items : std::vector<Node>{value};
    for (const Node& source : sources) {
      if (source.is_map()) {
        frame.merged.push_back(source);
      } else {
        mistakes.add({value.where, "'<<' takes a map, not " + std::string(name_of(source.kind)),
                      "point it at an anchor, as in '<<: *defaults'"});
      }
    }
  }

  std::string file_;
  InputLimits limits_;
  int documents_ = 0;
  Extent taken_{.nodes = 0};
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Node> anchors_;
};

}  // namespace

std::int64_t node_count(const Node& node) { return extent_of(node).nodes; }

std::string flow_text(const Node& node) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return node.text;
    case Node::Kind::sequence:
      for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return "[" + text + "]";
    case Node::Kind::map:
      for (const NodeEntry& entry : node.entries) {
        text += (text.empty() ? "" : ", ") + entry.key.text + ": " + flow_text(entry.value);
      }
      return "{" + text + "}";
  }
  return text;
}

engine::Result<Node> read_yaml(std::string_view text, const std::string& file_name,
                               const InputLimits& limits) {
  TreeBuilder builder(file_name, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    Location where{file_name, 0, 0};
    if (!error.mark.is_null()) where = {file_name, error.mark.line + 1, error.mark.column + 1};
    builder.mistakes.add({where, "this is not YAML: " + error.msg, syntax_hint(text, where.line)});
  } catch (const BeyondLimit& beyond) {
    builder.mistakes.add(beyond.mistake);
  } catch (const std::exception& error) {
    builder.mistakes.add({{file_name, 0, 0}, "this is not YAML: " + std::string(error.what()), ""});
  }
  if (!builder.mistakes.empty()) return std::move(builder.mistakes).finish();
  if (builder.root.where.file.empty()) builder.root.where = {file_name, 1, 1};
  return std::move(builder.root);
}

engine::Result<std::string> read_text_file(const std::filesystem::path& file,
                                           const InputLimits& limits) {
  engine::Result<std::string> text = read_spec_text(file, limits);
  std::error_code error;
  if (text || std::filesystem::exists(file, error)) return text;
  Mistake missing = text.mistakes().front();
  missing.hint = similar_file_hint(file);
  return missing;
}

engine::Result<Node> read_yaml_file(const std::filesystem::path& file, const InputLimits& limits) {
  const engine::Result<std::string> text = read_text_file(file, limits);
  if (!text) return text.mistakes();
  return read_yaml(*text, file.string(), limits);
}

}  // namespace sweep
