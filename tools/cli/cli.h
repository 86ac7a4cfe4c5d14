// What the verbs of the command share: exit codes, finding the library, reading a sweep.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "sweep/spec/library.h"
#include "sweep/spec/sweep_spec.h"

namespace tools {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,  // the disk, or another thing beyond the user's files
  kMistake = 2,  // the user's: options or specs
  kStopped = 3,  // Ctrl-C; the run can be resumed
};

// One function a verb: adds its subcommand, which sets `exit_code` when it runs.
void add_run(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_describe(CLI::App& app, int& exit_code);
void add_summarise(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);
void add_kernels(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);

// The spec library that came with this binary, with the user's own folders before it.
sweep::Library standard_library();

// Reads a sweep; prints every mistake to stderr and returns nothing if there are any.
std::optional<sweep::SweepSpec> read_or_complain(const std::filesystem::path& file);

// "1,234,567".
std::string grouped(std::uint64_t number);
// "1.5 s", "3 min 20 s", "2.1 h".
std::string duration(double seconds);
// "1.2 MB".
std::string size_text(double bytes);

}  // namespace tools
