// What the verbs of the command share: exit codes, finding the library, reading a sweep.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "sweep/spec/library.h"
#include "sweep/spec/sweep_spec.h"
#include "tools/cli/number_text.h"

namespace tools {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,  // the disk, or another thing beyond the user's files
  kMistake = 2,  // the user's: options or specs
  kStopped = 3,  // Ctrl-C; the run can be resumed
  kNoPoint = 4,  // it ran, and not one point works
};

// One function a verb: adds its subcommand, which sets `exit_code` when it runs. `program` is what the
// command was called as, for commands to paste.
void add_run(CLI::App& app, int& exit_code, const std::string& program);
void add_check(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_describe(CLI::App& app, int& exit_code);
void add_summarise(CLI::App& app, int& exit_code);
void add_questions(CLI::App& app, int& exit_code);  // top, pareto, sensitivity
void add_report(CLI::App& app, int& exit_code);
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

// One line: program, model, Arrow, commit, compiler.
std::string version_text();

}  // namespace tools
