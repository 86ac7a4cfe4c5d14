#include "results/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "results/checked_file.h"
#include "results/claims.h"
#include "results/durable_file.h"
#include "results/failure.h"
#include "results/reader.h"
#include "results/run_manifests.h"
#include "results/seal.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using engine::Mistake;

class Verification {
 public:
  explicit Verification(const fs::path& run) : run_(run), manifests_(inspect_run(run)) {}

  std::optional<Mistake> refusal() const {
    if (manifests_.empty()) return no_manifest(run_);
    for (const ShardManifest& found : manifests_) {
      if (found.manifest.newer_format == 0) continue;
      return mistake(run_,
                     manifest_name(found.shard) + " was written by a newer version of the program",
                     "use that version");
    }
    return std::nullopt;
  }

  // Takes damaged parts out of the manifests.
  void check() {
    check_run_yaml();
    for (ShardManifest& found : manifests_) check_shard(found);
    if (report_.positions > 0) {
      for (std::string& damage : damaged_claims(run_, report_.positions)) {
        report_.damage.push_back(std::move(damage));
      }
    }
    std::vector<std::string> foreign = foreign_files(run_);
    // A run that has every row is writing no other: what looks like a part of it has rows that are there already.
    const bool whole = report_.damage.empty() && report_.done == report_.positions;
    for (const fs::path& part : unnamed_parts_) {
      if (whole) foreign.push_back(part.lexically_relative(run_).generic_string());
    }
    for (const std::string& file : foreign) {
      report_.foreign.push_back(
          file + " is no part of the run; who reads the folder as a table reads it, too");
    }
  }

  const std::vector<ShardManifest>& manifests() const { return manifests_; }
  VerifyReport& report() { return report_; }

  void repair() {
    // The text first: it is taken from a part, and none of those that are sound goes.
    if (!yaml_sound_) restore_run_yaml();
    for (ShardManifest* found : changed_) repair_shard(*found);
    // Workers take what is done from there.
    forget_claims(run_);
  }

 private:
  void check_run_yaml() {
    const std::optional<std::string> text = read_file(run_ / kRunYaml);
    yaml_sound_ = text && unsealed_text(*text).has_value();
    if (!yaml_sound_ && text && old_format()) yaml_sound_ = true;
    if (yaml_sound_) return;
    report_.damage.push_back(!text ? "run.yaml is missing"
                                   : "run.yaml is damaged: its checksum does not hold");
  }

  // Runs of earlier versions have a run.yaml without checksum.
  bool old_format() const {
    return std::ranges::any_of(
        manifests_, [](const ShardManifest& found) { return found.manifest.format == 1; });
  }

  void check_shard(ShardManifest& found) {
    Manifest& manifest = found.manifest;
    ++report_.manifests;
    const std::size_t damaged_lines = std::size_t(std::ranges::count_if(
        manifest.damage, [](const Damage& damage) { return damage.line > 1; }));
    report_.parts += manifest.parts.size() + damaged_lines;
    report_.damaged += damaged_lines;
    for (const Damage& damage : manifest.damage) {
      report_.damage.push_back(to_text(found.shard, damage));
    }
    if (manifest.header) report_.positions = manifest.header->positions;
    const std::size_t lost =
        std::erase_if(manifest.parts, [this](const PartRecord& part) { return is_damaged(part); });
    report_.damaged += lost;
    if (lost > 0 || !manifest.damage.empty()) changed_.push_back(&found);
    if (manifest.torn) {
      report_.notices.push_back(
          manifest_name(found.shard) +
          " ends in half a line, as after a kill: the next run goes on there");
    }
    // A line that is damaged may have named them.
    std::size_t unnamed = 0;
    for (const fs::path& file : unnamed_files(run_, found.shard, manifest)) {
      ++unnamed;
      if (!file.filename().string().starts_with('.')) unnamed_parts_.push_back(file);
    }
    if (unnamed > 0 && manifest.damage.empty() && lost == 0) {
      report_.notices.push_back(fmt::format(
          "{} unfinished file(s) of shard {}: of a run that goes on or was killed; the next run "
          "replaces them",
          unnamed, to_text(found.shard)));
    }
  }

