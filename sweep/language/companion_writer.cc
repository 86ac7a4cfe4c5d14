#include "sweep/language/companion_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sweep/language/read_fields.h"

namespace sweep {

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

const Node* name_in(const Node& settings) {
  if (const Node* labelled = settings.find("value")) return name_in(*labelled);
  const Node* name = settings.is_scalar() ? &settings : settings.find("from");
  return name != nullptr && name->is_scalar() ? name : nullptr;
}

bool whole(const Node& settings) {
  if (const Node* labelled = settings.find("value")) return whole(*labelled);
  return !settings.is_map() || settings.find("from") != nullptr ||
         settings.find("hf_config") != nullptr;
}

Entries take_fields(Node& base, std::string_view path) {
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

Entries fields_of(const Node& sweep, std::string_view path) {
  Entries fields;
  for (NodeEntry entry : sweep.entries) {
    if (entry.key.text == "base") add_fields(fields, take_fields(entry.value, path));
  }
  return fields;
}

namespace {

// What a base says under this path, in a map of its section, with a dot, or in other words.
const Node* find(const Node& base, std::string_view path) {
  for (const auto& [key, value] : base.entries) {
    if (meant_by(key.text) == path) return &value;
    for (const NodeEntry& inner : value.entries) {
      if (meant_by(key.text + "." + inner.key.text) == path) return &inner.value;
    }
  }
  return nullptr;
}

// The values of an axis, which may stand beside a condition.
const Node& axis_values(const Node& axis) {
  const Node* values = axis.find("values");
  return values == nullptr ? axis : *values;
}
Node& axis_values(Node& axis) {
  for (NodeEntry& entry : axis.entries) {
    if (entry.key.text == "values") return entry.value;
  }
  return axis;
}

// The same values, for points of which the sweep itself says nothing else.
Node yielding_values(Node values) {
  const engine::Location where = values.where;
  return map_of({{scalar("values", where), std::move(values)},
                 {scalar("yields", where), scalar("true", where)}},
                where);
}

void add_axes(Node& sweep, Entries more) {
  if (more.empty()) return;
  const auto named = [](const NodeEntry& entry) { return entry.key.text == "axes"; };
  auto axes = std::ranges::find_if(sweep.entries, named);
  if (axes == sweep.entries.end()) {
    Node list = map_of({}, sweep.where);
    list.kind = Node::Kind::sequence;
    sweep.entries.push_back({scalar("axes", sweep.where), std::move(list)});
    axes = sweep.entries.end() - 1;
  }
  axes->value.kind = Node::Kind::sequence;
  for (NodeEntry& entry : more) {
    const engine::Location where = entry.key.where;
    axes->value.items.push_back(map_of({std::move(entry)}, where));
  }
}

bool all_whole(const Entries& companions) {
  return !companions.empty() && std::ranges::all_of(companions, [](const NodeEntry& companion) {
    return std::ranges::all_of(axis_values(companion.value).items, whole);
  });
}

}  // namespace

void CompanionWriter::sweep(Node& node, Around around) const {
  Entries yielding;
  for (NodeEntry& entry : node.entries) {
    if (entry.key.text != "base") continue;
    for (NodeEntry& companion : base(entry.value, around)) yielding.push_back(std::move(companion));
  }
  bool whole_ones = false;
  for (NodeEntry& entry : node.entries) {
    if (entry.key.text == "axes") whole_ones = axes(entry.value, around) || whole_ones;
  }
  // Whole companions on an axis have what the base states of them already, and leave nothing of it.
  for (NodeEntry& entry : node.entries) {
    if (!whole_ones || entry.key.text != "base") continue;
    companion_.around({}, {}, entry.value, [this](std::string_view name) { return path(name); });
  }
  add_axes(node, std::move(yielding));
}

void CompanionWriter::batch(std::vector<BatchField>& fields, const Around& around) const {
  const std::size_t said = fields.size();
  for (std::size_t i = 0; i < said; ++i) {
    auto& [key, values] = fields[i].path_and_values;
    if (key.text == role_) {
      for (Node& deployment : values.items) of_deployment(deployment, around);
    }
    auto companions = is_settings(key.text) ? companions_of(values, around) : std::nullopt;
    if (!companions) continue;
    for (NodeEntry& companion : *companions) {
      fields.push_back({std::move(companion), std::vector(fields[i].order)});
    }
  }
}

Entries CompanionWriter::around_in(const Node& sweep, Entries said) const {
  Around around{std::move(said), {}};
  for (NodeEntry entry : sweep.entries) {
    if (entry.key.text == "base") base(entry.value, around);
  }
  return std::move(around.said);
}

std::string CompanionWriter::path(std::string_view section) const {
  return role_.empty() ? std::string(section) : role_ + "." + std::string(section);
}

NodeEntry CompanionWriter::of_role(NodeEntry companion) const {
  companion.key.text = path(companion.key.text);
  return companion;
}

bool CompanionWriter::is_settings(std::string_view key) const {
  return meant_by(key) == path(companion_.named()) ||
         (named_ == NamedBy::main_too && key == companion_.named());
}

const Node* CompanionWriter::settings_in(const Node& base) const {
  const Node* settings = find(base, path(companion_.named()));
  if (settings == nullptr || !whole(*settings)) {
    const Node* of_main = base.find(companion_.named());
    if (named_ == NamedBy::main_too && of_main != nullptr) settings = of_main;
  }
  return settings;
}

// What the base of a sub-sweep says counts before its axes, so companions that yield to some of these are axes themselves. Such are
// returned. The base of a whole sweep yields to everything.
Entries CompanionWriter::base(Node& node, Around& around) const {
  const Node* settings = settings_in(node);
  const auto found = settings == nullptr ? std::nullopt : companion_.of(*settings);
  Node with = node;
  around.said = companion_.around(found, around.said, with,
                                  [this](std::string_view name) { return path(name); });
  Entries yielding;
  if (!found) return yielding;
  for (NodeEntry& companion : companion_.written(found, *settings, around)) {
    const bool yields = !around.trail.empty() && companion_.yields(companion.key.text, around);
    NodeEntry entry = of_role(std::move(companion));
    if (!yields) {
      with.entries.push_back(std::move(entry));
      continue;
    }
    Node only = map_of({}, entry.value.where);
    only.kind = Node::Kind::sequence;
    only.items = {std::move(entry.value)};
    yielding.push_back({std::move(entry.key), yielding_values(std::move(only))});
  }
  node = std::move(with);
  return yielding;
}

// Whether there is an axis among these now that gives every point a whole companion.
bool CompanionWriter::axes(Node& node, const Around& around) const {
  bool whole_ones = false;
  for (Node& item : node.items) whole_ones = axis(item, around) || whole_ones;
  return whole_ones;
}

// One entry of a list of axes, perhaps with a condition.
bool CompanionWriter::axis(Node& item, const Around& around) const {
  const auto said = std::ranges::find_if(
      item.entries, [](const NodeEntry& entry) { return entry.key.text != "when"; });
  if (said == item.entries.end()) return false;
  Node& value = said->value;
  const std::string& key = said->key.text;
  bool whole_ones = false;
  if (key == "concat") {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      Around inside = around;
      inside.trail.push_back({value.where, i});
      sweep(value.items[i], std::move(inside));
    }
  } else if (key == "product") {
    whole_ones = axes(value, around);
  } else if (key == "zip") {
    whole_ones = members(value, around);
  } else if (key == "sample") {
    whole_ones = drawn(value, around);
  } else if (is_settings(key)) {
    return beside_them(item, *said, around);
  } else if (!role_.empty() && key == role_) {
    for (Node& deployment : axis_values(value).items) of_deployment(deployment, around);
  }
  const bool always = item.find("when") == nullptr && value.find("when") == nullptr;
  return whole_ones && always;
}

// Values on an axis move together with their companions. A condition of the axis holds for both.
bool CompanionWriter::beside_them(Node& item, const NodeEntry& said, const Around& around) const {
  const NodeEntry settings = said;
  auto companions = companions_of(settings.value, around);
  const Node* own = settings.value.find("when");
  const bool two = own != nullptr && item.find("when") != nullptr;
  if (!companions || two) return false;
  const bool whole_ones = all_whole(*companions);
  Node both = map_of({{settings.key, axis_values(settings.value)}}, item.where);
  std::ranges::move(*companions, std::back_inserter(both.entries));
  Entries entries{{scalar("zip", item.where), std::move(both)}};
  for (const NodeEntry& entry : item.entries) {
    if (entry.key.text != settings.key.text) entries.push_back(entry);
  }
  if (own != nullptr) entries.push_back({scalar("when", own->where), *own});
  const bool always = entries.size() == 1;
  item.entries = std::move(entries);
  return whole_ones && always;
}

// For a sample: a companion is drawn whenever the value is that it goes with.
bool CompanionWriter::drawn(Node& sample, const Around& around) const {
  bool whole_ones = false;
  for (NodeEntry& option : sample.entries) {
    if (option.key.text != "of") continue;
    for (const NodeEntry& dimension : Entries(option.value.entries)) {
      auto companions =
          is_settings(dimension.key.text) ? companions_of(dimension.value, around) : std::nullopt;
      if (!companions) continue;
      whole_ones = whole_ones || all_whole(*companions);
      for (NodeEntry& companion : *companions) {
        const engine::Location& where = dimension.key.where;
        Node follows = std::move(companion.value);
        if (!follows.is_map()) follows = map_of({{scalar("values", where), follows}}, where);
        follows.entries.push_back({scalar("with", where), scalar(dimension.key.text, where)});
        option.value.entries.push_back({std::move(companion.key), std::move(follows)});
      }
    }
  }
  return whole_ones;
}

// For a zip, which is a map of paths or a list of such maps.
bool CompanionWriter::members(Node& zip, const Around& around) const {
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
    if (item.find("product") != nullptr) whole_ones = axis(item, around) || whole_ones;
  }
  auto companions = found == nullptr ? std::nullopt : companions_of(*found, around);
  if (!companions) return whole_ones;
  whole_ones = whole_ones || all_whole(*companions);
  for (NodeEntry& companion : *companions) {
    if (zip.is_map()) {
      zip.entries.push_back(std::move(companion));
    } else {
      zip.items.push_back(map_of({std::move(companion)}, zip.where));
    }
  }
  return whole_ones;
}

