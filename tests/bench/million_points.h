// The space of the README's million-point benchmark: a decode step of a 70B model, TP 8.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "tests/support/paths.h"

namespace bench {

inline const sweep::SweepSpec& million_points() {
  static const sweep::SweepSpec spec = [] {
    auto read = sweep::read_sweep(paths::specs("sweeps/million_points.yaml"),
                                  sweep::Library({paths::specs()}));
    if (!read) {
      std::fputs(engine::to_text(read.mistakes()).c_str(), stderr);
      std::abort();
    }
    return std::move(read).value();
  }();
  return spec;
}

}  // namespace bench
