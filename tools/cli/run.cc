// llmsweep run: a sweep into a run folder; resumes, shards and reuses.
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "results/archive.h"
#include "results/claims.h"
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
#include "tools/query/row_notes.h"
#include "tools/status/run_status.h"
#include "tools/status/what_to_do.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct RunArguments {
  std::string spec;
  std::string folder;
  std::string shard = "1/1";
  std::string worker;
  std::string reuse;
  int threads = 0;
  std::uint64_t limit = 0;
  double point_budget = engine::kPointBudget;
  bool dry_run = false;
  bool quiet = false;
  std::string command;  // that goes on with this run, to paste into a shell
};

// As many as 'llmsweep slurm' starts. 'llmsweep status' looks at each.
constexpr std::uint32_t kMostShards = 1'000'000;

// "2/8": the second of eight shards.
std::optional<results::Shard> parse_shard(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  std::uint32_t k = 0, n = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), text.data() + slash, k);
  const auto second = std::from_chars(text.data() + slash + 1, end, n);
  if (first.ptr != text.data() + slash || second.ptr != end || k < 1 || k > n || n > kMostShards) {
    return std::nullopt;
  }
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

// What the whole run has, once every shard is done: others may have finished while this one ran, and a worker knows its own rows only.
std::optional<sweep::Tally> tally_of_all(const std::string& folder) {
  const auto summary = results::summarise(folder);
  return summary && summary->complete() ? std::optional(summary->tally) : std::nullopt;
}

// The last worker to end says what no other will: the folder is no longer held by it.
void say_what_the_dead_hold(const std::string& folder) {
  const auto status = run_status(folder);
  if (!status || status->is_complete()) return;
  const std::string held = held_by_the_dead(folder, *status);
  if (!held.empty()) print(stderr, "note: {}", held);
}

// The positions of this call: a fixed share, or what a worker takes piece by piece.
struct Work {
  sweep::Supply supply;
  std::uint64_t expected = 0;  // about how many, with those done before
  std::uint64_t before = 0;
  std::string text;
};

Work fixed_work(const results::RunFolder& folder) {
  const results::RunIdentity& run = folder.identity();
  const sweep::IndexSet mine = sweep::shard_of(run.positions, run.shard.number, run.shard.count);
  sweep::IndexSet todo = mine.minus(folder.done());
  const std::uint64_t before = mine.count() - todo.count();
  return {.supply = [todo = std::move(todo)]() mutable { return std::exchange(todo, {}); },
          .expected = mine.count(),
          .before = before,
          .text = fmt::format("{}{}", counted(mine.count(), "position"),
                              run.shard.count > 1 ? fmt::format(" in shard {}/{}", run.shard.number,
                                                                run.shard.count)
                                                  : "")};
}

Work taken_work(const results::RunFolder& folder) {
  const results::RunIdentity& run = folder.identity();
  auto claims = std::make_shared<results::Claims>(folder.path(), run.shard, run.positions);
  const auto supply = [claims, &folder, portion = claims->earlier()]() mutable {
    // A piece may have been done before the work was shared in this way.
    sweep::IndexSet todo = std::exchange(portion, {}).minus(folder.done());
    while (todo.empty()) {
      const sweep::IndexSet piece = claims->next();
      if (piece.empty()) break;
      todo = piece.minus(folder.done());
    }
    return todo;
  };
  const std::uint64_t before = folder.done().count();
  return {.supply = supply,
          .expected = before + (run.positions - before) / run.shard.count,
          .before = before,
          .text = fmt::format("worker {} of {}, who share {}", run.shard.number, run.shard.count,
                              counted(run.positions, "position"))};
}

// A text as Python reads it.
std::string python_text(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "'";
}

int say_how_it_ended(const RunArguments& arguments, const sweep::SweepSpec& spec,
                     const sweep::RunReport& report, const sweep::Tally& all) {
  if (all.rows() > report.tally.rows()) {
    print("the whole run so far, {}:\n", counted(all.rows(), "row"));
  }
  print("{}", summary_text(all, spec.space));
  if (report.stopped) {
    print("stopped; what is done is kept. Go on with: {}\n", arguments.command);
    return kStopped;
  }
  std::string tables;
  for (const std::string_view table : enum_names(results::Table{})) {
    if (!std::filesystem::exists(std::filesystem::path(arguments.folder) / table)) continue;
    tables += fmt::format("{}{}/{}", tables.empty() ? "" : ", ", arguments.folder, table);
  }
  print("tables: {}; in Python: pandas.read_parquet({})\n", tables,
        python_text(arguments.folder + "/points"));
  if (report.tally.positions() == 0 && !arguments.worker.empty()) {
    print("nothing was left for this worker: others have done or taken all of it\n");
  }
  // Of many workers the last one sees all rows, and reads them.
  const std::optional<sweep::Tally> whole = tally_of_all(arguments.folder);
  if (!whole) return kOk;
  flush_out(stdout);
  if (const auto notes = notes_of_run(arguments.folder)) print_notes(stderr, *notes);
  if (!nothing_works(*whole)) return kOk;
  print(stderr, "warning: {}", nothing_works_text(*whole, spec));
  return kNoPoint;
}

