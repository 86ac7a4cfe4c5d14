#include "sweep/language/engine_hosts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "sweep/language/load_spec.h"
#include "sweep/language/yaml_file.h"

namespace sweep {
namespace {

constexpr std::string_view kHostField = "host.";
// What a sweep is made of, besides settings.
constexpr std::string_view kStructure[] = {"base", "axes", "zip", "concat", "sample", "of"};

// Single fields of a host, which hold beside whatever else it has.
bool names_fields_only(const Node& host) {
  return host.is_map() && host.find("from") == nullptr && host.find("value") == nullptr;
}

// What documents say that decides about hosts.
struct Said {
  bool hosts = false;  // a whole one
  bool trains = false;
  bool serves = false;  // or anything else than training

  void task(const Node& task) {
    for (const Node& item : task.items) this->task(item);
    if (!task.is_scalar()) return;
    trains = trains || task.text == "train" || task.text == "rl";
    serves = serves || task.text != "train";
  }
  // Sections are not looked into: a host that one of them has (`serving.tiers.host`, another deployment's) is something else.
  void read(const Node& node) {
    for (const NodeEntry& entry : node.entries) {
      const std::string& key = entry.key.text;
      hosts = hosts || (key == "host" && !names_fields_only(entry.value));
      if (key == "task") task(entry.value);
      if (std::ranges::find(kStructure, key) != std::end(kStructure)) read(entry.value);
    }
    for (const Node& item : node.items) read(item);
  }
};

// Where engines, or training libraries, are named, and the library that has them.
struct Kind {
  std::string_view section, library;
};

// What these settings are, or are made from; null: they are somebody's own. On an axis they may have a label, but those that hold
// only at times cannot move with a host.
const Node* name_in(const Node& settings) {
  if (const Node* labelled = settings.find("value")) {
    return settings.find("when") == nullptr ? name_in(*labelled) : nullptr;
  }
  const Node* name = settings.is_scalar() ? &settings : settings.find("from");
  return name != nullptr && name->is_scalar() ? name : nullptr;
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

class HostWriter {
 public:
  HostWriter(const Kind& kind, const Library& library, const InputLimits& limits)
      : kind_(kind), library_(library), limits_(limits) {}

  // `stated`: fields of hosts that hold in all of it.
  void sweep(Node& node, std::vector<NodeEntry> stated = {}) const {
    for (NodeEntry& entry : node.entries) {
      if (entry.key.text == "base") base(entry.value, stated);
    }
    for (NodeEntry& entry : node.entries) {
      if (entry.key.text == "axes") axes(entry.value, stated);
    }
  }

 private:
  // The engine's host, with the fields that are stated so far; those of this base hold before those around it.
  void base(Node& node, std::vector<NodeEntry>& stated) const {
    std::vector<NodeEntry> own;
    for (const NodeEntry& entry : node.entries) {
      const std::string& key = entry.key.text;
      if (key == "host") {
        own.insert(own.end(), entry.value.entries.begin(), entry.value.entries.end());
      } else if (key.starts_with(kHostField)) {
        own.push_back({scalar(key.substr(kHostField.size()), entry.key.where), entry.value});
      }
    }
    for (const NodeEntry& field : own) {
      std::erase_if(stated, [&](const NodeEntry& one) { return one.key.text == field.key.text; });
    }
    stated.insert(stated.end(), own.begin(), own.end());
    const Node* settings = node.find(kind_.section);
    if (settings == nullptr) return;
    const engine::Location where = settings->where;
    auto name = host_of(*settings, kind_, library_, limits_);
    if (!name) return;
    Node host = scalar(*std::move(name), where);
    if (!stated.empty()) {
      Node fields;
      fields.kind = Node::Kind::map;
      fields.where = where;
      fields.entries = {{scalar("from", where), std::move(host)}};
      fields.entries.insert(fields.entries.end(), stated.begin(), stated.end());
      host = std::move(fields);
    }
    std::erase_if(node.entries, [](const NodeEntry& entry) {
      return entry.key.text == "host" || entry.key.text.starts_with(kHostField);
    });
    node.entries.push_back({scalar("host", where), std::move(host)});
  }

  void axes(Node& node, const std::vector<NodeEntry>& stated) const {
    for (Node& item : node.items) {
      if (item.entries.size() != 1) continue;
      auto& [key, value] = item.entries[0];
      if (key.text == "concat") {
        for (Node& branch : value.items) sweep(branch, stated);
      } else if (key.text == "zip") {
        members(value);
      } else if (key.text == kind_.section) {
        // Those on an axis move together with their hosts.
        if (auto hosts = hosts_of(value)) {
          Node both = item;
          both.entries.push_back({scalar("host", item.where), *std::move(hosts)});
          item.entries = {{scalar("zip", item.where), std::move(both)}};
        }
      }
    }
  }

  // Of a zip, which is a map of paths or a list of such maps.
  void members(Node& zip) const {
    const Node* listed = zip.find(kind_.section);
    for (const Node& item : zip.items) {
      if (const Node* member = item.find(kind_.section)) listed = member;
    }
    auto hosts = listed == nullptr ? std::nullopt : hosts_of(*listed);
    if (!hosts) return;
    Node member;
    member.kind = Node::Kind::map;
    member.where = zip.where;
    member.entries = {{scalar("host", zip.where), *std::move(hosts)}};
    if (zip.is_map()) {
      zip.entries.push_back(std::move(member.entries[0]));
    } else {
      zip.items.push_back(std::move(member));
    }
  }

  // Of all that an axis lists, where all have one.
  std::optional<Node> hosts_of(const Node& listed) const {
    if (!listed.is_sequence() || listed.items.empty()) return std::nullopt;
    Node hosts = listed;
    for (Node& item : hosts.items) {
      const auto host = host_of(item, kind_, library_, limits_);
      if (!host) return std::nullopt;
      item = scalar(*host, item.where);
    }
    return hosts;
  }

  const Kind& kind_;
  const Library& library_;
  const InputLimits& limits_;
};

}  // namespace

void add_hosts(std::vector<std::unique_ptr<const Node>>& documents, const Library& library,
               const InputLimits& limits) {
  Said said;
  for (const auto& document : documents) said.read(*document);
  if (said.hosts || (said.trains && said.serves)) return;
  const Kind kind = said.trains ? Kind{"train", "training"} : Kind{"serving", "serving"};
  for (auto& document : documents) {
    Node with = *document;
    HostWriter(kind, library, limits).sweep(with);
    document = std::make_unique<const Node>(std::move(with));
  }
}

}  // namespace sweep
