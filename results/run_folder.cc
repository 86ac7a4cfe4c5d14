#include "results/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "engine/base/version.h"
#include "engine/base/work_meter.h"
#include "results/checked_file.h"
#include "results/claims.h"
#include "results/compaction.h"
#include "results/durable_file.h"
#include "results/failure.h"
#include "results/measured.h"
#include "results/reader.h"
#include "results/run_manifests.h"
#include "results/seal.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using engine::Mistake;

// The other tables get their folders with their first rows.
constexpr Table kAlwaysThere[] = {Table::points, table_named("kernels")};

// The first lines in which two texts differ: of what decides the points where they differ there, not of what comes before it.
std::string first_difference(const std::string& before, const std::string& now) {
  const auto line_at = [](const std::string& text, std::size_t& at) {
    if (at >= text.size()) return std::string("(end)");
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    return line;
  };
  const auto base_of = [](const std::string& text) {
    const std::size_t base = text.find("\nbase:");
    return base == std::string::npos ? 0 : base + 1;
  };
  std::size_t a = base_of(before);
  std::size_t b = base_of(now);
  if (before.substr(a) == now.substr(b)) a = b = 0;
  for (auto number = 1 + std::count(before.begin(), before.begin() + std::ptrdiff_t(a), '\n');
       a < before.size() || b < now.size(); ++number) {
    const std::string was = line_at(before, a);
    const std::string is = line_at(now, b);
    if (was != is) return fmt::format("line {} was '{}' and is '{}'", number, was, is);
  }
  return "the text is the same";
}

// Finds that a path is no run folder and cannot become one. Nothing is written before.
std::optional<Mistake> not_for_a_run(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    return mistake(folder, "is a file, not a folder", "choose another one with -o DIR");
  }
  const auto visible = [](const fs::directory_entry& entry) {
    return !entry.path().filename().string().starts_with(".");
  };
  // What is there first, run.yaml second: a shard that starts at this moment makes run.yaml before
  // anything else that can be seen.
  const fs::directory_iterator begin(folder, error);
  if (error || std::none_of(begin, fs::directory_iterator(), visible)) return std::nullopt;
  if (file_length(folder / kRunYaml)) return std::nullopt;
  // A run that has lost its run.yaml gets it again, once its manifests say that it is the same run.
  if (!inspect_run(folder).empty()) return std::nullopt;
  return mistake(folder, "the folder is not empty and not a run folder (it has no run.yaml)",
                 "choose another one with -o DIR");
}

// How many points of a part were given up with less work than this run allows. Reasons name budgets to six digits.
std::uint64_t given_up_too_soon(const fs::path& folder, const PartRecord& part, double budget) {
  const bool any = part.tally.by_class[std::size_t(engine::ReasonClass::budget)] > 0;
  if (!any || budget <= 0) return 0;
  const ParquetReader points(folder / part.files[Table::points].name);
  return std::uint64_t(std::ranges::count_if(points.texts("reason"), [budget](const auto& reason) {
    const double given = engine::budget_given_up(reason.value_or(""));
    return given > 0 && budget > given * (1 + 1e-5);
  }));
}

}  // namespace

struct RunFolder::State {
  fs::path folder;
  RunIdentity identity;
  FileHandle lock;
  std::optional<LineLog> log;
  std::uint64_t next_sequence = 0;
  sweep::IndexSet done;
  sweep::Tally tally;
  std::vector<std::string> notices;
  bool same_sharing = true;  // work is split in the same way as by earlier workers

  std::optional<Mistake> open();
  std::optional<Mistake> check_header(const ManifestHeader& header) const;
  void write_run_yaml(bool first);
  void note_other_builds(const Shard& shard, const ManifestHeader& header);
  std::optional<Mistake> take_shard(const Shard& shard, Manifest& manifest);
  std::optional<Mistake> open_among_others();
  std::optional<Mistake> open_among_workers();
  void repair(const Shard& shard, Manifest& manifest);
  void start_log(Manifest& manifest);
};

std::optional<Mistake> RunFolder::State::check_header(const ManifestHeader& header) const {
  if (header.model_version != engine::kModelVersion) {
    return mistake(folder,
                   fmt::format("the run was made with model version {}, this program has {}",
                               header.model_version, engine::kModelVersion),
                   "choose a new folder with -o DIR: figures of two versions do not mix");
  }
  if (is_measured(header.spec_hash) != is_measured(identity.spec_hash)) {
    return mistake(folder,
                   is_measured(header.spec_hash) ? "the folder holds measured points"
                                                 : "the folder holds simulated points",
                   "choose a new folder with -o DIR: measured and simulated points do not mix");
  }
  if (header.spec_hash != identity.spec_hash || header.positions != identity.positions) {
    const std::string text = read_file(folder / kRunYaml).value_or("");
    return mistake(
        folder,
        fmt::format("the folder holds a run of another spec ({} positions, now {}); in run.yaml {}",
                    header.positions, identity.positions,
                    first_difference(unsealed_text(text).value_or(text), identity.run_yaml)),
        fmt::format("choose a new folder with -o DIR; --reuse {} takes over its finished points",
                    folder.string()));
  }
  return std::nullopt;
}

