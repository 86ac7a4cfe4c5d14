#include "tools/cli/cli.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

#include "tools/terminal/terminal.h"

namespace tools {

std::optional<sweep::SweepSpec> read_or_complain(const std::filesystem::path& file) {
  auto spec = sweep::read_sweep(file, standard_library());
  if (!spec) {
    print(stderr, "{}", engine::to_text(spec.mistakes()));
    return std::nullopt;
  }
  return std::move(spec).value();
}

}  // namespace tools
