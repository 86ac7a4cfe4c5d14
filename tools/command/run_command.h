// From the words of a command line to an exit code, the same way in llmsweep and llmsweep-calibrate.
#pragma once

#include <CLI/CLI.hpp>

namespace tools {

// Reads the words and runs the verb they name, whose callback sets `exit_code`. A mistake in the words,
// a failure and a full disk behind the output become a message and an exit code too.
int run_command(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace tools