  // All files are looked at, so that each one that is damaged is named.
  bool is_damaged(const PartRecord& part) {
    bool sound = true;
    for (const PartFile& file : part.files) {
      std::string trouble = trouble_with(run_, file, Look::contents);
      report_.bytes += file.bytes;
      if (trouble.empty()) continue;
      sound = false;
      report_.damage.push_back(std::move(trouble));
    }
    if (!sound) return true;
    for (const PartFile& file : part.files) report_.rows += file.rows;
    for (const sweep::IndexRange& range : part.positions) {
      report_.done += range.end - range.begin;
    }
    return false;
  }

  // Some file whose contents are sound; every one says what run it belongs to.
  std::optional<ParquetReader> sound_file() const {
    for (const ShardManifest& found : manifests_) {
      for (const PartRecord& part : found.manifest.parts) {
        for (const PartFile& file : part.files) {
          if (!file.name.empty()) return ParquetReader(run_ / file.name);
        }
      }
    }
    return std::nullopt;
  }

  void restore_run_yaml() {
    const std::optional<ParquetReader> file = sound_file();
    if (file) write_durably(run_ / kRunYaml, sealed_text(file->metadata("llmsweep.run_yaml")));
  }

  std::optional<ManifestHeader> header_for(const Shard& shard) const {
    for (const ShardManifest& found : manifests_) {
      if (!found.manifest.header) continue;
      ManifestHeader header = *found.manifest.header;
      header.shard = shard;
      return header;
    }
    const std::optional<ParquetReader> file = sound_file();
    if (!file || file->metadata("llmsweep.spec_hash").empty()) return std::nullopt;
    return ManifestHeader{.spec_hash = file->metadata("llmsweep.spec_hash"),
                          .program_version = file->metadata("llmsweep.program_version"),
                          .program_commit = file->metadata("llmsweep.program_commit"),
                          .model_version = std::stoll(file->metadata("llmsweep.model_version")),
                          .shard = shard,
                          .positions = std::stoull(file->metadata("llmsweep.positions"))};
  }

  // The manifest first: should this be interrupted, the files it no longer names go next time.
  void repair_shard(ShardManifest& found) {
    Manifest& manifest = found.manifest;
    if (!manifest.header) manifest.header = header_for(found.shard);
    if (manifest.header) {
      rewrite_manifest(run_, found.shard, manifest);
    } else {
      fs::remove(run_ / manifest_name(found.shard));
    }
    for (const fs::path& file : unnamed_files(run_, found.shard, manifest)) fs::remove(file);
  }

  const fs::path run_;
  std::vector<ShardManifest> manifests_;
  std::vector<fs::path> unnamed_parts_;  // with names of parts, that no manifest names
  std::vector<ShardManifest*> changed_;  // those of manifests_ that name damaged parts
  bool yaml_sound_ = true;
  VerifyReport report_;
};

// The locks of all shards, or nothing where one of them is being written.
std::optional<std::vector<FileHandle>> lock_all(const fs::path& run,
                                                const std::vector<ShardManifest>& manifests) {
  std::vector<FileHandle> locks;
  for (const ShardManifest& found : manifests) {
    auto lock = try_lock(shard_lock(run, found.shard));
    if (!lock) return std::nullopt;
    locks.push_back(std::move(*lock));
  }
  return locks;
}

}  // namespace

engine::Result<VerifyReport> verify_run(const fs::path& run) {
  if (auto wrong = no_folder(run)) return *wrong;
  Verification verification(run);
  if (auto wrong = verification.refusal()) return *wrong;
  verification.check();
  return std::move(verification.report());
}

engine::Result<VerifyReport> repair_run(const fs::path& run) {
  if (auto wrong = no_folder(run)) return *wrong;
  // Only now is anything written, be it a lock: a folder that is no run stays as it is.
  if (auto wrong = Verification(run).refusal()) return *wrong;
  try {
    const FileHandle alone = wait_for_lock(folder_lock(run));
    Verification verification(run);
    const auto locks = lock_all(run, verification.manifests());
    if (!locks) {
      return mistake(run, "another process is writing this run",
                     "wait for it or stop it, then repair");
    }
    verification.check();
    verification.repair();
    return std::move(verification.report());
  } catch (const fs::filesystem_error& problem) {
    throw Failure(problem.what());
  }
}

}  // namespace results
