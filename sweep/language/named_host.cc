#include "sweep/language/named_host.h"

#include <algorithm>
#include <utility>

#include "sweep/language/load_spec.h"
#include "sweep/language/yaml_file.h"

namespace sweep {
namespace {

// What these settings are, or are made from; null: they are somebody's own.
const Node* name_in(const Node& settings) {
  if (const Node* labelled = settings.find("value")) return name_in(*labelled);
  const Node* name = settings.is_scalar() ? &settings : settings.find("from");
  return name != nullptr && name->is_scalar() ? name : nullptr;
}

}  // namespace

bool whole(const Node& settings) {
  if (const Node* labelled = settings.find("value")) return whole(*labelled);
  return !settings.is_map() || settings.find("from") != nullptr;
}

std::optional<std::string> host_of(const Node& settings, const EngineKind& kind,
                                   const Library& library, const InputLimits& limits) {
  const Node* named = name_in(settings);
  Node own;
  for (std::int64_t made_from = 0; named != nullptr && made_from < limits.file_depth; ++made_from) {
    if (library.find("hosts", named->text)) return named->text;
    const auto file = named->text.ends_with(".yaml")
                          ? std::optional(relative_to(named->where, named->text))
                          : library.find(kind.library, named->text);
    if (!file) return std::nullopt;
    // One that cannot be read is a mistake where it is named.
    auto read = read_yaml_file(*file, limits);
    if (!read) return std::nullopt;
    own = std::move(read).value();
    named = name_in(own);
  }
  return std::nullopt;
}

Node scalar(std::string text, const engine::Location& where) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::move(text);
  node.where = where;
  return node;
}

Node map_of(Entries entries, const engine::Location& where) {
  Node node;
  node.kind = Node::Kind::map;
  node.where = where;
  node.entries = std::move(entries);
  return node;
}

void add_fields(Entries& fields, const Entries& more) {
  std::erase_if(fields, [&](const NodeEntry& said) {
    return std::ranges::any_of(
        more, [&](const NodeEntry& entry) { return entry.key.text == said.key.text; });
  });
  fields.insert(fields.end(), more.begin(), more.end());
}

Node host_node(const std::optional<std::string>& name, const Entries& fields,
               const engine::Location& where) {
  if (name && fields.empty()) return scalar(*name, where);
  Entries entries{{scalar("from", where), name ? scalar(*name, where) : map_of({}, where)}};
  add_fields(entries, fields);
  return map_of(std::move(entries), where);
}

}  // namespace sweep
