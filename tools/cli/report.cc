// llmsweep report: a finished run as one page for a browser.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "results/durable_file.h"
#include "results/failure.h"
#include "tools/cli/cli.h"
#include "tools/report/page.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct ReportArguments {
  ReportOptions options;
  std::string file = "report.html";
};

// The page, or the exit code once what is in the way is told.
struct Made {
  std::optional<Report> report;
  int exit_code = kOk;
};

Made made_report(const ReportOptions& options) {
  try {
    auto report = make_report(options);
    if (!report) {
      print(stderr, "{}", engine::to_text(report.mistakes()));
      return {.exit_code = kMistake};
    }
    return {.report = std::move(*report)};
  } catch (const results::Failure& failure) {
    return {.exit_code = complain_about_run(failure)};
  }
}

int write_report(const ReportArguments& arguments) {
  const auto [report, exit_code] = made_report(arguments.options);
  if (!report) return exit_code;
  for (const std::string& note : report->notes) print(stderr, "note: {}\n", note);
  if (report->points == 0) {
    print(stderr, "error: no point passes --where\n");
    return kNoPoint;
  }
  if (report->points < report->asked_for) {
    print(stderr,
          "note: {} of {} points are in the page, evenly chosen; --points sets how many, --where "
          "which\n",
          grouped(report->points), grouped(report->asked_for));
  }
  try {
    results::write_durably(std::filesystem::absolute(arguments.file), report->html);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  print("{}: {}, {}; open it in a browser\n", arguments.file, counted(report->points, "point"),
        size_text(double(report->html.size())));
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb =
      app.add_subcommand("report", "A page to look at a run: Pareto fronts, best designs, why");
  verb->footer(
      "One file that needs no network: overview, Pareto explorer, best designs under limits, heat "
      "map,\n"
      "breakdown, sensitivity, roofline and latencies. The run folder is only read.");
  verb->add_option("folders", arguments->options.folders, "run folders")
      ->required()
      ->type_name("DIR...");
  verb->add_option("-o,--output", arguments->file, "the page (default: report.html)")
      ->check(not_empty())
      ->check(no_table("a page for a browser; 'top', 'pareto' and 'sql' write tables"))
      ->type_name("FILE");
  verb->add_option("--where", arguments->options.where,
                   "only points for which this holds, as for 'top'")
      ->type_name("EXPR");
  verb->add_option("--points", arguments->options.most_points,
                   "most points in the page; more are thinned out evenly (default: 250000)")
      ->transform(whole_above_zero())
      ->type_name("N");
  verb->callback([arguments, &exit_code] { exit_code = write_report(*arguments); });
}

}  // namespace tools
