// llmsweep report: a finished run as one page for a browser.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "results/durable_file.h"
#include "results/failure.h"
#include "sweep/run/stop_signal.h"
#include "tools/cli/cli.h"
#include "tools/report/page.h"
#include "tools/status/run_status.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct ReportArguments {
  ReportOptions options;
  std::string file = "report.html";
  bool watch = false;
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

int save_page(const ReportArguments& arguments, const Report& report) {
  try {
    results::write_durably(std::filesystem::absolute(arguments.file), report.html);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  return kOk;
}

int write_report(const ReportArguments& arguments) {
  const auto [report, exit_code] = made_report(arguments.options);
  if (!report) return exit_code;
  print_notes(stderr, report->notes);
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
  if (const int failed = save_page(arguments, *report); failed != kOk) return failed;
  print("{}: {}, {}; open it in a browser\n", arguments.file, counted(report->points, "point"),
        size_text(double(report->html.size())));
  return kOk;
}

// Of all folders together; the exit code where one of them is no run.
struct Seen {
  RunProgress progress;
  int exit_code = kOk;

  bool is_complete() const { return progress.done == progress.positions; }
};

Seen seen_progress(const std::vector<std::string>& folders) {
  Seen seen;
  try {
    for (const std::string& folder : folders) {
      const auto status = run_status(folder);
      if (!status) {
        print(stderr, "{}", engine::to_text(status.mistakes()));
        return {.progress = {}, .exit_code = kMistake};
      }
      seen.progress.done += status->done.count();
      seen.progress.positions += status->positions;
    }
  } catch (const results::Failure& failure) {
    return {.progress = {}, .exit_code = complain_about_run(failure)};
  }
  return seen;
}

void wait(double seconds, const sweep::StopSignal& stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!stop.requested() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Writes the page whenever the runs have come further, until they are complete or somebody presses Ctrl-C. The last page
// is that of a finished run: a browser reads it no more.
int watch_report(ReportArguments arguments) {
  sweep::StopSignal stop;
  const sweep::StopOnSignals stop_on_signals(stop);
  std::optional<std::uint64_t> shown;
  for (;;) {
    const Seen seen = seen_progress(arguments.options.folders);
    if (seen.exit_code != kOk) return seen.exit_code;
    if (seen.is_complete() || stop.requested()) break;
    double rest = 1;  // seconds
    if (shown != seen.progress.done) {
      const auto begin = std::chrono::steady_clock::now();
      arguments.options.going_on = seen.progress;
      const auto [report, exit_code] = made_report(arguments.options);
      if (!report) return exit_code;
      if (report->points > 0) {
        if (const int failed = save_page(arguments, *report); failed != kOk) return failed;
        if (!shown) {
          print("{}: open it in a browser; it follows the run until that is done, or Ctrl-C\n",
                arguments.file);
          std::fflush(stdout);
        }
        shown = seen.progress.done;
      }
      // A large page takes a fifth of one core at most.
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      rest = std::max(rest, 4 * took.count());
    }
    wait(rest, stop);
  }
  arguments.options.going_on.reset();
  return write_report(arguments);
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* verb =
      app.add_subcommand("report", "A page to look at a run: Pareto fronts, best designs, why");
  verb->footer(
      "One file that needs no network: overview, Pareto explorer, best designs under limits, "
      "designs "
      "side\n"
      "by side, parallel coordinates, slices, heat map, breakdown, sensitivity, roofline and "
      "latencies.\n"
      "The run folder is only read.");
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
  verb->add_flag("--watch", arguments->watch,
                 "write the page again as the run goes on; an open page follows by itself");
  verb->callback([arguments, &exit_code] {
    exit_code = arguments->watch ? watch_report(*arguments) : write_report(*arguments);
  });
}

}  // namespace tools
