#include "tools/compare/baseline.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/replaced_folder.h"
#include "results/run_folder.h"
#include "results/run_manifests.h"
#include "results/verify.h"
#include "results/writers.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Mistake;

std::vector<Mistake> check_accepted(const std::string& run) {
  const auto report = results::verify_run(run);
  if (!report) return report.mistakes();
  if (!report->sound()) {
    return {
        {{.file = run}, report->damage.front(), "a baseline is whole: repair and run it again"}};
  }
  if (report->done != report->positions) {
    return {{{.file = run},
             "the run is not finished, so it cannot be a baseline",
             "run the same 'llmsweep run' again to go on"}};
  }
  return {};
}

bool is_free(const fs::path& place) {
  return !fs::exists(place) || (fs::is_directory(place) && fs::is_empty(place));
}

std::vector<Mistake> check_place(const fs::path& baseline) {
  const auto known =
      results::read_again_if_replaced(baseline, [&] { return results::summarise(baseline); });
  if (!known) {
    return {{{.file = baseline.string()},
             "there is something else than a run in the place of the baseline",
             "name a run folder, or one that is not there yet"}};
  }
  // A baseline is complete, so this is none. It may be being written at this moment.
  if (!known->complete()) {
    return {{{.file = baseline.string()},
             "the run in the place of the baseline is not finished, and would be lost",
             "finish it, or remove the folder"}};
  }
  return {};
}

// The process that was waited for may have put another folder in this one's place, and its lock went with it.
bool is_lock_at(const results::FileHandle& lock, const fs::path& path) {
  struct stat held {
  }, there{};
  return ::fstat(lock.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

// As long as this lives, no other process opens, writes or replaces the run.
struct HeldRun {
  results::FileHandle folder;
  std::vector<results::FileHandle> shards;
};

// Nothing to hold where there is no run yet.
engine::Result<HeldRun> hold(const fs::path& baseline) {
  HeldRun held;
  if (is_free(baseline)) return held;
  // Before a file is made in it: it may be no run at all.
  if (auto mistakes = check_place(baseline); !mistakes.empty()) return mistakes;
  const fs::path lock = results::folder_lock(baseline);
  do {
    held.folder = results::wait_for_lock(lock);
  } while (!is_lock_at(held.folder, lock));
  if (auto mistakes = check_place(baseline); !mistakes.empty()) return mistakes;
  auto shards = results::lock_writers(baseline);
  if (!shards) return shards.mistakes();
  held.shards = std::move(shards).value();
  return held;
}

// Only what the manifests name: no locks, no leavings.
void copy_run(const fs::path& run, const fs::path& copy) {
  const auto take = [&](const std::string& name) {
    const auto bytes = results::read_file(run / name);
    if (!bytes) throw results::Failure("cannot read " + (run / name).string());
    results::write_durably(copy / name, *bytes);
  };
  results::make_folders(copy);
  take(results::kRunYaml);
  for (const results::ShardManifest& shard : results::read_run(run)) {
    for (const results::PartRecord& part : shard.manifest.parts) {
      for (const results::PartFile& file : part.files) {
        if (file.name.empty()) continue;
        results::make_folders((copy / file.name).parent_path());
        take(file.name);
      }
    }
    take(results::manifest_name(shard.shard));
  }
}

// Swaps the two names at once where the file system can, else one after the other.
void put_in_place(const fs::path& copy, const fs::path& baseline) {
  if (!fs::exists(baseline)) {
    fs::rename(copy, baseline);
    return;
  }
  if (renameat2(AT_FDCWD, copy.c_str(), AT_FDCWD, baseline.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path aside = copy.string() + ".old";
    fs::rename(baseline, aside);
    fs::rename(copy, baseline);
    fs::rename(aside, copy);
  }
  fs::remove_all(copy);
}

}  // namespace

std::vector<Mistake> accept_baseline(const std::string& baseline, const std::string& run) {
  // A name that ends in '/' has no last part; a link stays one, and what it points to changes.
  const fs::path place = fs::weakly_canonical(baseline);
  try {
    if (auto mistakes = check_accepted(run); !mistakes.empty()) return mistakes;
    if (fs::exists(place) && fs::equivalent(run, place)) return {};
    const auto held = hold(place);
    if (!held) return held.mistakes();
    const fs::path copy = place.parent_path() /
                          ("." + place.filename().string() + ".new-" + std::to_string(getpid()));
    fs::remove_all(copy);
    copy_run(run, copy);
    put_in_place(copy, place);
    results::sync_folder(place.parent_path());
  } catch (const fs::filesystem_error& error) {
    throw results::Failure(error.what());
  }
  return {};
}

}  // namespace tools
