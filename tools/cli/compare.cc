// llmsweep compare: what differs between two runs, as an answer that a nightly job can act on.
#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "results/durable_file.h"
#include "results/failure.h"
#include "tools/cli/cli.h"
#include "tools/compare/baseline.h"
#include "tools/compare/comparison.h"
#include "tools/compare/comparison_text.h"
#include "tools/query/answer.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct CompareArguments {
  std::string old_folder, new_folder;
  std::vector<std::string> tolerances;
  std::string by = "either";
  std::vector<std::string> least, most;
  std::string format = "text";
  std::string file;
  std::size_t count = 1000;
  bool accept = false;
  bool common = false;
};

// Here 1 says that something drifted, so what cannot be read is a broken input like any other.
enum CompareCode : int { kSame = 0, kDrift = 1, kBroken = 2 };

int complain_about(const std::vector<engine::Mistake>& mistakes) {
  print(stderr, "{}", engine::to_text(mistakes));
  return kBroken;
}

CompareOptions options_of(const CompareArguments& arguments) {
  CompareOptions options{
      .tolerances = arguments.tolerances, .keep = arguments.count, .only_common = arguments.common};
  for (const auto& name : arguments.least) options.objectives.push_back({name, Better::lower});
  for (const auto& name : arguments.most) options.objectives.push_back({name, Better::higher});
  return options;
}

void write_comparison(const CompareArguments& arguments, const RunPair& pair,
                      const Comparison& comparison) {
  const std::string& file = arguments.file;
  const auto write_page = [&](PageFormat format) {
    results::write_durably(std::filesystem::absolute(file),
                           comparison_page(pair, comparison, format));
  };
  if (file.ends_with(".html")) {
    write_page(PageFormat::html);
  } else if (file.ends_with(".md")) {
    write_page(PageFormat::markdown);
  } else if (file.ends_with(".txt")) {
    write_page(PageFormat::text);
  } else {
    write_answer(file, differences(pair, comparison));
  }
  print(stderr, "{}\n", file);
}

int accept(const CompareArguments& arguments) {
  const auto mistakes = accept_baseline(arguments.old_folder, arguments.new_folder);
  if (!mistakes.empty()) return complain_about(mistakes);
  print(stderr, "{} is now what {} is\n", arguments.old_folder, arguments.new_folder);
  return kSame;
}

int compare_folders(const CompareArguments& arguments) {
  if (!arguments.file.ends_with(".html")) {
    if (auto mistakes = check_answer_file(arguments.file); !mistakes.empty()) {
      mistakes.front().hint = "name it .txt, .md, .html, .csv, .csv.gz or .parquet";
      return complain_about(mistakes);
    }
  }
  if (arguments.accept && !std::filesystem::exists(arguments.old_folder)) return accept(arguments);
  const auto pair = RunPair::open(arguments.old_folder, arguments.new_folder,
                                  *engine::from_name<JoinBy>(arguments.by));
  if (!pair) return complain_about(pair.mistakes());
  const auto comparison = compare_runs(*pair, options_of(arguments));
  if (!comparison) return complain_about(comparison.mistakes());
  if (arguments.file.empty()) {
    const auto format = arguments.format == "markdown" ? PageFormat::markdown : PageFormat::text;
    print("{}", comparison_page(*pair, *comparison, format));
  } else {
    write_comparison(arguments, *pair, *comparison);
  }
  if (arguments.accept) return accept(arguments);
  return is_same(*pair, *comparison) ? kSame : kDrift;
}

int compare_safely(const CompareArguments& arguments) {
  try {
    return compare_folders(arguments);
  } catch (const std::exception& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kBroken;
  }
}

void add_options(CLI::App* verb, CompareArguments& arguments) {
  verb->add_option("old", arguments.old_folder, "run folder, the baseline")
      ->required()
      ->type_name("OLD");
  verb->add_option("new", arguments.new_folder, "run folder to compare with it")
      ->required()
      ->type_name("NEW");
  verb->add_option("--tolerance", arguments.tolerances,
                   "how much figures may move (default: 1e-9 of what they were): 1%, or "
                   "ttft_p99_s=5% for one of them; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("[METRIC=]SHARE");
  verb->add_option("--by", arguments.by,
                   "which points are the same: those with one key, those with the same labels of "
                   "their axes, or (default) either, keys first")
      ->check(CLI::IsMember({"either", "key", "labels"}))
      ->type_name("JOIN");
  verb->add_option("--min", arguments.least, "a figure of the Pareto front to have low")
      ->allow_extra_args(false)
      ->type_name("METRIC");
  verb->add_option("--max", arguments.most, "a figure of the Pareto front to have high")
      ->allow_extra_args(false)
      ->type_name("METRIC");
  verb->add_option("--format", arguments.format, "text or markdown")
      ->check(CLI::IsMember({"text", "markdown"}))
      ->type_name("FORMAT");
  verb->add_option("-o,--output", arguments.file,
                   "write a file instead: .txt, .md or .html to read; .csv, .csv.gz or .parquet "
                   "with a row for each difference")
      ->type_name("FILE");
  verb->add_option("-n,--count", arguments.count,
                   "points of each figure in such a table, the worst first (default: 1000)")
      ->transform(whole_above_zero())
      ->type_name("N");
  verb->add_flag("--common", arguments.common,
                 "only points and figures that both have, as of a measured run and its simulation");
  verb->add_flag("--accept", arguments.accept, "then put a copy of NEW in the place of OLD");
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* verb = app.add_subcommand("compare", "What differs between two runs");
  verb->footer(
      "Points that are new, missing or no longer work, figures that drifted, how the Pareto front "
      "moved,\n"
      "and which kernels, communication, host or queue took the time. Exit code 0: the same; 1: "
      "something\n"
      "drifted; 2: the runs or the options are broken. tools/campaign has a nightly job that uses "
      "it.\n"
      "  llmsweep compare baseline runs/tonight --tolerance 1% --format markdown");
  add_options(verb, *arguments);
  verb->callback([arguments, &exit_code] { exit_code = compare_safely(*arguments); });
}

}  // namespace tools
