// What a sweep over toys says of axes that change nothing.
#pragma once

#include <string>

#include "tests/sweep/sweep_fixture.h"

namespace sweep::inert {

inline std::string base(const std::string& fields) {
  return "base: {device: toy, model: tiny, " + fields + "}\n";
}
inline std::string said_of(const std::string& text) {
  const auto spec = read_sweep_text(text, "toy.yaml", toy_library());
  return spec ? "" : engine::to_text(spec.mistakes());
}
inline std::string axis(const std::string& text) { return "axes:\n  - " + text + "\n"; }

}  // namespace sweep::inert
