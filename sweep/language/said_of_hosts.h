// What does a sweep say that decides which hosts its deployments have?
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sweep/language/node.h"

namespace sweep {

struct SaidOfHosts {
  std::set<std::string, std::less<>> named;  // deployments whose host is named; "": the main one
  std::vector<NodeEntry> fields;             // single fields of the main deployment's
  std::vector<Node> engines, libraries;      // settings that name what the main deployment runs
  bool trains = false;
  bool serves = false;   // or anything else than training
  bool samples = false;  // is trained on what it writes itself
};

// Adds what a document, or an axis and its values, says. `fields` are not among it.
void read_said(const Node& node, SaidOfHosts& said);
void read_said(const NodeEntry& entry, SaidOfHosts& said);

}  // namespace sweep
