// llmsweep summarise: means and intervals over the replicates of a run.
#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "results/failure.h"
#include "results/replicate_summary.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

int summarise_run(const std::string& folder, std::string file) {
  if (file.empty()) file = folder + "/summary.parquet";
  if (!file.ends_with(".parquet")) {
    print(stderr, "{}: error: the summary is a Parquet file\n  hint: name it .parquet\n", file);
    return kMistake;
  }
  try {
    const auto report = results::write_replicate_summary(folder, std::filesystem::absolute(file));
    if (!report) {
      print(stderr, "{}", engine::to_text(report.mistakes()));
      return kMistake;
    }
    const std::string replicates = report->fewest == report->most
                                       ? std::to_string(report->most)
                                       : fmt::format("{} to {}", report->fewest, report->most);
    print("{}: {}, {} with {} replicate{} each\n{}\n", folder, counted(report->points, "point"),
          counted(report->designs, "design"), replicates, report->most == 1 ? "" : "s", file);
    if (report->most == 1) {
      print("there is nothing to average: 'replicates: 10' in the sweep gives ten of each\n");
    }
    return kOk;
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
}

}  // namespace

void add_summarise(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string folder;
    std::string file;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb =
      app.add_subcommand("summarise", "Means and 95% intervals over the replicates of a run");
  verb->footer(
      "One row for all points that differ in nothing but 'replicate'. Every metric is its mean, "
      "with the\n"
      "ends of Student's 95% interval in ..._ci_low and ..._ci_high. Works while a run goes on and "
      "on any\n"
      "shards: it reads what is there.");
  verb->add_option("folder", arguments->folder, "run folder")->required()->type_name("DIR");
  verb->add_option("-o,--output", arguments->file, "Parquet file (default: DIR/summary.parquet)")
      ->type_name("FILE");
  verb->callback(
      [arguments, &exit_code] { exit_code = summarise_run(arguments->folder, arguments->file); });
}

}  // namespace tools
