// llmsweep: the command. Each verb lives in a file of its own.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include "sweep/input/limits.h"
#include "tools/cli/cli.h"
#include "tools/cli/mistyped.h"
#include "tools/terminal/terminal.h"

namespace {

// A file that grows too large, and a reader that has gone (`llmsweep list devices | head -3`), are
// failures of a write, to be answered where it is made: a sweep must not die of its progress line.
void let_writes_fail() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

// What was printed may still be in memory: only now does a full disk behind `> file` show.
int with_output_written(int exit_code) {
  if (std::fflush(stdout) == 0 || errno == EPIPE) return exit_code;
  std::fprintf(stderr, "llmsweep: cannot write the output: %s\n", std::strerror(errno));
  return exit_code == tools::kOk ? tools::kFailure : exit_code;
}

// A limit that is misspelt would otherwise count for nothing, silently.
bool limits_understood() {
  const char* stated = std::getenv(sweep::kLimitsVariable);
  const auto limits = sweep::parse_limits(stated == nullptr ? "" : stated);
  if (limits) return true;
  std::fputs(tools::printable(engine::to_text(limits.mistakes())).c_str(), stderr);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  let_writes_fail();
  CLI::App app{
      "Sweeps the design space of LLM systems: a YAML spec in, Parquet tables out.\n\n"
      "  llmsweep run specs/sweeps/first_sweep.yaml      run a sweep\n"
      "  llmsweep check SPEC                             what it would run, before it does\n"
      "  llmsweep explain SPEC --point 17                one point, kernel by kernel\n"
      "  llmsweep list devices; llmsweep show h100-sxm   what the library knows"};
  app.name("llmsweep");
  app.require_subcommand(1);
  app.set_version_flag("--version", tools::version_text);
  app.footer(
      "Exit codes: 0 done; 1 a disk or other failure, resumable; 2 a mistake in the options or in "
      "a\n"
      "spec; 3 stopped by Ctrl-C, resumable; 4 done, and not one point works (each row says why);\n"
      "130 stopped by a second Ctrl-C, resumable.\n"
      "Folders of your own specs: LLMSWEEP_SPECS=dir1:dir2, or a folder 'specs' beside the sweep.\n"
      "Files larger than the reader's limits (sweep/README.md): LLMSWEEP_LIMITS=table_bytes=8G.");
  int exit_code = tools::kOk;
  tools::add_run(app, exit_code, argv[0]);
  tools::add_check(app, exit_code);
  tools::add_explain(app, exit_code);
  tools::add_report(app, exit_code);
  tools::add_questions(app, exit_code);
  tools::add_summarise(app, exit_code);
  tools::add_verify(app, exit_code);
  tools::add_list(app, exit_code);
  tools::add_show(app, exit_code);
  tools::add_describe(app, exit_code);
  tools::add_kernels(app, exit_code);
  tools::add_validate(app, exit_code);
  tools::add_calibrate(app, exit_code);
  tools::add_completion(app, exit_code);
  tools::add_version(app, exit_code);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return tools::kMistake;
  }
  if (const auto message = tools::unknown_verb(app, argc, argv)) {
    std::fputs(tools::printable(*message).c_str(), stderr);
    return tools::kMistake;
  }
  if (!limits_understood()) return tools::kMistake;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help or the mistake; its own codes are above our range.
    std::ostringstream help, complaint;
    const bool asked_for_help = app.exit(error, help, complaint) == 0;
    std::fputs(tools::printable(help.str()).c_str(), stdout);
    std::fputs(tools::printable(complaint.str()).c_str(), stderr);
    if (asked_for_help) return with_output_written(tools::kOk);
    std::fputs(tools::printable(tools::option_hint(app, argc, argv)).c_str(), stderr);
    return tools::kMistake;
  } catch (const std::bad_alloc&) {
    std::fputs("llmsweep: out of memory; a run that was going on can be resumed\n", stderr);
    return tools::kFailure;
  } catch (const std::system_error& error) {
    // Where nobody reads the output any more, nobody reads a complaint either.
    if (error.code() != std::errc::broken_pipe) {
      std::fprintf(stderr, "llmsweep: %s\n", tools::printable(error.what()).c_str());
    }
    return tools::kFailure;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llmsweep: %s\n", tools::printable(error.what()).c_str());
    return tools::kFailure;
  }
  return with_output_written(exit_code);
}
