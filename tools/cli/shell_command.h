// A command as it can be pasted into a shell again.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace tools {

// One word of a command line: as it is where no shell would touch it, quoted elsewhere.
std::string shell_word(std::string_view text);

// The command that was parsed into `verb`, with every argument and option that was given. `program` is
// what it was called as.
std::string given_command(std::string_view program, const CLI::App& verb);

}  // namespace tools
