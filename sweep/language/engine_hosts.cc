#include "sweep/language/engine_hosts.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/deployment_role.h"
#include "sweep/language/named_host.h"

namespace sweep {
namespace {

// Which settings say what a deployment's engine is: its own, or the main one's as well, where it has no other.
enum class Serving : std::uint8_t { own, main_too };

// Writes the hosts of one deployment.
class HostWriter {
 public:
  HostWriter(std::string_view role, const EngineKind& kind, Serving serving, const Library& library,
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

  // Whether there is an axis among these now that gives every point a whole host.
  bool axes(Node& node, const Entries& fields) const {
    bool whole_ones = false;
    for (Node& item : node.items) whole_ones = axis(item, fields) || whole_ones;
    return whole_ones;
  }

  // One entry of a list of axes, perhaps with a condition.
  bool axis(Node& item, const Entries& fields) const {
    const auto said = std::ranges::find_if(
        item.entries, [](const NodeEntry& entry) { return entry.key.text != "when"; });
    if (said == item.entries.end()) return false;
    Node& value = said->value;
    const std::string& key = said->key.text;
    bool whole_ones = false;
    if (key == "concat") {
      for (Node& branch : value.items) sweep(branch, fields);
    } else if (key == "product") {
      whole_ones = axes(value, fields);
    } else if (key == "zip") {
      whole_ones = members(value, fields);
    } else if (key == "sample") {
      whole_ones = drawn(value, fields);
    } else if (is_settings(key)) {
      return beside_their_hosts(item, *said, fields);
    } else if (!role_.empty() && key == role_) {
      for (Node& deployment : listed(value).items) of_deployment(deployment, fields);
    }
    const bool always = item.find("when") == nullptr && value.find("when") == nullptr;
    return whole_ones && always;
  }

  // Those on an axis move together with their hosts. A condition of the axis is one of both.
  bool beside_their_hosts(Node& item, const NodeEntry& said, const Entries& fields) const {
    const NodeEntry settings = said;
    auto hosts = hosts_of(settings.value, fields);
    const Node* own = settings.value.find("when");
    const bool two = own != nullptr && item.find("when") != nullptr;
    if (!hosts || two) return false;
    const bool whole_ones = all_whole(*hosts);
    Node both = map_of({{settings.key, listed(settings.value)}}, item.where);
    both.entries.push_back({scalar(path("host"), item.where), *std::move(hosts)});
    Entries entries{{scalar("zip", item.where), std::move(both)}};
    for (const NodeEntry& entry : item.entries) {
      if (entry.key.text != settings.key.text) entries.push_back(entry);
    }
    if (own != nullptr) entries.push_back({scalar("when", own->where), *own});
    const bool always = entries.size() == 1;
    item.entries = std::move(entries);
    return whole_ones && always;
  }

  // Of a sample: a host is drawn whenever its engine is.
  bool drawn(Node& sample, const Entries& fields) const {
    bool whole_ones = false;
    for (NodeEntry& option : sample.entries) {
      if (option.key.text != "of") continue;
      for (const NodeEntry& dimension : Entries(option.value.entries)) {
        auto hosts =
            is_settings(dimension.key.text) ? hosts_of(dimension.value, fields) : std::nullopt;
        if (!hosts) continue;
        whole_ones = whole_ones || all_whole(*hosts);
        Node key = scalar(path("host"), dimension.key.where);
        key.drawn_with = dimension.key.text;
        option.value.entries.push_back({std::move(key), *std::move(hosts)});
      }
    }
    return whole_ones;
  }

  // The values of an axis, which may stand beside a condition.
  static const Node& listed(const Node& axis) {
    const Node* values = axis.find("values");
    return values == nullptr ? axis : *values;
  }
  static Node& listed(Node& axis) {
    for (NodeEntry& entry : axis.entries) {
      if (entry.key.text == "values") return entry.value;
    }
    return axis;
  }

  static bool all_whole(const Node& hosts) { return std::ranges::all_of(hosts.items, whole); }

  // Of a zip, which is a map of paths or a list of such maps.
  bool members(Node& zip, const Entries& fields) const {
    const Node* found = nullptr;
    const auto look = [&](const Node& paths) {
      for (const auto& [key, values] : paths.entries) {
        if (is_settings(key.text)) found = &values;
      }
    };
    look(zip);
    bool whole_ones = false;
    for (Node& item : zip.items) {
      look(item);
      if (item.find("product") != nullptr) whole_ones = axis(item, fields) || whole_ones;
    }
    auto hosts = found == nullptr ? std::nullopt : hosts_of(*found, fields);
    if (!hosts) return whole_ones;
    whole_ones = whole_ones || all_whole(*hosts);
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
  // have round figures. A value that holds only at times takes its host with it.
  std::optional<Node> hosts_of(const Node& axis, const Entries& fields) const {
    Node hosts = listed(axis);
    if (!hosts.is_sequence()) return std::nullopt;
    bool any = false;
    for (Node& item : hosts.items) {
      const auto host = host_of(item, kind_, library_, limits_);
      any = any || host;
      item = host || whole(item) ? host_node(host, fields, item.where) : map_of({}, item.where);
    }
    return any ? std::optional(std::move(hosts)) : std::nullopt;
  }

  std::string role_;
  const EngineKind& kind_;
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
    const EngineKind& kind = said.trains ? kTraining : kEngines;
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
