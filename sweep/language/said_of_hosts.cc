#include "sweep/language/said_of_hosts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "sweep/language/companion_writer.h"
#include "sweep/space/roles.h"

namespace sweep {
namespace {

// A plain map alters fields of a host; anything else says which hosts there are.
bool names_hosts(const Node& said) {
  return !said.is_map() || said.find("from") != nullptr || said.find("values") != nullptr;
}

void read_task(const Node& task, SaidOfHosts& said) {
  for (const Node& item : task.items) read_task(item, said);
  if (!task.is_scalar()) return;
  said.trains = said.trains || task.text == "train" || task.text == "rl";
  said.serves = said.serves || task.text != "train";
}

// Settings of the main deployment that name an engine or a training library, in a base or among the values of an axis.
void read_named(const Node& said, std::vector<Node>& named) {
  if (const Node* values = said.find("values")) return read_named(*values, named);
  for (const Node& item : said.items) read_named(item, named);
  if (name_in(said) != nullptr) named.push_back(said);
}

// What a sweep is made of, besides settings.
constexpr std::string_view kStructure[] = {"base", "axes", "zip", "concat", "sample", "of"};

// Inside a section a host is something else: `serving.tiers.host` is memory.
enum class Inside : std::uint8_t { sweep, section };

// Whose settings they are, where they stand, and for which points.
struct Place {
  std::string deployment;
  Inside inside = Inside::sweep;
  SaidOfHosts::Named points;
};

void read_said(const NodeEntry& entry, const Place& place, SaidOfHosts& said);

void read_said(const Node& node, Place place, SaidOfHosts& said) {
  place.points.always = place.points.always && node.find("when") == nullptr;
  for (const NodeEntry& entry : node.entries) read_said(entry, place, said);
  for (const Node& item : node.items) read_said(item, place, said);
}

void read_branches(const Node& concat, Place place, SaidOfHosts& said) {
  for (std::size_t i = 0; i < concat.items.size(); ++i) {
    place.points.trail.push_back({concat.where, i});
    read_said(concat.items[i], place, said);
    place.points.trail.pop_back();
  }
}

void read_said(const NodeEntry& entry, const Place& place, SaidOfHosts& said) {
  const auto& [key, value] = entry;
  const bool of_role = role_of(key.text) != kNone;
  const std::size_t dot = of_role ? key.text.find('.') : std::string::npos;
  const std::string about = of_role ? key.text.substr(0, dot) : place.deployment;
  const std::string path = dot == std::string::npos ? key.text : key.text.substr(dot + 1);
  const bool settings = place.inside == Inside::sweep;
  if (settings && path == "host" && names_hosts(value)) {
    SaidOfHosts::Named points = place.points;
    points.always = points.always && value.find("when") == nullptr;
    said.named[about].push_back(std::move(points));
  }
  if (key.text == "task") read_task(value, said);
  if (settings && about.empty() && path == "serving") read_named(value, said.engines);
  if (settings && about.empty() && path == "train") read_named(value, said.libraries);
  said.samples = said.samples || about == "rollout" || key.text.starts_with("train.rollout");
  const bool whole_role = of_role && dot == std::string::npos;
  const bool goes_on = std::ranges::find(kStructure, key.text) != std::end(kStructure);
  const bool of_sweep = settings && (whole_role || goes_on);
  const Place within{about, of_sweep ? Inside::sweep : Inside::section, place.points};
  if (settings && key.text == "concat") return read_branches(value, within, said);
  read_said(value, within, said);
}

}  // namespace

void read_said(const Node& node, SaidOfHosts& said) { read_said(node, Place{}, said); }
void read_said(const NodeEntry& entry, SaidOfHosts& said) { read_said(entry, Place{}, said); }

bool SaidOfHosts::names_always(std::string_view deployment, const Trail& at) const {
  const auto found = named.find(deployment);
  return found != named.end() && std::ranges::any_of(found->second, [&](const Named& points) {
           return points.always && covers(points.trail, at);
         });
}
bool SaidOfHosts::names_at_times(std::string_view deployment, const Trail& at) const {
  const auto found = named.find(deployment);
  return found != named.end() && std::ranges::any_of(found->second, [&](const Named& points) {
           return may_meet(points.trail, at);
         });
}

}  // namespace sweep
