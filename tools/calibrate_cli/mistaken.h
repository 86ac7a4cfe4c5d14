// What is wrong with a file or an option, and the exit code for it.
#pragma once

#include <vector>

#include "engine/base/result.h"
#include "tools/command/exit_code.h"
#include "tools/terminal/terminal.h"

namespace tools {

inline int mistaken(const std::vector<engine::Mistake>& mistakes) {
  print(stderr, "{}", engine::to_text(mistakes));
  return kMistake;
}

}  // namespace tools
