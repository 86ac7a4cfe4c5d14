// What does a sweep say of the number formats of its deployments?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/language/node.h"
#include "sweep/language/trail.h"

namespace sweep {

struct SaidOfFormats {
  bool somewhere = false;   // that of weights is stated, for some points
  bool everywhere = false;  // for all
  engine::Location where;   // the first of these

  // Another field that is stated, such as `kv`: for all points of some sub-sweep, or for some of them.
  struct Field {
    std::string name;
    Trail trail;
    bool always = true;
  };
  std::vector<Field> besides;

  // Whether every point there has the field from a statement, or some point there may.
  bool says_always(std::string_view field, const Trail& at) const;
  bool says_at_times(std::string_view field, const Trail& at) const;

  // Adds what else is said, of the same points or of some of them.
  enum class Points : std::uint8_t { same, some };
  void add(const SaidOfFormats& more, Points points);
};

// What is said of one deployment; "" is the main one.
SaidOfFormats said_in_sweep(const Node& sweep, std::string_view role);
SaidOfFormats said_on_axis(const NodeEntry& axis, std::string_view role);

}  // namespace sweep
