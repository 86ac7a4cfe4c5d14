// The verbs of llmsweep, one file each, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "results/failure.h"
#include "sweep/language/sweep_spec.h"
#include "tools/command/exit_code.h"
#include "tools/command/standard_library.h"
#include "tools/terminal/number_text.h"

namespace tools {

// One function a verb: adds its subcommand, which sets `exit_code` when it runs. `program` is what the
// command was called as, for commands to paste.
void add_run(CLI::App& app, int& exit_code, const std::string& program);
void add_check(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_suite(CLI::App& app, int& exit_code);
void add_evaluate(CLI::App& app, int& exit_code);
void add_describe(CLI::App& app, int& exit_code);
void add_summarise(CLI::App& app, int& exit_code);
void add_questions(CLI::App& app, int& exit_code);  // top, pareto, sensitivity
void add_compare(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_slurm(CLI::App& app, int& exit_code);
void add_notes(CLI::App& app, int& exit_code);
void add_sql(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);  // status, finish
void add_trace(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);

// Of an option that takes a number above 0.
CLI::Validator above_zero();
// Of one that takes a whole number above 0, for `transform`: written as in a sweep, 20_000_000 or 2e7.
CLI::Validator whole_above_zero();
// Of one that names a file or folder: a script whose variable is not set must not get the default.
CLI::Validator not_empty();
// Of one that names a file which is not a table: `what` says what it is.
CLI::Validator no_table(std::string what);

// Reads a sweep; prints every mistake to stderr and returns nothing if there are any.
std::optional<sweep::SweepSpec> read_or_complain(const std::filesystem::path& file);

// The same of a name that is a sweep's or, where it is a folder, that of a run made of one.
struct SpecOrRun {
  std::optional<sweep::SweepSpec> spec;
  bool of_run = false;
};
SpecOrRun read_spec_or_run(const std::string& name);

// Whether a sweep of `file` has no more positions than `limit`, or than its own limit where that is 0; says
// so where not.
bool within_limit_or_complain(const sweep::SweepSpec& spec, const std::string& file,
                              std::uint64_t limit);

// Point `index` of a sweep, or what to exit with: there is none, or (with kOk) it is left out; either is
// said. Of an option called `option`.
struct BuiltPoint {
  std::optional<sweep::Point> point;
  int exit_code = kOk;
};
BuiltPoint build_or_say(const sweep::SweepSpec& spec, std::uint64_t index,
                        const char* option = "--point");

// Says which file of a run cannot be read, and that the run has to be looked at; the exit code for that.
int complain_about_run(const results::Failure& failure);

// One line: program, model, Arrow, commit, compiler.
std::string version_text();

}  // namespace tools
