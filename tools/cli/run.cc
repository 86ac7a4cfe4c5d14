// llmsweep run: a sweep into a run folder; resumes, shards and reuses.
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <optional>

#include "results/archive.h"
#include "results/failure.h"
#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "results/table.h"
#include "sweep/run/runner.h"
#include "sweep/space/shard.h"
#include "tools/cli/check.h"
#include "tools/cli/cli.h"
#include "tools/cli/outcome_summary.h"
#include "tools/cli/progress_display.h"
#include "tools/cli/shell_command.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct RunArguments {
  std::string spec;
  std::string folder;
  std::string shard = "1/1";
  std::string reuse;
  int threads = 0;
  std::uint64_t limit = 0;
  double point_budget = engine::kPointBudget;
  bool dry_run = false;
  std::string command;  // that goes on with this run, to paste into a shell
};

// "2/8": the second of eight shards.
std::optional<results::Shard> parse_shard(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  std::uint32_t k = 0, n = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), text.data() + slash, k);
  const auto second = std::from_chars(text.data() + slash + 1, end, n);
  if (first.ptr != text.data() + slash || second.ptr != end || k < 1 || k > n) return std::nullopt;
  return results::Shard{.number = k, .count = n};
}

// Every part takes some megabytes for its columns and frees them. Left alone, the allocator hands them
// back to the system each time, and the page faults of taking them again take a twentieth of the run.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest it accepts
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // What a thread frees stays with its arena: one for each of many threads would keep a part each.
  mallopt(M_ARENA_MAX, 4);
}

// Whether every shard is done. Others may have finished while this one ran.
bool is_complete(const std::string& folder) {
  const auto summary = results::summarise(folder);
  return summary && summary->complete();
}

int run_into_folder(const RunArguments& arguments, const results::Shard& shard,
                    const sweep::SweepSpec& spec) {
  const sweep::Space& space = spec.space;
  auto folder = results::RunFolder::open(arguments.folder, {.run_yaml = spec.resolved,
                                                            .spec_hash = spec.digest,
                                                            .shard = shard,
                                                            .positions = space.size()});
  if (!folder) {
    print(stderr, "{}", engine::to_text(folder.mistakes()));
    return kMistake;
  }
  for (const std::string& notice : folder->notices()) print(stderr, "note: {}\n", notice);
  if (const std::string note = rent_note(space); !note.empty()) {
    print(stderr, "note: {}\n", note);
  }

  std::unique_ptr<results::Archive> archive;
  if (!arguments.reuse.empty()) {
    auto opened = results::Archive::open(arguments.reuse);
    if (!opened) {
      print(stderr, "{}", engine::to_text(opened.mistakes()));
      return kMistake;
    }
    archive = std::move(opened).value();
  }

  // From here on Ctrl-C keeps what is done: whoever reads the line below may rely on it.
  sweep::StopSignal stop;
  const sweep::StopOnSignals stop_on_signals(stop);
  const sweep::IndexSet mine = sweep::shard_of(space.size(), shard.number, shard.count);
  const sweep::IndexSet todo = mine.minus(folder->done());
  const std::uint64_t before = mine.count() - todo.count();
  print("{}: {} positions{}{}\n", arguments.folder, grouped(mine.count()),
        shard.count > 1 ? fmt::format(" in shard {}/{}", shard.number, shard.count) : "",
        before > 0 ? fmt::format(", {} already done", grouped(before)) : "");
  std::fflush(stdout);

  sweep::Progress progress;
  sweep::RunReport report;
  const auto start = std::chrono::steady_clock::now();
  {
    results::ParquetSink sink(*folder,
                              {space.base(), space.varied_leaves(), space.label_columns()});
    const ProgressDisplay display(progress, before, mine.count());
    report = sweep::run_points(space, todo, sink,
                               {.resources = spec.resources.get(),
                                .threads = arguments.threads,
                                .archive = archive.get(),
                                .point_budget = arguments.point_budget},
                               stop, progress);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (archive != nullptr) {
    for (const std::string& notice : archive->notices()) print(stderr, "note: {}\n", notice);
  }
  print("{} rows in {} ({:.3g} positions/s)\n", grouped(report.tally.rows()),
        duration(taken.count()), double(report.tally.positions()) / taken.count());
  // Of the whole folder: what this call did and what was there before it.
  sweep::Tally all = folder->tally();
  all.add(report.tally);
  if (all.rows() > report.tally.rows()) {
    print("the whole run so far, {} rows:\n", grouped(all.rows()));
  }
  print("{}", summary_text(all, space));
  if (report.stopped) {
    print("stopped; what is done is kept. Go on with: {}\n", arguments.command);
    return kStopped;
  }
  std::string tables;
  for (const std::string_view table : enum_names(results::Table{})) {
    if (!std::filesystem::exists(std::filesystem::path(arguments.folder) / table)) continue;
    tables += fmt::format("{}{}/{}", tables.empty() ? "" : ", ", arguments.folder, table);
  }
  print("tables: {}; in Python: pandas.read_parquet('{}/points')\n", tables, arguments.folder);
  if (!nothing_works(all) || !is_complete(arguments.folder)) return kOk;
  std::fflush(stdout);
  print(stderr, "warning: {}", nothing_works_text(all, spec));
  return kNoPoint;
}

int run(RunArguments arguments) {
  const auto shard = parse_shard(arguments.shard);
  if (!shard) {
    print(stderr,
          "error: --shard: '{}' is not a shard\n  hint: write K/N with 1 <= K <= N, as in 2/8\n",
          arguments.shard);
    return kMistake;
  }
  const auto spec = read_or_complain(arguments.spec);
  if (!spec) return kMistake;
  if (arguments.dry_run) return print_check(*spec);
  if (arguments.folder.empty()) {
    arguments.folder = "runs/" + std::filesystem::path(arguments.spec).stem().string();
    arguments.command += " --output " + shell_word(arguments.folder);
  }
  if (!within_limit_or_complain(*spec, arguments.spec, arguments.limit)) return kMistake;
  keep_freed_memory();
  try {
    return run_into_folder(arguments, *shard, *spec);
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\nnothing committed is lost; go on with: {}\n", failure.what(),
          arguments.command);
    return kFailure;
  }
}

}  // namespace