// For a deployment on an axis. Its label stays as it was written.
void CompanionWriter::of_deployment(Node& item, const Around& outer) const {
  Node written = item;
  if (const Node* labelled = item.find("value")) written = *labelled;
  const Node* said = written.find(companion_.named());
  const auto found = said == nullptr ? std::nullopt : companion_.of(*said);
  if (!found) return;
  const Node settings = *said;
  const std::string label = flow_text(item);
  const auto own_path = [](std::string_view name) { return std::string(name); };
  const Around around{companion_.around(found, outer.said, written, own_path), outer.trail};
  for (NodeEntry& companion : companion_.written(found, settings, around)) {
    if (find(written, companion.key.text) != nullptr) continue;
    written.entries.push_back(std::move(companion));
  }
  if (item.find("value") == nullptr) {
    item = map_of({{scalar("label", item.where), scalar(label, item.where)}}, item.where);
  }
  std::erase_if(item.entries, [](const NodeEntry& entry) { return entry.key.text == "value"; });
  item.entries.push_back({scalar("value", item.where), std::move(written)});
}

// Companions of all values of an axis, where any has one. A value that holds only at times takes its companion with it.
std::optional<Entries> CompanionWriter::companions_of(const Node& axis,
                                                      const Around& around) const {
  const Node& values = axis_values(axis);
  if (!values.is_sequence()) return std::nullopt;
  bool any = false;
  Entries companions;
  for (const Node& item : values.items) {
    const auto found = companion_.of(item);
    any = any || found;
    const Entries written = companion_.written(found, item, around);
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (i == companions.size()) {
        Node list = map_of({}, values.where);
        list.kind = Node::Kind::sequence;
        companions.push_back(of_role({scalar(written[i].key.text, values.where), list}));
      }
      companions[i].value.items.push_back(written[i].value);
    }
  }
  if (!any) return std::nullopt;
  for (NodeEntry& companion : companions) {
    const std::string of_own = companion.key.text.substr(role_.empty() ? 0 : role_.size() + 1);
    if (companion_.yields(of_own, around)) {
      companion.value = yielding_values(std::move(companion.value));
    }
  }
  return companions;
}

}  // namespace sweep
