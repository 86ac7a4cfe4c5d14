#include "results/compaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/version.h"
#include "results/checked_file.h"
#include "results/durable_file.h"
#include "results/failure.h"
#include "results/merged_table.h"
#include "results/run_folder.h"
#include "results/run_manifests.h"
#include "results/seal.h"
#include "results/writers.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using engine::Mistake;

fs::path new_folder(const fs::path& run) { return run / ".compacted"; }
fs::path mark(const fs::path& run) { return new_folder(run) / ".whole"; }

// Old parts that become one.
using Group = std::vector<const PartRecord*>;

std::uint64_t rows_of(const Group& group, Table table) {
  std::uint64_t rows = 0;
  for (const PartRecord* part : group) rows += part->files[table].rows;
  return rows;
}

bool can_be_joined(const fs::path& run, const Group& group, const PartRecord& part) {
  return std::ranges::all_of(kDetailsFirst, [&](Table table) {
    const std::string& name = part.files[table].name;
    if (name.empty()) return true;
    const auto with_rows = std::ranges::find_if(
        group, [table](const PartRecord* old) { return !old->files[table].name.empty(); });
    return with_rows == group.end() ||
           same_columns(run / (*with_rows)->files[table].name, run / name);
  });
}

// Parts in the order of their first positions, so that neighbours come together where they can.
std::vector<Group> groups_of(const fs::path& run, const std::vector<PartRecord>& parts,
                             const CompactionOptions& options) {
  std::vector<const PartRecord*> sorted;
  sorted.reserve(parts.size());
  for (const PartRecord& part : parts) sorted.push_back(&part);
  std::ranges::sort(sorted, {}, [](const PartRecord* part) { return part->positions.front(); });
  std::vector<Group> groups;
  for (const PartRecord* part : sorted) {
    const auto fits = [&](Table table) {
      const std::uint64_t most =
          table == Table::points ? options.points_per_part : options.details_per_part;
      return rows_of(groups.back(), table) + part->files[table].rows <= most;
    };
    const bool joins = !groups.empty() && std::ranges::all_of(kDetailsFirst, fits) &&
                       can_be_joined(run, groups.back(), *part);
    if (!joins) groups.emplace_back();
    groups.back().push_back(part);
  }
  return groups;
}

sweep::IndexSet positions_of(const Group& group) {
  sweep::IndexSet all;
  for (const PartRecord* part : group) {
    for (const sweep::IndexRange& range : part->positions) all.add(range);
  }
  return all;
}

// Writes the part that stands for a group. The run folder takes it as it takes any other.
void write_group(const fs::path& run, const Group& group, RunFolder& into) {
  PartRecord merged{.sequence = into.next_sequence()};
  merged.positions = positions_of(group).ranges();
  for (const PartRecord* part : group) merged.tally.add(part->tally);
  for (const Table table : kDetailsFirst) {
    std::vector<fs::path> files;
    for (const PartRecord* part : group) {
      if (!part->files[table].name.empty()) files.push_back(run / part->files[table].name);
    }
    if (files.empty()) continue;
    const FileBytes file = merged_table(files);
    merged.files[table] = {.name = part_name(table, into.identity().shard, merged.sequence),
                           .rows = rows_of(group, table),
                           .bytes = file.bytes.size(),
                           .checksum = checksum_of(file.bytes)};
    const fs::path place = into.path() / merged.files[table].name;
    make_folder(place.parent_path());
    write_durably(place, file.bytes);
    const std::string trouble = trouble_with(into.path(), merged.files[table], Look::contents);
    if (!trouble.empty()) throw Failure(trouble + " after it was written");
  }
  into.record({merged});
}

// What an earlier call has done is kept where it did the same groups.
bool same_groups(const std::vector<Group>& groups, const sweep::IndexSet& done) {
  return std::ranges::all_of(groups, [&done](const Group& group) {
    const sweep::IndexSet positions = positions_of(group);
    const std::uint64_t left = positions.minus(done).count();
    return left == 0 || left == positions.count();
  });
}

