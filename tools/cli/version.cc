// llmsweep version: what produced a row.
#include "engine/base/version.h"

#include <fmt/core.h>

#include "results/parquet_file.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {

std::string version_text() {
  return fmt::format("llmsweep {} (model version {}, Arrow {}, commit {}, {})",
                     engine::program_version(), engine::kModelVersion, results::arrow_version(),
                     engine::program_commit(), engine::compiler());
}

void add_version(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "version", "Print what was built: program, model, Arrow, commit, compiler");
  verb->callback([&exit_code] {
    print("{}\n", version_text());
    exit_code = kOk;
  });
}

}  // namespace tools