int run_into_folder(const RunArguments& arguments, const results::Shard& shard,
                    const sweep::SweepSpec& spec) {
  const sweep::Space& space = spec.space;
  const bool takes = !arguments.worker.empty();
  auto folder = results::RunFolder::open(
      arguments.folder, {.run_yaml = spec.resolved,
                         .spec_hash = spec.digest,
                         .shard = shard,
                         .positions = space.size(),
                         .sharing = takes ? results::Sharing::taken : results::Sharing::fixed,
                         .point_budget = arguments.point_budget});
  if (!folder) {
    print(stderr, "{}", engine::to_text(folder.mistakes()));
    return kMistake;
  }
  for (const std::string& notice : folder->notices()) print(stderr, "note: {}\n", notice);
  print_notes(stderr, spec.notes);
  print_notes(stderr, device_notes(space));

  std::unique_ptr<results::Archive> archive;
  if (!arguments.reuse.empty()) {
    auto opened = results::Archive::open(arguments.reuse);
    if (!opened) {
      print(stderr, "{}", engine::to_text(opened.mistakes()));
      return kMistake;
    }
    archive = std::move(opened).value();
  }

  // From here on Ctrl-C keeps what is done, which a program that waits for the line below may rely on.
  sweep::StopSignal stop;
  const sweep::StopOnSignals stop_on_signals(stop);
  const Work work = takes ? taken_work(*folder) : fixed_work(*folder);
  print("{}: {}{}\n", arguments.folder, work.text,
        work.before > 0 ? fmt::format(", {} already done", grouped(work.before)) : "");
  std::fflush(stdout);

  sweep::Progress progress;
  sweep::RunReport report;
  const auto start = std::chrono::steady_clock::now();
  {
    results::ParquetSink sink(*folder, results::schema_inputs(space));
    std::optional<ProgressDisplay> display;
    if (!arguments.quiet) display.emplace(progress, work.before, work.expected);
    report = sweep::run_points(space, work.supply, sink,
                               {.resources = spec.resources.get(),
                                .threads = arguments.threads,
                                .archive = archive.get(),
                                .point_budget = arguments.point_budget},
                               stop, progress);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (archive != nullptr) {
    for (const std::string& notice : archive->notices()) print(stderr, "note: {}\n", notice);
    if (report.tally.reused == 0 && report.tally.rows() > 0) {
      print(
          stderr,
          "note: {} has none of these points, so all were computed: a point is the same where all "
          "its settings and the model version are\n",
          arguments.reuse);
    }
  }
  print("{} in {} ({:.3g} positions/s)\n", counted(report.tally.rows(), "row"),
        duration(taken.count()), double(report.tally.positions()) / taken.count());
  // Counts over the whole folder: what this call did, and what was there before it.
  sweep::Tally all = folder->tally();
  all.add(report.tally);
  return say_how_it_ended(arguments, spec, report, all);
}

int run(RunArguments arguments) {
  const bool takes = !arguments.worker.empty();
  const std::string& which = takes ? arguments.worker : arguments.shard;
  const auto shard = parse_shard(which);
  if (!shard) {
    print(stderr,
          "error: --{0}: '{1}' is not a {0}\n  hint: write K/N with 1 <= K <= N, as in 2/8; N is "
          "at most {2}\n",
          takes ? "worker" : "shard", which, grouped(kMostShards));
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
  if (arguments.quiet) silence(stdout);
  try {
    const int ended = run_into_folder(arguments, *shard, *spec);
    if (takes && ended == kOk) say_what_the_dead_hold(arguments.folder);
    return ended;
  } catch (const results::FailsAgain& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
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
      "over every point that is the same. Shards and workers share a folder, from any number of "
      "machines.\n\n"
      "  llmsweep run sweep.yaml -o runs/night --shard 1/4      one of four jobs\n"
      "  llmsweep run wider.yaml -o runs/wider --reuse runs/night");
  verb->add_option("spec", arguments->spec, "the sweep")->required()->type_name("SPEC");
  verb->add_option("-o,--output", arguments->folder, "run folder (default: runs/NAME of the spec)")
      ->check(not_empty())
      ->type_name("DIR");
  verb->add_option("-j,--threads", arguments->threads, "threads to use (default: one per core)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  CLI::Option* fixed = verb->add_option("--shard", arguments->shard,
                                        "run only the K-th of N fixed, equal shares of the sweep")
                           ->type_name("K/N");
  verb->add_option("--worker", arguments->worker,
                   "run as worker K of N that share the sweep: each takes the next piece when it "
                   "is done with one")
      ->type_name("K/N")
      ->excludes(fixed);
  verb->add_option("--reuse", arguments->reuse, "run folder whose finished points are taken over")
      ->check(not_empty())
      ->type_name("DIR");
  verb->add_option("--limit", arguments->limit,
                   "most positions to run (default: the spec's, or 20,000,000)")
      ->transform(whole_above_zero())
      ->type_name("N");
  verb->add_option("--point-budget", arguments->point_budget,
                   "units of work after which a point is given up, as a row with status 'failed'; "
                   "the default is minutes of one core (2e9). A later run with more does such "
                   "points again")
      ->check(above_zero())
      ->type_name("N");
  verb->add_flag("-q,--quiet", arguments->quiet,
                 "no progress and no summary; what one has to know is said all the same");
  verb->add_flag("--dry-run", arguments->dry_run, "only say what would run, as 'check' does");
  verb->callback([arguments, &exit_code, verb, program] {
    arguments->command = given_command(program, *verb);
    exit_code = run(*arguments);
  });
}

}  // namespace tools
