#include "sweep/spec/yaml_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "sweep/spec/suggest.h"

namespace sweep {
namespace {

using engine::Location;
using engine::Mistake;

// Aliases repeat what they point at; a small file could otherwise grow without bound.
constexpr std::size_t kMostNodes = 2'000'000;

std::size_t node_count(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += node_count(item);
  for (const NodeEntry& entry : node.entries) count += 1 + node_count(entry.value);
  return count;
}

// What most often is behind a syntax error.
std::string syntax_hint(std::string_view text, int line) {
  for (int i = 1; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  }
  if (text.starts_with('\t')) return "this line starts with a tab; indent with spaces";
  return "look for a missing colon, bracket or quote, or wrong indentation";
}

class TooLarge : public std::exception {};

// Builds the tree from the parser's events. A frame is a sequence or map that is still open.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) {
      mistakes.push_back({place(mark), "a second document starts here",
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
    node.text = value;
    node.quoted = tag == "!";  // yaml-cpp tags plain scalars "?"
    if (!node.quoted && (value == "~" || value == "null" || value.empty())) {
      node.kind = Node::Kind::null;
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node copy = anchors_[anchor];
    copy.where = place(mark);
    total_ += node_count(copy);
    add(std::move(copy), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    frames_.push_back({make(mark, Node::Kind::sequence), anchor});
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    frames_.push_back({make(mark, Node::Kind::map), anchor});
  }
  void OnMapEnd() override { close(); }

  Node root;
  std::vector<Mistake> mistakes;

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    Node key;
    bool has_key = false;
    std::vector<Node> merged;  // what `<<` brought
  };

  Location place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  Node make(const YAML::Mark& mark, Node::Kind kind) {
    if (++total_ > kMostNodes) throw TooLarge();
    Node node;
    node.kind = kind;
    node.where = place(mark);
    return node;
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    for (const Node& merged : frame.merged) {
      for (const NodeEntry& entry : merged.entries) {
        if (frame.node.find(entry.key.text) == nullptr) frame.node.entries.push_back(entry);
      }
    }
    add(std::move(frame.node), frame.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (total_ > kMostNodes) throw TooLarge();
    if (anchor != 0) anchors_[anchor] = node;
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
        mistakes.push_back({node.where, "a key is " + std::string(name_of(node.kind)),
                            "write the key as plain text"});
        node.text = flow_text(node);
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
    if (const Node* before = frame.node.find(frame.key.text)) {
      mistakes.push_back({frame.key.where, "duplicate key '" + frame.key.text + "'",
                          "it is already set on line " + std::to_string(before->where.line)});
      return;
    }
    // A value that is not there has no place of its own.
    if (value.is_null() && value.text.empty()) value.where = frame.key.where;
    frame.node.entries.push_back({std::move(frame.key), std::move(value)});
  }

  // `<<: *a` or `<<: [*a, *b]`: keys of those maps that are not written here.
  void merge(Frame& frame, const Node& value) {
    const std::vector<Node> sources = value.is_sequence() ? value.items : std::vector<Node>{value};
    for (const Node& source : sources) {
      if (source.is_map()) {
        frame.merged.push_back(source);
      } else {
        mistakes.push_back({value.where,
                            "'<<' takes a map, not " + std::string(name_of(source.kind)),
                            "point it at an anchor, as in '<<: *defaults'"});
      }
    }
  }

  std::string file_;
  int documents_ = 0;
  std::size_t total_ = 0;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Node> anchors_;
};

}  // namespace

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

engine::Result<Node> read_yaml(std::string_view text, const std::string& file_name) {
  TreeBuilder builder(file_name);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    Location where{file_name, 0, 0};
    if (!error.mark.is_null()) where = {file_name, error.mark.line + 1, error.mark.column + 1};
    builder.mistakes.push_back(
        {where, "this is not YAML: " + error.msg, syntax_hint(text, where.line)});
  } catch (const TooLarge&) {
    builder.mistakes.push_back({{file_name, 0, 0},
                                "the document is too large once its aliases are put in place",
                                "use fewer aliases"});
  } catch (const std::exception& error) {
    builder.mistakes.push_back(
        {{file_name, 0, 0}, "this is not YAML: " + std::string(error.what()), ""});
  }
  if (!builder.mistakes.empty()) return std::move(builder.mistakes);
  if (builder.root.where.file.empty()) builder.root.where = {file_name, 1, 1};
  return std::move(builder.root);
}

engine::Result<std::string> read_text_file(const std::filesystem::path& file) {
  std::error_code error;
  const Location where{file.string(), 0, 0};
  if (!std::filesystem::exists(file, error)) {
    return Mistake{where, "there is no such file", similar_file_hint(file)};
  }
  if (!std::filesystem::is_regular_file(file, error)) {
    return Mistake{where, "this is not a file", "name a file, not a folder"};
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return Mistake{where, "this file cannot be read", "check its permissions"};
  return std::move(text).str();
}

engine::Result<Node> read_yaml_file(const std::filesystem::path& file) {
  const engine::Result<std::string> text = read_text_file(file);
  if (!text) return text.mistakes();
  return read_yaml(*text, file.string());
}

}  // namespace sweep
