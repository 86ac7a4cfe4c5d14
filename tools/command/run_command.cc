#include "tools/command/run_command.h"

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
#include "tools/command/exit_code.h"
#include "tools/command/mistyped.h"
#include "tools/terminal/terminal.h"

namespace tools {
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
  return exit_code == kOk ? kFailure : exit_code;
}

// A limit that is misspelt would otherwise count for nothing, silently.
bool limits_understood() {
  const char* stated = std::getenv(sweep::kLimitsVariable);
  const auto limits = sweep::parse_limits(stated == nullptr ? "" : stated);
  if (limits) return true;
  std::fputs(printable(engine::to_text(limits.mistakes())).c_str(), stderr);
  return false;
}

// CLI11 prints help or the mistake; its own codes are above our range.
int answer(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::ostringstream help, complaint;
  const bool asked_for_help = app.exit(error, help, complaint) == 0;
  std::fputs(printable(help.str()).c_str(), stdout);
  std::fputs(printable(complaint.str()).c_str(), stderr);
  if (asked_for_help) return with_output_written(kOk);
  std::fputs(printable(option_hint(app, argc, argv)).c_str(), stderr);
  return kMistake;
}

}  // namespace

int run_command(CLI::App& app, int argc, char** argv, const int& exit_code) {
  let_writes_fail();
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return kMistake;
  }
  if (const auto message = unknown_verb(app, argc, argv)) {
    std::fputs(printable(*message).c_str(), stderr);
    return kMistake;
  }
  if (!limits_understood()) return kMistake;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return answer(app, error, argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("llmsweep: out of memory; a run that was going on can be resumed\n", stderr);
    return kFailure;
  } catch (const std::system_error& error) {
    // Where the output is closed, a complaint would not be read either.
    if (error.code() != std::errc::broken_pipe) {
      std::fprintf(stderr, "llmsweep: %s\n", printable(error.what()).c_str());
    }
    return kFailure;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llmsweep: %s\n", printable(error.what()).c_str());
    return kFailure;
  }
  return with_output_written(exit_code);
}

}  // namespace tools
