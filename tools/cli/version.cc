// llmsweep version: what produced a row.
#include "engine/base/version.h"

#include <fmt/core.h>

#include "results/parquet_file.h"
#include "tools/cli/cli.h"

namespace tools {

void add_version(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "version", "Print what was built: program, model, Arrow, commit, compiler");
  verb->callback([&exit_code] {
    fmt::print("llmsweep {} (model version {}, Arrow {}, commit {}, {})\n",
               engine::program_version(), engine::kModelVersion, results::arrow_version(),
               engine::program_commit(), engine::compiler());
    exit_code = kOk;
  });
}

}  // namespace tools
