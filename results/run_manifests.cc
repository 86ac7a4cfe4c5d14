#include "results/run_manifests.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "results/compaction.h"
#include "results/durable_file.h"
#include "results/failure.h"

namespace results {
namespace {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator begin(folder, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  // A folder that cannot be listed may hold anything, and must not be taken for empty.
  if (error) throw Failure("cannot list " + folder.string() + ": " + error.message());
  return {begin, fs::directory_iterator()};
}

// "prefix2of3suffix..." -> 2of3
std::optional<Shard> shard_in_name(std::string_view name, std::string_view prefix, char after) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return shard_from_text(name.substr(0, name.find(after)));
}

std::set<Shard> shards_of(const fs::path& run) {
  std::set<Shard> found;
  for (const auto& entry : entries_of(run)) {
    const auto shard = shard_in_name(entry.path().filename().string(), "manifest-", '.');
    if (shard) found.insert(*shard);
  }
  for (const Table table : kDetailsFirst) {
    for (const auto& entry : entries_of(folder_of(run, table))) {
      const auto shard = shard_in_name(entry.path().filename().string(), "part-", '-');
      if (shard) found.insert(*shard);
    }
  }
  return found;
}

[[noreturn]] void fail(const fs::path& run, const ShardManifest& found) {
  const Manifest& manifest = found.manifest;
  if (manifest.newer_format > 0) {
    throw FailsAgain(fmt::format("{} was written by a newer version of the program",
                                 (run / manifest_name(found.shard)).string()),
                     "use that version, or choose a new folder with -o DIR");
  }
  const std::size_t others = manifest.damage.size() - 1;
  throw FailsAgain(
      fmt::format("{}{}", (run / to_text(found.shard, manifest.damage.front())).string(),
                  others > 0 ? fmt::format(" (and {} more)", others) : ""),
      fmt::format("nothing was changed; 'llmsweep verify {}' says what is damaged, and with "
                  "--repair drops it, so that the next run computes it again",
                  run.string()));
}

}  // namespace

std::optional<engine::Mistake> no_folder(const fs::path& run) {
  std::error_code ignored;
  const fs::file_type type = fs::status(run, ignored).type();
  if (type == fs::file_type::not_found) {
    return mistake(run, "there is no such folder", "give the folder of `run -o DIR`");
  }
  // What cannot be asked is for the disk to refuse, when it is listed.
  if (type == fs::file_type::directory || type == fs::file_type::none) return std::nullopt;
  return mistake(run, "this is not a folder", "name the run folder, not a file in it");
}

engine::Mistake no_manifest(const fs::path& run) {
  return mistake(run, "not a run folder: it has no manifest", "give the folder of `run -o DIR`");
}

fs::path folder_of(const fs::path& run, Table table) { return run / engine::name_of(table); }
fs::path folder_lock(const fs::path& run) { return run / ".run.lock"; }
fs::path shard_lock(const fs::path& run, const Shard& shard) {
  return run / ("." + manifest_name(shard) + ".lock");
}

std::vector<ShardManifest> inspect_run(const fs::path& run) {
  if (is_between_parts(run)) {
    throw FailsAgain(
        run.string() + ": its parts are being exchanged for larger ones",
        fmt::format("if nobody does that now, it was interrupted: 'llmsweep finish {}' "
                    "does the rest",
                    run.string()));
  }
  std::vector<ShardManifest> manifests;
  for (const Shard& shard : shards_of(run)) {
    std::optional<Manifest> manifest = inspect_manifest(run / manifest_name(shard));
    if (!manifest) {
      manifest.emplace();
      manifest->damage.push_back({0, "the manifest is missing, though there are parts"});
    }
    manifests.push_back({shard, std::move(*manifest)});
  }
  check_claims(manifests);
  return manifests;
}

std::vector<ShardManifest> read_run(const fs::path& run) {
  std::vector<ShardManifest> manifests = inspect_run(run);
  for (const ShardManifest& found : manifests) {
    if (found.manifest.newer_format > 0 || !found.manifest.damage.empty()) fail(run, found);
  }
  return manifests;
}

std::optional<ShardManifest> read_shard(const fs::path& run, const Shard& shard) {
  std::optional<Manifest> manifest = inspect_manifest(run / manifest_name(shard));
  if (!manifest) return std::nullopt;
  std::vector<ShardManifest> found;
  found.push_back({shard, std::move(*manifest)});
  check_claims(found);
  if (found[0].manifest.newer_format > 0 || !found[0].manifest.damage.empty()) fail(run, found[0]);
  return std::move(found[0]);
}

std::optional<ShardManifest> read_any_shard(const fs::path& run) {
  for (const auto& entry : entries_of(run)) {
    const auto shard = shard_in_name(entry.path().filename().string(), "manifest-", '.');
    if (shard) return read_shard(run, *shard);
  }
  return std::nullopt;
}

std::string to_text(const Shard& shard, const Damage& damage) {
  const std::string line = damage.line > 0 ? fmt::format(":{}", damage.line) : "";
  return fmt::format("{}{}: {}", manifest_name(shard), line, damage.what);
}

void rewrite_manifest(const fs::path& run, const Shard& shard, Manifest& manifest) {
  std::string text = to_line(*manifest.header);
  manifest.lines.clear();
  for (const PartRecord& part : manifest.parts) {
    text += to_line(part);
    manifest.lines.push_back(int(manifest.lines.size()) + 2);
  }
  write_durably(run / manifest_name(shard), text);
  manifest.intact_bytes = text.size();
  manifest.torn = false;
  manifest.damage.clear();
}

std::vector<fs::path> unnamed_files(const fs::path& run, const Shard& shard,
                                    const Manifest& manifest) {
  std::set<std::string> named;
  for (const PartRecord& part : manifest.parts) {
    for (const PartFile& file : part.files) named.insert(file.name);
  }
  std::vector<fs::path> unnamed;
  for (const Table table : kDetailsFirst) {
    for (const auto& entry : entries_of(folder_of(run, table))) {
      const std::string name = entry.path().filename().string();
      const bool hidden = shard_in_name(name, ".part-", '-') == shard;
      const bool visible = shard_in_name(name, "part-", '-') == shard;
      if (hidden ||
          (visible && !named.contains(fmt::format("{}/{}", engine::name_of(table), name)))) {
        unnamed.push_back(entry.path());
      }
    }
  }
  for (const auto& entry : entries_of(run)) {
    if (is_hidden_name(entry.path().filename().string(), manifest_name(shard))) {
      unnamed.push_back(entry.path());
    }
  }
  return unnamed;
}

std::vector<std::string> foreign_files(const fs::path& run) {
  std::vector<std::string> foreign;
  for (const Table table : kDetailsFirst) {
    for (const auto& entry : entries_of(folder_of(run, table))) {
      const std::string name = entry.path().filename().string();
      // Readers of a folder pass over names that begin so.
      if (name.starts_with('.') || name.starts_with('_')) continue;
      if (shard_in_name(name, "part-", '-')) continue;
      foreign.push_back(fmt::format("{}/{}", engine::name_of(table), name));
    }
  }
  std::ranges::sort(foreign);
  return foreign;
}

}  // namespace results