// Before the first manifest nothing depends on the text: a run that got no further may change it. Later the spec is known to be the same:
// a text that differs names files where they lie now.
void RunFolder::State::write_run_yaml(bool first) {
  remove_left_over(folder / kRunYaml);
  const std::optional<std::string> found = unsealed_text(read_file(folder / kRunYaml).value_or(""));
  if (found && *found == identity.run_yaml) return;
  write_durably(folder / kRunYaml, sealed_text(identity.run_yaml));
  if (!first && !found) notices.push_back("run.yaml was missing or damaged, and was written again");
}

// Drops parts that are gone, cut short, or have points that may do better now, and deletes what a kill left of this shard.
void RunFolder::State::repair(const Shard& shard, Manifest& manifest) {
  std::vector<fs::path> outdated;
  const std::size_t lost = std::erase_if(manifest.parts, [&](const PartRecord& part) {
    const std::string trouble = trouble_with(folder, part, Look::length);
    if (!trouble.empty()) {
      notices.push_back(trouble + ": its points are done again");
      return true;
    }
    const std::uint64_t given_up = given_up_too_soon(folder, part, identity.point_budget);
    if (given_up == 0) return false;
    notices.push_back(
        fmt::format("{}: {} of its {} points were given up with a smaller --point-budget: they are "
                    "done again, with those beside them",
                    part.files[Table::points].name, given_up, part.files[Table::points].rows));
    for (const PartFile& file : part.files) {
      if (!file.name.empty()) outdated.push_back(folder / file.name);
    }
    return true;
  });
  if (lost > 0) rewrite_manifest(folder, shard, manifest);
  for (const fs::path& file : outdated) fs::remove(file);
  const std::vector<fs::path> unfinished = unnamed_files(folder, shard, manifest);
  for (const fs::path& file : unfinished) fs::remove(file);
  if (!unfinished.empty()) {
    notices.push_back(fmt::format("removed {} unfinished file(s) of shard {}", unfinished.size(),
                                  to_text(shard)));
  }
}

void RunFolder::State::note_other_builds(const Shard& shard, const ManifestHeader& header) {
  if (header.program_version != engine::program_version()) {
    notices.push_back(fmt::format("shard {} was begun by version {} of the program", to_text(shard),
                                  header.program_version));
  } else if (!header.program_commit.empty() && header.program_commit != engine::program_commit()) {
    notices.push_back(
        fmt::format("shard {} was begun by another build of the program (commit {}, now {}); its "
                    "rows stay as they are",
                    to_text(shard), header.program_commit, engine::program_commit()));
  }
}

// Takes over what a shard has done. Leftovers are cleared of this shard and of shards of another
// split, which must be dead; those of this split clear their own when they start, which may be at this
// very moment. Fixed and taken shares are two splits, however many shards there are.
std::optional<Mistake> RunFolder::State::take_shard(const Shard& shard, Manifest& manifest) {
  const bool own = shard == identity.shard;
  std::optional<FileHandle> other_lock;
  if (!own && (shard.count != identity.shard.count || !same_sharing)) {
    other_lock = try_lock(shard_lock(folder, shard));
    if (!other_lock) {
      return mistake(folder,
                     fmt::format("another process is writing shard {}/{} of this run", shard.number,
                                 shard.count),
                     "wait for it, or split the run in the same way");
    }
  }
  if (manifest.header) note_other_builds(shard, *manifest.header);
  // The numbers of lost parts are not used again either.
  if (own && !manifest.parts.empty()) next_sequence = manifest.parts.back().sequence + 1;
  if (own || other_lock) repair(shard, manifest);
  for (const PartRecord& part : manifest.parts) {
    for (const sweep::IndexRange& range : part.positions) done.add(range);
    tally.add(part.tally);
    if (own) next_sequence = std::max(next_sequence, part.sequence + 1);
  }
  if (own) start_log(manifest);
  return std::nullopt;
}

void RunFolder::State::start_log(Manifest& manifest) {
  if (!manifest.header) {
    manifest.header = {.spec_hash = identity.spec_hash,
                       .program_version = std::string(engine::program_version()),
                       .program_commit = std::string(engine::program_commit()),
                       .model_version = engine::kModelVersion,
                       .shard = identity.shard,
                       .positions = identity.positions};
    rewrite_manifest(folder, identity.shard, manifest);
  }
  log.emplace(folder / manifest_name(identity.shard), manifest.intact_bytes);
}

