// llmsweep status and finish: how far a run is, and whether it is whole.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "results/compaction.h"
#include "results/failure.h"
#include "results/text_table.h"
#include "results/verify.h"
#include "tools/cli/cli.h"
#include "tools/cli/shell_command.h"
#include "tools/query/answer.h"
#include "tools/status/run_status.h"
#include "tools/status/what_to_do.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

constexpr std::size_t kMostRanges = 8;
// A run may be split among a million. Beyond so many only those that wrote or write something are told.
constexpr std::size_t kMostIdle = 64;

bool is_idle(const ShardStatus& shard) {
  return shard.parts == 0 && shard.writer != results::Writer::alive;
}

const char* word_for(const RunStatus& run, const ShardStatus& shard) {
  // A worker is done when there is nothing left that it could take.
  if (shard.left() == 0 && run.untaken == 0) return "done";
  switch (shard.writer) {
    case results::Writer::alive:
      return "writing";
    case results::Writer::none:
      return shard.parts == 0 ? "not started" : "stopped or killed";
    case results::Writer::unknown:
      break;
  }
  return "unknown";
}

std::string ranges_text(const sweep::IndexSet& set) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostRanges, set.ranges().size()); ++i) {
    const sweep::IndexRange& range = set.ranges()[i];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", range.begin);
    if (range.end > range.begin + 1) text += fmt::format("-{}", range.end - 1);
  }
  const std::size_t more = set.ranges().size() - std::min(kMostRanges, set.ranges().size());
  return text + (more > 0 ? fmt::format(" and {} more ranges", more) : "");
}

std::vector<ShardStatus> shown_shards(const RunStatus& status) {
  std::vector<ShardStatus> shown = status.shards;
  if (shown.size() > kMostIdle) std::erase_if(shown, is_idle);
  return shown;
}

results::TextTable shard_table(const RunStatus& status, const std::vector<ShardStatus>& shards) {
  results::TextTable table;
  const auto column = [&](const char* name, auto cell) {
    results::TextColumn& cells = table.columns.emplace_back(name);
    for (const ShardStatus& shard : shards) cells.append(cell(shard));
  };
  column("shard",
         [](const auto& s) { return fmt::format("{}/{}", s.shard.number, s.shard.count); });
  column("positions", [](const auto& s) { return std::to_string(s.positions); });
  column("done", [](const auto& s) { return std::to_string(s.done); });
  column("parts", [](const auto& s) { return std::to_string(s.parts); });
  column("positions_per_s", [](const auto& s) {
    return s.positions_per_s > 0 ? fmt::format("{:.3g}", s.positions_per_s) : std::string();
  });
  column("last_part", [](const auto& s) {
    return s.parts == 0 ? std::string() : duration(s.seconds_since) + " ago";
  });
  column("writer", [&status](const auto& s) { return std::string(word_for(status, s)); });
  return table;
}

int print_status(const std::string& folder) {
  const auto status = run_status(folder);
  if (!status) {
    print(stderr, "{}", engine::to_text(status.mistakes()));
    return kMistake;
  }
  print("{}: {} of {} done ({:.1f}%), {}\n", folder, grouped(status->done.count()),
        counted(status->positions, "position"),
        100 * double(status->done.count()) / double(std::max<std::uint64_t>(status->positions, 1)),
        counted(status->rows, "row"));
  const std::vector<ShardStatus> shown = shown_shards(*status);
  print("{}", to_text(shard_table(*status, shown), AnswerFormat::text));
  if (const std::size_t idle = status->shards.size() - shown.size(); idle > 0) {
    print("and {} that have written nothing\n", grouped(idle));
  }
  if (status->is_complete()) return kOk;
  if (status->untaken > 0) print("waiting for a worker: {}\n", counted(status->untaken, "piece"));
  if (status->positions_per_s > 0) {
    print("{:.3g} positions/s, {} left\n", status->positions_per_s, duration(status->seconds_left));
  }
  print("{}", what_to_do(folder, *status));
  return kOk;
}

int join_parts(const std::string& folder) {
  const auto joined = results::compact_run(folder);
  if (!joined) {
    print(stderr, "{}", engine::to_text(joined.mistakes()));
    return kMistake;
  }
  if (joined->parts_after < joined->parts_before) {
    print("{} parts joined into {}\n", grouped(joined->parts_before), grouped(joined->parts_after));
  }
  return kOk;
}

struct FinishArguments {
  std::string folder;
  bool keep_parts = false;
};

int finish_run(const FinishArguments& arguments) {
  const std::string& folder = arguments.folder;
  results::resume_exchange(folder);
  const auto report = results::verify_run(folder);
  if (!report) {
    print(stderr, "{}", engine::to_text(report.mistakes()));
    return kMistake;
  }
  for (const std::string& damage : report->damage) {
    print(stderr, "{}: error: {}\n", folder, damage);
  }
  for (const std::string& foreign : report->foreign) {
    print(stderr, "{}: error: {}\n  hint: move it to another place\n", folder, foreign);
  }
  if (!report->damage.empty()) {
    print(stderr, "  hint: 'llmsweep verify {} --repair' drops it, and the next run computes it\n",
          shell_word(folder));
  }
  if (!report->sound()) return kFailure;
  const auto status = run_status(folder);
  if (!status) {
    print(stderr, "{}", engine::to_text(status.mistakes()));
    return kMistake;
  }
  if (!status->is_complete()) {
    const sweep::IndexSet missing = status->missing();
    print("{}: {} of {} missing: {}\n", folder, grouped(missing.count()),
          counted(status->positions, "position"), ranges_text(missing));
    print("{}", what_to_do(folder, *status));
    return kFailure;
  }
  print("{}: complete and sound: {}, {} in {}, {} read\n", folder,
        counted(status->positions, "position"), counted(report->rows, "row"),
        counted(report->parts, "part"), size_text(double(report->bytes)));
  return arguments.keep_parts ? int(kOk) : join_parts(folder);
}

// What the disk says no to is said here.
template <class Answer>
int guarded(Answer answer) {
  try {
    return answer();
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
}

void add_finish(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<FinishArguments>();
  CLI::App* verb =
      app.add_subcommand("finish", "Check that a run is whole, and join its parts to larger ones");
  verb->footer(
      "The last job of a campaign: reads every file, compares its checksum, says what is missing, "
      "and\n"
      "joins the many small parts of a run that is whole. The rows stay the same; a call that was "
      "killed\n"
      "is called again. Exit code 0: complete and sound; 1: not.");
  verb->add_option("folder", arguments->folder, "run folder")->required()->type_name("DIR");
  verb->add_flag("--keep-parts", arguments->keep_parts, "only check");
  verb->callback(
      [arguments, &exit_code] { exit_code = guarded([&] { return finish_run(*arguments); }); });
}

}  // namespace

void add_status(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("status", "How far a run is, shard by shard");
  verb->footer(
      "Reads the manifests only: what is done, how fast, how long it still takes, and which "
      "shards\n"
      "nobody works on, with the command that goes on. Changes nothing.");
  verb->add_option("folder", *folder, "run folder")->required()->type_name("DIR");
  verb->callback(
      [folder, &exit_code] { exit_code = guarded([&] { return print_status(*folder); }); });
  add_finish(app, exit_code);
}

}  // namespace tools
