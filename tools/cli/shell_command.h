// A command as it can be pasted into a shell again.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "tools/terminal/shell_word.h"

namespace tools {

// The command that was parsed into `verb`, with every argument and option that was given. `program` is
// what it was called as.
std::string given_command(std::string_view program, const CLI::App& verb);

}  // namespace tools