std::optional<Mistake> RunFolder::State::open() {
  if (auto wrong = not_for_a_run(folder)) return wrong;
  make_folders(folder);
  const FileHandle alone = wait_for_lock(folder_lock(folder));
  if (is_between_parts(folder)) finish_exchange(folder);
  auto own_lock = try_lock(shard_lock(folder, identity.shard));
  if (!own_lock) {
    return mistake(folder, "another process is writing this shard of the run",
                   "wait for it, or choose another folder with -o DIR");
  }
  lock = std::move(*own_lock);
  const bool joins = identity.sharing == Sharing::taken && has_claims(folder, identity.shard.count);
  return joins ? open_among_workers() : open_among_others();
}

// What is done is what all manifests say.
std::optional<Mistake> RunFolder::State::open_among_others() {
  std::vector<ShardManifest> manifests = read_run(folder);
  for (const ShardManifest& found : manifests) {
    if (auto wrong = check_header(*found.manifest.header)) return wrong;
  }
  write_run_yaml(manifests.empty());
  for (const Table table : kAlwaysThere) make_folder(folder_of(folder, table));
  sync_folder(folder);
  same_sharing = identity.sharing == Sharing::fixed && !has_claims(folder, identity.shard.count);
  if (std::ranges::find(manifests, identity.shard, &ShardManifest::shard) == manifests.end()) {
    manifests.push_back({identity.shard, {}});
  }
  for (ShardManifest& found : manifests) {
    if (auto wrong = take_shard(found.shard, found.manifest)) return wrong;
  }
  // No other worker takes pieces now, and what was taken is known to be done or not.
  forget_claims(folder);
  if (identity.sharing == Sharing::taken) {
    start_claims(folder, identity.shard.count, identity.positions, done);
  }
  return std::nullopt;
}

// The first worker has looked at everything; those that join it need only what is their own. A thousand
// that start at once would else read a million manifests.
std::optional<Mistake> RunFolder::State::open_among_workers() {
  std::optional<ShardManifest> own = read_shard(folder, identity.shard);
  const std::optional<ShardManifest> some = own ? own : read_any_shard(folder);
  if (some) {
    if (auto wrong = check_header(*some->manifest.header)) return wrong;
  }
  const auto claims = read_claims(folder, identity.shard.count, identity.positions);
  if (claims) done = claims->done_before;
  Manifest nothing;
  return take_shard(identity.shard, own ? own->manifest : nothing);
}

engine::Result<RunFolder> RunFolder::open(const fs::path& folder, const RunIdentity& identity) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->identity = identity;
  try {
    if (auto wrong = state->open()) return *wrong;
  } catch (const fs::filesystem_error& problem) {
    throw Failure(problem.what());
  }
  return RunFolder(std::move(state));
}

RunFolder::RunFolder(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunFolder::~RunFolder() = default;
RunFolder::RunFolder(RunFolder&&) noexcept = default;
RunFolder& RunFolder::operator=(RunFolder&&) noexcept = default;

const fs::path& RunFolder::path() const { return state_->folder; }
const RunIdentity& RunFolder::identity() const { return state_->identity; }
const sweep::IndexSet& RunFolder::done() const { return state_->done; }
const sweep::Tally& RunFolder::tally() const { return state_->tally; }
const std::vector<std::string>& RunFolder::notices() const { return state_->notices; }
std::uint64_t RunFolder::next_sequence() { return state_->next_sequence++; }

void RunFolder::record(const std::vector<PartRecord>& parts) {
  std::string lines;
  for (const PartRecord& part : parts) lines += to_line(part);
  state_->log->append(lines);
}

engine::Result<RunSummary> summarise(const fs::path& folder) {
  if (auto wrong = no_folder(folder)) return *wrong;
  RunSummary summary;
  for (ShardManifest& found : read_run(folder)) {
    summary.shards.push_back(*found.manifest.header);
    summary.positions = found.manifest.header->positions;
    for (PartRecord& part : found.manifest.parts) {
      for (const sweep::IndexRange& range : part.positions) summary.done.add(range);
      summary.tally.add(part.tally);
      summary.parts.push_back(std::move(part));
    }
  }
  if (summary.shards.empty()) return no_manifest(folder);
  return summary;
}

std::string not_finished(const fs::path& folder, const RunSummary& known) {
  if (known.complete()) return "";
  return fmt::format("{} is not finished: {} of {} positions are done", folder.string(),
                     known.done.count(), known.positions);
}

Mistake without_points(const fs::path& folder, const RunSummary& known) {
  if (known.complete()) {
    return mistake(folder,
                   "the run is done and has no points: 'require' or 'when' rule out every position",
                   "'llmsweep check' of its sweep says how many each one rejects");
  }
  return mistake(folder,
                 fmt::format("the run has no points yet: {} of {} positions are done",
                             known.done.count(), known.positions),
                 "wait for it, or go on with it by the same 'llmsweep run'");
}

}  // namespace results
