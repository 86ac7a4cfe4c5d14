// llmsweep suite: scenarios that practitioners need predicted, run and held to what their specs expect.
#include <fmt/core.h>

#include <memory>

#include "results/failure.h"
#include "tools/cli/cli.h"
#include "tools/query/answer.h"
#include "tools/suite/scorecard.h"
#include "tools/suite/suite_run.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct SuiteArguments {
  std::string folder;
  std::string only;
  std::string format = "text";
  std::string file;
  int threads = 0;
  bool scorecard = false;
};

results::TextTable table_of(const std::vector<SuiteResult>& results) {
  results::TextTable table;
  for (const char* name : {"scenario", "support", "metric", "value", "checks", "points",
                           "tiers_percent", "seconds", "what", "trouble"}) {
    table.columns.emplace_back(name);
  }
  for (const SuiteResult& result : results) {
    std::size_t column = 0;
    const auto cell = [&](const std::string& text) { table.columns[column++].append(text); };
    cell(result.id);
    cell(std::string(engine::name_of(result.support)));
    cell(result.metrics.empty() ? "" : result.metrics.front());
    cell(result.range);
    cell(result.checks > 0 ? fmt::format("{}/{}", result.held, result.checks) : "");
    cell(result.points > 0 ? fmt::format("{}/{}", result.working, result.points) : "");
    // Measured, transfer, roofline.
    cell(result.working > 0 ? fmt::format("{:.0f}/{:.0f}/{:.0f}", 100 * result.tiers[2],
                                          100 * result.tiers[1], 100 * result.tiers[0])
                            : "");
    cell(result.points > 0 ? fmt::format("{:.2f}", result.seconds) : "");
    cell(result.what);
    cell(result.trouble);
  }
  return table;
}

results::TextTable table_of(const std::vector<Score>& scores) {
  results::TextTable table;
  for (const char* name : {"score", "question", "figures"}) table.columns.emplace_back(name);
  for (const Score& score : scores) {
    table.columns[0].append(score.of);
    table.columns[1].append(score.question);
    table.columns[2].append(score.figures);
  }
  return table;
}

void tell(const results::TextTable& table, const SuiteArguments& arguments) {
  if (!arguments.file.empty()) {
    write_answer(arguments.file, table);
    return print("{}\n", arguments.file);
  }
  print("{}", to_text(table, *engine::from_name<AnswerFormat>(arguments.format)));
}

// The folder 'suite' of the first library that has one.
std::filesystem::path standard_suite(const sweep::Library& library) {
  for (const std::filesystem::path& folder : library.folders()) {
    if (std::filesystem::is_directory(folder / "suite")) return folder / "suite";
  }
  return {};
}

int run_suite_verb(const SuiteArguments& arguments) {
  const sweep::Library library = standard_library();
  SuiteOptions options{.folder = arguments.folder.empty() ? standard_suite(library)
                                                          : std::filesystem::path(arguments.folder),
                       .standard = arguments.folder.empty(),
                       .only = arguments.only,
                       .threads = arguments.threads};
  if (!std::filesystem::is_directory(options.folder)) {
    print(stderr,
          "error: '{}' is not a folder\n  hint: name a folder of sweeps that say 'expect:'\n",
          options.folder.string());
    return kMistake;
  }
  if (const auto mistakes = check_answer_file(arguments.file); !mistakes.empty()) {
    print(stderr, "{}", engine::to_text(mistakes));
    return kMistake;
  }
  const std::vector<SuiteResult> results = run_suite(options, library);
  if (results.empty()) {
    print(stderr, "error: {} has no scenario{}\n  hint: a scenario is a sweep, ID.yaml\n",
          options.folder.string(),
          arguments.only.empty() ? "" : " that starts with '" + arguments.only + "'");
    return kMistake;
  }
  std::array<std::size_t, 3> count{};
  for (const SuiteResult& result : results) ++count[std::size_t(result.support)];
  print(stderr, "{}: {} supported, {} partly, {} not\n", counted(results.size(), "scenario"),
        count[0], count[1], count[2]);
  try {
    tell(arguments.scorecard ? table_of(scorecard(results, library)) : table_of(results),
         arguments);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  // A scenario that is missing is known to be; one that no longer holds is news.
  return count[std::size_t(Support::partly)] > 0 ? kFailure : kOk;
}

}  // namespace

void add_suite(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SuiteArguments>();
  CLI::App* verb =
      app.add_subcommand("suite", "Run a folder of scenarios and hold them to what they expect");
  verb->footer(
      "Each sweep of the folder is run, its results are held to its 'expect:', and told in one "
      "line: supported,\n"
      "partly (the last column says what is wrong) or not (there is no spec). 'tiers_percent' is "
      "the share of the\n"
      "kernels' time that was measured on the device, transferred from others, or is a roofline. "
      "With --scorecard\n"
      "five lines instead: fidelity, composition, generalisation, deployment, extensibility.\n"
      "Exit code 0: all that is there holds; 1: something does not.\n"
      "  llmsweep suite --only I5             llmsweep suite my/scenarios --format markdown");
  verb->add_option("folder", arguments->folder, "folder of sweeps (default: specs/suite)")
      ->type_name("DIR");
  verb->add_option("--only", arguments->only, "only scenarios whose id starts so")->type_name("ID");
  verb->add_flag("--scorecard", arguments->scorecard, "five lines about the program instead");
  verb->add_option("--format", arguments->format, "text, csv or markdown")
      ->check(CLI::IsMember({"text", "csv", "markdown"}))
      ->type_name("FORMAT");
  verb->add_option("-o,--output", arguments->file,
                   "write a file instead: .txt, .md, .csv, .csv.gz or .parquet")
      ->type_name("FILE");
  verb->add_option("-j,--threads", arguments->threads, "threads (default: all)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb->callback([arguments, &exit_code] { exit_code = run_suite_verb(*arguments); });
}

}  // namespace tools
