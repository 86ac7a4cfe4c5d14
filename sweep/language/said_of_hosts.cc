#include "sweep/language/said_of_hosts.h"

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

void read_said(const NodeEntry& entry, const std::string& deployment, SaidOfHosts& said);

void read_said(const Node& node, const std::string& deployment, SaidOfHosts& said) {
  for (const NodeEntry& entry : node.entries) read_said(entry, deployment, said);
  for (const Node& item : node.items) read_said(item, deployment, said);
}

void read_said(const NodeEntry& entry, const std::string& deployment, SaidOfHosts& said) {
  const auto& [key, value] = entry;
  const bool of_role = role_of(key.text) != kNone;
  const std::size_t dot = of_role ? key.text.find('.') : std::string::npos;
  const std::string about = of_role ? key.text.substr(0, dot) : deployment;
  const std::string path = dot == std::string::npos ? key.text : key.text.substr(dot + 1);
  if (path == "host" && names_hosts(value)) said.named.insert(about);
  if (key.text == "task") read_task(value, said);
  said.samples = said.samples || about == "rollout" || key.text.starts_with("train.rollout");
  read_said(value, about, said);
}

}  // namespace

void read_said(const Node& node, SaidOfHosts& said) { read_said(node, "", said); }
void read_said(const NodeEntry& entry, SaidOfHosts& said) { read_said(entry, "", said); }

}  // namespace sweep
