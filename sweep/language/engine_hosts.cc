#include "sweep/language/engine_hosts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/deployment_role.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/yaml_file.h"

namespace sweep {
namespace {

using Entries = std::vector<NodeEntry>;

// Where engines, or training libraries, are named, and the library that has them.
struct Kind {
  std::string_view section, library;
};
constexpr Kind kEngines{"serving", "serving"};
constexpr Kind kTraining{"train", "training"};

// What these settings are, or are made from; null: they are somebody's own.
const Node* name_in(const Node& settings) {
  if (const Node* labelled = settings.find("value")) return name_in(*labelled);
  const Node* name = settings.is_scalar() ? &settings : settings.find("from");
  return name != nullptr && name->is_scalar() ? name : nullptr;
}

// Whether these settings are whole, not only some that differ from the base's.
bool whole(const Node& settings) {
  if (const Node* labelled = settings.find("value")) return whole(*labelled);
  return !settings.is_map() || settings.find("from") != nullptr;
}

std::optional<std::string> host_of(const Node& settings, const Kind& kind, const Library& library,
                                   const InputLimits& limits) {
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

// Puts what is said further in on top of what is said around it. A field that one place says twice stays there twice, which is a
// mistake to tell.
void add_fields(Entries& fields, const Entries& more) {
  std::erase_if(fields, [&](const NodeEntry& said) {
    return std::ranges::any_of(
        more, [&](const NodeEntry& entry) { return entry.key.text == said.key.text; });
  });
  fields.insert(fields.end(), more.begin(), more.end());
}

// The host of this name, or one of round figures, with these fields of its own.
Node host_node(const std::optional<std::string>& name, const Entries& fields,
               const engine::Location& where) {
  if (name && fields.empty()) return scalar(*name, where);
  Entries entries{{scalar("from", where), name ? scalar(*name, where) : map_of({}, where)}};
  add_fields(entries, fields);
  return map_of(std::move(entries), where);
}

// Which settings say what a deployment's engine is: its own, or the main one's as well, where it has no other.
enum class Serving : std::uint8_t { own, main_too };

// Writes the hosts of one deployment.
class HostWriter {
 public:
  HostWriter(std::string_view role, const Kind& kind, Serving serving, const Library& library,
             const InputLimits& limits)
      : role_(role), kind_(kind), serving_(serving), library_(library), limits_(limits) {}

  // `fields` are those of a host that what is around this sweep states.
  void sweep(Node& node, Entries fields) const {
    for (NodeEntry& entry : node.entries) {
      if (entry.key.text == "base") base(entry.value, fields);
    }
    bool whole_ones = false;
    for (NodeEntry& entry : node.entries) {
      if (entry.key.text == "axes") whole_ones = axes(entry.value, fields) || whole_ones;
    }
    // Whole hosts on an axis have these fields already, and leave nothing of the base's.
    for (NodeEntry& entry : node.entries) {
      if (whole_ones && entry.key.text == "base") take_fields(entry.value);
    }
  }

  void batch(std::vector<BatchField>& fields, const Entries& stated) const {
    const std::size_t said = fields.size();
    for (std::size_t i = 0; i < said; ++i) {
      auto& [key, values] = fields[i].path_and_values;
      if (key.text == role_) {
        for (Node& deployment : values.items) of_deployment(deployment, stated);
      }
      auto hosts = is_settings(key.text) ? hosts_of(values, stated) : std::nullopt;
      if (!hosts) continue;
      fields.push_back(
          {{scalar(path("host"), key.where), *std::move(hosts)}, std::vector(fields[i].order)});
    }
  }

  // What the base of this sweep says of single fields of the main deployment's host.
  static Entries fields_of(const Node& sweep) {
    Entries fields;
    for (NodeEntry entry : sweep.entries) {
      if (entry.key.text == "base") add_fields(fields, take_fields(entry.value, "host"));
    }
    return fields;
  }

 private:
  std::string path(std::string_view section) const {
    return role_.empty() ? std::string(section) : role_ + "." + std::string(section);
  }

  // What a base says under this path, in a map of its section or with a dot.
  static const Node* find(const Node& base, std::string_view path) {
    if (const Node* said = base.find(path)) return said;
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return nullptr;
    const Node* section = base.find(path.substr(0, dot));
    return section == nullptr ? nullptr : section->find(path.substr(dot + 1));
  }

  // Takes what a base says of fields under this path out of it.
  static Entries take_fields(Node& base, std::string_view path) {
    Entries fields, rest;
    const auto take = [&](const Entries& more) {
      fields.insert(fields.end(), more.begin(), more.end());
    };
    for (NodeEntry& entry : base.entries) {
      const std::string key = entry.key.text;
      if (key == path && entry.value.is_map()) {
        take(entry.value.entries);
      } else if (key.starts_with(path) && key.substr(path.size()).starts_with('.')) {
        entry.key.text = key.substr(path.size() + 1);
        take({entry});
      } else {
        if (path.starts_with(key) && path.substr(key.size()).starts_with('.')) {
          take(take_fields(entry.value, path.substr(key.size() + 1)));
        }
        rest.push_back(std::move(entry));
      }
    }
    base.entries = std::move(rest);
    return fields;
  }
  Entries take_fields(Node& base) const { return take_fields(base, path("host")); }

  bool is_settings(std::string_view key) const {
    return key == path(kind_.section) || (serving_ == Serving::main_too && key == kind_.section);
  }

  void base(Node& node, Entries& fields) const {
    Node without = node;
    add_fields(fields, take_fields(without));
    const Node* settings = find(node, path(kind_.section));
    if (settings == nullptr || !whole(*settings)) {
      const Node* of_main = node.find(kind_.section);
      if (serving_ == Serving::main_too && of_main != nullptr) settings = of_main;
    }
    const auto host =
        settings == nullptr ? std::nullopt : host_of(*settings, kind_, library_, limits_);
    if (!host) return;
    const engine::Location where = settings->where;
    without.entries.push_back({scalar(path("host"), where), host_node(host, fields, where)});
    node = std::move(without);
  }

  // Whether there is an axis of whole hosts among these now.
  bool axes(Node& node, const Entries& fields) const {
    bool whole_ones = false;
    for (Node& item : node.items) {
      if (item.entries.size() != 1) continue;
      auto& [key, value] = item.entries[0];
      if (key.text == "concat") {
        for (Node& branch : value.items) sweep(branch, fields);
      } else if (key.text == "zip") {
        whole_ones = members(value, fields) || whole_ones;
      } else if (is_settings(key.text)) {
        // Those on an axis move together with their hosts.
        if (auto hosts = hosts_of(value, fields)) {
          whole_ones = whole_ones || all_whole(*hosts);
          Node both = item;
          both.entries.push_back({scalar(path("host"), item.where), *std::move(hosts)});
          item.entries = {{scalar("zip", item.where), std::move(both)}};
        }
      } else if (!role_.empty() && key.text == role_) {
        for (Node& deployment : value.items) of_deployment(deployment, fields);
      }
    }
    return whole_ones;
  }

  static bool all_whole(const Node& hosts) { return std::ranges::all_of(hosts.items, whole); }

  // Of a zip, which is a map of paths or a list of such maps.
  bool members(Node& zip, const Entries& fields) const {
    const Node* listed = nullptr;
    const auto look = [&](const Node& paths) {
      for (const auto& [key, values] : paths.entries) {
        if (is_settings(key.text)) listed = &values;
      }
    };
    look(zip);
    for (const Node& item : zip.items) look(item);
    auto hosts = listed == nullptr ? std::nullopt : hosts_of(*listed, fields);
    if (!hosts) return false;
    const bool whole_ones = all_whole(*hosts);
    NodeEntry member{scalar(path("host"), zip.where), *std::move(hosts)};
    if (zip.is_map()) {
      zip.entries.push_back(std::move(member));
    } else {
      zip.items.push_back(map_of({std::move(member)}, zip.where));
    }
    return whole_ones;
  }

  // Of a deployment on an axis. Its label stays what was written.
  void of_deployment(Node& item, const Entries& fields) const {
    Node written = item;
    if (const Node* labelled = item.find("value")) written = *labelled;
    const Node* settings = written.find(kind_.section);
    const auto host =
        settings == nullptr ? std::nullopt : host_of(*settings, kind_, library_, limits_);
    if (!host) return;
    const std::string label = flow_text(item);
    const engine::Location where = written.where;
    Entries own = fields;
    add_fields(own, take_fields(written, "host"));
    written.entries.push_back({scalar("host", where), host_node(host, own, where)});
    if (item.find("value") == nullptr) {
      item = map_of({{scalar("label", item.where), scalar(label, item.where)}}, item.where);
    }
    std::erase_if(item.entries, [](const NodeEntry& entry) { return entry.key.text == "value"; });
    item.entries.push_back({scalar("value", item.where), std::move(written)});
  }

  // Of all that an axis lists, where any has one: settings that differ from the base's leave its host, and whole ones without a host
  // have round figures. Those that hold only at times cannot move with a host.
  std::optional<Node> hosts_of(const Node& listed, const Entries& fields) const {
    if (!listed.is_sequence()) return std::nullopt;
    Node hosts = listed;
    bool any = false;
    for (Node& item : hosts.items) {
      if (item.find("when") != nullptr) return std::nullopt;
      const auto host = host_of(item, kind_, library_, limits_);
      any = any || host;
      item = host || whole(item) ? host_node(host, fields, item.where) : map_of({}, item.where);
    }
    return any ? std::optional(std::move(hosts)) : std::nullopt;
  }

  std::string role_;
  const Kind& kind_;
  Serving serving_;
  const Library& library_;
  const InputLimits& limits_;
};

// A document that gives a deployment the host of round figures, for others to be put on top of.
std::unique_ptr<const Node> round_host(std::string_view role, const engine::Location& where) {
  Node base =
      map_of({{scalar(std::string(role) + ".host", where), host_node({}, {}, where)}}, where);
  return std::make_unique<const Node>(map_of({{scalar("base", where), std::move(base)}}, where));
}

// Whether samples would be written by a host of training, unless another one is put below what is said.
bool needs_round_host(const SaidOfHosts& said) {
  return said.trains && !said.serves && said.samples && !said.named.contains("rollout");
}

// Hands `write` a writer for each deployment whose host is not named, and the fields that its host has beside its own.
template <class Write>
void each_writer(const SaidOfHosts& said, const Library& library, const InputLimits& limits,
                 Write&& write) {
  if (said.trains && said.serves) return;
  const bool main_is_named = said.named.contains("");
  if (!main_is_named) {
    const Kind& kind = said.trains ? kTraining : kEngines;
    write(HostWriter("", kind, Serving::own, library, limits), said.fields);
  }
  for (const std::string_view role : enum_names(engine::DeploymentRole{})) {
    if (role == "main" || said.named.contains(role)) continue;
    if (role == "rollout" && needs_round_host(said)) {
      write(HostWriter(role, kEngines, Serving::main_too, library, limits), Entries{});
    } else if (!main_is_named) {
      write(HostWriter(role, kEngines, Serving::own, library, limits), said.fields);
    }
  }
}

}  // namespace

SaidOfHosts add_hosts(std::vector<std::unique_ptr<const Node>>& documents, const Library& library,
                      const InputLimits& limits) {
  SaidOfHosts said;
  for (const auto& document : documents) {
    read_said(*document, said);
    add_fields(said.fields, HostWriter::fields_of(*document));
  }
  each_writer(said, library, limits, [&](const HostWriter& writer, const Entries& stated) {
    for (auto& document : documents) {
      Node with = *document;
      writer.sweep(with, stated);
      document = std::make_unique<const Node>(std::move(with));
    }
  });
  if (needs_round_host(said)) {
    documents.insert(documents.begin(), round_host("rollout", documents.front()->where));
  }
  return said;
}

void add_hosts(std::vector<BatchField>& fields, SaidOfHosts said, const Library& library,
               const InputLimits& limits) {
  const bool base_has_round_host = needs_round_host(said);
  for (const BatchField& field : fields) read_said(field.path_and_values, said);
  each_writer(said, library, limits, [&](const HostWriter& writer, const Entries& stated) {
    writer.batch(fields, stated);
  });
  const bool written = std::ranges::any_of(fields, [](const BatchField& field) {
    return field.path_and_values.key.text == "rollout.host";
  });
  if (!needs_round_host(said) || base_has_round_host || written) return;
  const engine::Location where = fields[0].path_and_values.key.where;
  Node hosts = map_of({}, where);
  hosts.kind = Node::Kind::sequence;
  hosts.items = {host_node({}, {}, where)};
  fields.push_back({{scalar("rollout.host", where), std::move(hosts)},
                    std::vector<std::uint32_t>(fields[0].order.size(), 0)});
}

}  // namespace sweep
