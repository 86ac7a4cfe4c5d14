// What does a sweep say that decides which hosts its deployments have?
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/language/node.h"
#include "sweep/language/trail.h"

namespace sweep {

struct SaidOfHosts {
  // Where the host of a deployment is named: for all points of some sub-sweep, or for some of them.
  struct Named {
    Trail trail;
    bool always = true;
  };
  std::map<std::string, std::vector<Named>, std::less<>> named;  // "": of the main one
  std::vector<NodeEntry> fields;         // single fields of the main deployment's
  std::vector<Node> engines, libraries;  // settings that name what the main deployment runs
  bool trains = false;
  bool serves = false;   // or anything else than training
  bool samples = false;  // is trained on what it writes itself

  // Whether the sweep itself names it for all points there, or for any.
  bool names_always(std::string_view deployment, const Trail& at = {}) const;
  bool names_at_times(std::string_view deployment, const Trail& at = {}) const;
};

// Adds what a document, or an axis and its values, says. `fields` are not among it.
void read_said(const Node& node, SaidOfHosts& said);
void read_said(const NodeEntry& entry, SaidOfHosts& said);

}  // namespace sweep