void add_run(CLI::App& app, int& exit_code, const std::string& program) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* verb = app.add_subcommand("run", "Run a sweep into a folder of Parquet tables");
  verb->footer(
      "The same command again goes on where a killed or stopped run was, and does nothing when it "
      "is\n"
      "done. A folder holds one spec; change the spec and use a new folder, with --reuse OLD to "
      "take\n"
      "over every point that is the same. Shards may share a folder, from any number of "
      "machines.\n\n"
      "  llmsweep run sweep.yaml -o runs/night --shard 1/4      one of four jobs\n"
      "  llmsweep run wider.yaml -o runs/wider --reuse runs/night");
  verb->add_option("spec", arguments->spec, "the sweep")->required()->type_name("SPEC");
  verb->add_option("-o,--output", arguments->folder, "run folder (default: runs/NAME of the spec)")
      ->type_name("DIR");
  verb->add_option("-j,--threads", arguments->threads, "threads (default: all)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb->add_option("--shard", arguments->shard, "only the K-th of N equal shares")
      ->type_name("K/N");
  verb->add_option("--reuse", arguments->reuse, "run folder whose finished points are taken over")
      ->type_name("DIR");
  verb->add_option("--limit", arguments->limit,
                   "most positions to run (default: the spec's, or 20,000,000)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_option("--point-budget", arguments->point_budget,
                   "units of work after which a point is given up, as a row with status 'failed'; "
                   "the default is minutes of one core (2e9)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  verb->add_flag("--dry-run", arguments->dry_run, "only say what would run, as 'check' does");
  verb->callback([arguments, &exit_code, verb, program] {
    arguments->command = given_command(program, *verb);
    exit_code = run(*arguments);
  });
}

}  // namespace tools