std::optional<Mistake> write_new_parts(const fs::path& run, const RunSummary& old,
                                       const std::vector<Group>& groups) {
  const std::optional<std::string> yaml = unsealed_text(read_file(run / kRunYaml).value_or(""));
  const RunIdentity identity{.run_yaml = yaml.value_or(""),
                             .spec_hash = old.shards.front().spec_hash,
                             .shard = {},
                             .positions = old.positions};
  auto opened = RunFolder::open(new_folder(run), identity);
  if (!opened || !same_groups(groups, opened->done())) {
    fs::remove_all(new_folder(run));
    opened = RunFolder::open(new_folder(run), identity);
    if (!opened) return opened.mistakes().front();
  }
  for (const Group& group : groups) {
    if (positions_of(group).minus(opened->done()).empty()) continue;
    write_group(run, group, *opened);
  }
  return std::nullopt;
}

engine::Result<CompactionReport> compact(const fs::path& run, const CompactionOptions& options) {
  const FileHandle alone = wait_for_lock(folder_lock(run));
  if (is_between_parts(run)) finish_exchange(run);
  const auto locks = lock_writers(run);
  if (!locks) return locks.mistakes();
  const auto old = summarise(run);
  if (!old) return old.mistakes();
  if (!old->complete()) return mistake(run, "the run is not complete", "finish it first");
  CompactionReport report{.parts_before = old->parts.size(), .parts_after = old->parts.size()};
  // The program that reads them may know other columns.
  const bool same_model = old->shards.front().model_version == engine::kModelVersion;
  const std::vector<Group> groups = groups_of(run, old->parts, options);
  if (!same_model || groups.size() * 2 > old->parts.size()) return report;
  if (auto wrong = write_new_parts(run, *old, groups)) return *wrong;
  write_durably(mark(run), "");
  finish_exchange(run);
  report.parts_after = groups.size();
  return report;
}

// Whatever has been done of it is found done.
void exchange_folder(const fs::path& run, Table table) {
  const fs::path fresh = folder_of(new_folder(run), table);
  const fs::path old = folder_of(run, table);
  if (!fs::exists(fresh)) return;
  if (fs::exists(old)) {
    fs::rename(old, new_folder(run) / fmt::format("old-{}", engine::name_of(table)));
  }
  fs::rename(fresh, old);
}

void exchange_manifests(const fs::path& run) {
  const fs::path fresh = new_folder(run) / manifest_name({});
  if (!fs::exists(fresh)) return;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("manifest-") || name.starts_with(".claims-") ||
        name.starts_with(".manifest-")) {
      old.push_back(entry.path());
    }
  }
  for (const fs::path& file : old) fs::remove(file);
  fs::rename(fresh, run / manifest_name({}));
}

}  // namespace

bool is_between_parts(const fs::path& run) {
  std::error_code ignored;
  return fs::exists(mark(run), ignored);
}

void finish_exchange(const fs::path& run) {
  for (const Table table : kDetailsFirst) exchange_folder(run, table);
  exchange_manifests(run);
  sync_folder(run);
  // The mark goes last: what is left without it is rubbish.
  for (const Table table : kDetailsFirst) {
    fs::remove_all(new_folder(run) / fmt::format("old-{}", engine::name_of(table)));
  }
  fs::remove(mark(run));
  fs::remove_all(new_folder(run));
}

void resume_exchange(const fs::path& run) {
  if (!is_between_parts(run)) return;
  const FileHandle alone = wait_for_lock(folder_lock(run));
  if (is_between_parts(run)) finish_exchange(run);
}

engine::Result<CompactionReport> compact_run(const fs::path& run,
                                             const CompactionOptions& options) {
  try {
    return compact(run, options);
  } catch (const fs::filesystem_error& problem) {
    throw Failure(problem.what());
  }
}

}  // namespace results
