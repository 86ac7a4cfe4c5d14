// The verbs about kernel tables, one file each.
#pragma once

#include <CLI/CLI.hpp>

namespace tools {

// Each adds its subcommand, which sets `exit_code` when it runs.
void add_kernels(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);

}  // namespace tools
