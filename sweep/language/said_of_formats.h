// What does a sweep say of the number formats of its deployments?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/language/node.h"

namespace sweep {

struct SaidOfFormats {
  bool somewhere = false;            // that of weights is stated, for some points
  bool everywhere = false;           // for all
  engine::Location where;            // the first of these
  std::vector<std::string> besides;  // other fields that are stated, such as `kv`

  // Adds what else is said, of the same points or of some of them.
  enum class Points : std::uint8_t { same, some };
  void add(const SaidOfFormats& more, Points points);
};

// What is said of one deployment; "" is the main one.
SaidOfFormats said_in_sweep(const Node& sweep, std::string_view role);
SaidOfFormats said_on_axis(const NodeEntry& axis, std::string_view role);

}  // namespace sweep
