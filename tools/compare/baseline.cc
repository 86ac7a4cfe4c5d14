#include "tools/compare/baseline.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/run_folder.h"
#include "results/run_manifests.h"
#include "results/verify.h"

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

std::vector<Mistake> check_place(const fs::path& baseline) {
  if (!fs::exists(baseline) || (fs::is_directory(baseline) && fs::is_empty(baseline))) return {};
  const auto known = results::summarise(baseline);
  if (!known) {
    return {{{.file = baseline.string()},
             "there is something else than a run in the place of the baseline",
             "name a run folder, or one that is not there yet"}};
  }
  // A baseline is whole, so this is none: somebody may be writing it at this moment.
  if (!known->complete()) {
    return {{{.file = baseline.string()},
             "the run in the place of the baseline is not finished, and would be lost",
             "finish it, or remove the folder"}};
  }
  return {};
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
    if (auto mistakes = check_place(place); !mistakes.empty()) return mistakes;
    if (fs::exists(place) && fs::equivalent(run, place)) return {};
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
