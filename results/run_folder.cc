#include "results/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "engine/base/version.h"
#include "results/durable_file.h"
#include "results/failure.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using engine::Mistake;

constexpr const char* kRunYaml = "run.yaml";
// The other tables get their folders with their first rows.
constexpr Table kAlwaysThere[] = {Table::points, Table::kernels};

fs::path folder_of(const fs::path& run, Table table) { return run / engine::name_of(table); }

Mistake mistake(const fs::path& folder, std::string what, std::string hint) {
  return {.where = {.file = folder.string()}, .what = std::move(what), .hint = std::move(hint)};
}

fs::path lock_path(const fs::path& folder, const Shard& shard) {
  return folder / ("." + manifest_name(shard) + ".lock");
}

// "prefix2of3suffix..." -> 2of3
std::optional<Shard> shard_in_name(std::string_view name, std::string_view prefix, char after) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return shard_from_text(name.substr(0, name.find(after)));
}

std::vector<Shard> shards_of(const fs::path& folder) {
  std::set<Shard> found;
  const auto look = [&found](const fs::path& where, std::initializer_list<const char*> prefixes,
                             char after) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(where, ignored)) {
      const std::string name = entry.path().filename().string();
      for (const char* prefix : prefixes) {
        if (const auto shard = shard_in_name(name, prefix, after)) found.insert(*shard);
      }
    }
  };
  look(folder, {"manifest-"}, '.');
  for (const Table table : kDetailsFirst) look(folder_of(folder, table), {"part-", ".part-"}, '-');
  return {found.begin(), found.end()};
}

// The first lines in which two texts differ.
std::string first_difference(const std::string& before, const std::string& now) {
  const auto line_at = [](const std::string& text, std::size_t& at) {
    if (at >= text.size()) return std::string("(end)");
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    return line;
  };
  std::size_t a = 0;
  std::size_t b = 0;
  for (int number = 1; a < before.size() || b < now.size(); ++number) {
    const std::string was = line_at(before, a);
    const std::string is = line_at(now, b);
    if (was != is) return fmt::format("line {} was '{}' and is '{}'", number, was, is);
  }
  return "the text is the same";
}

// Why a part cannot count as done, or nothing.
std::string trouble_with(const fs::path& folder, const PartRecord& part, Verify verify) {
  for (const PartFile& file : part.files) {
    if (file.name.empty()) continue;
    std::error_code error;
    const std::uintmax_t size = fs::file_size(folder / file.name, error);
    if (error) return file.name + " is missing";
    if (size != file.bytes) {
      return fmt::format("{} has {} bytes, not {}", file.name, size, file.bytes);
    }
    if (verify == Verify::contents) {
      const auto bytes = read_file(folder / file.name);
      if (!bytes || checksum_of(*bytes) != file.checksum) return file.name + " is damaged";
    }
  }
  return "";
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

  std::optional<Mistake> create();
  std::optional<Mistake> check_header(const ManifestHeader& header) const;
  std::optional<Mistake> take_shard(const Shard& shard, Verify verify);
  void repair(const Shard& shard, Manifest& manifest, Verify verify);
  void remove_strangers(const Shard& shard, const Manifest& manifest);
  void start_log(Manifest& manifest);
};

// Makes the folder and its run.yaml, or finds that it is another run's.
std::optional<Mistake> RunFolder::State::create() {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return mistake(folder, "cannot make the run folder: " + error.message(),
                   "choose another one with -o DIR");
  }
  const auto visible = [](const fs::directory_entry& entry) {
    return !entry.path().filename().string().starts_with(".");
  };
  const auto yaml = read_file(folder / kRunYaml);
  if (!yaml && std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), visible)) {
    return mistake(folder, "the folder is not empty and not a run folder (it has no run.yaml)",
                   "choose another one with -o DIR");
  }
  // Before the first manifest nothing depends on the text: a run that got no further may change it.
  const std::vector<Shard> shards = shards_of(folder);
  if (shards.empty() && yaml != identity.run_yaml) {
    write_durably(folder / kRunYaml, identity.run_yaml);
  }
  for (const Table table : kAlwaysThere) fs::create_directories(folder_of(folder, table));
  sync_folder(folder);
  return std::nullopt;
}

std::optional<Mistake> RunFolder::State::check_header(const ManifestHeader& header) const {
  if (header.model_version != engine::kModelVersion) {
    return mistake(folder,
                   fmt::format("the run was made with model version {}, this program has {}",
                               header.model_version, engine::kModelVersion),
                   "choose a new folder with -o DIR: figures of two versions do not mix");
  }
  if (header.spec_hash != identity.spec_hash || header.positions != identity.positions) {
    const std::string before = read_file(folder / kRunYaml).value_or("");
    return mistake(
        folder,
        fmt::format("the folder holds a run of another spec ({} positions, now {}); in run.yaml {}",
                    header.positions, identity.positions,
                    first_difference(before, identity.run_yaml)),
        fmt::format("choose a new folder with -o DIR; --reuse {} takes over its finished points",
                    folder.string()));
  }
  return std::nullopt;
}

// Deletes what a kill left of this shard: hidden files, and parts that no line names.
void RunFolder::State::remove_strangers(const Shard& shard, const Manifest& manifest) {
  std::set<std::string> named;
  for (const PartRecord& part : manifest.parts) {
    for (const PartFile& file : part.files) named.insert(file.name);
  }
  std::size_t removed = 0;
  for (const Table table : kDetailsFirst) {
    const fs::path files = folder_of(folder, table);
    if (!fs::exists(files)) continue;
    for (const auto& entry : fs::directory_iterator(files)) {
      const std::string name = entry.path().filename().string();
      const bool hidden = shard_in_name(name, ".part-", '-') == shard;
      const bool visible = shard_in_name(name, "part-", '-') == shard;
      if (hidden ||
          (visible && !named.contains(fmt::format("{}/{}", engine::name_of(table), name)))) {
        fs::remove(entry.path());
        ++removed;
      }
    }
  }
  if (removed > 0) {
    notices.push_back(
        fmt::format("removed {} unfinished file(s) of shard {}", removed, to_text(shard)));
  }
}

// Drops parts that are gone or damaged; their positions are done again.
void RunFolder::State::repair(const Shard& shard, Manifest& manifest, Verify verify) {
  const fs::path path = folder / manifest_name(shard);
  const std::size_t lost = std::erase_if(manifest.parts, [&](const PartRecord& part) {
    const std::string trouble = trouble_with(folder, part, verify);
    if (trouble.empty()) return false;
    notices.push_back(trouble + ": its points are done again");
    return true;
  });
  if (lost > 0) {
    std::string text = to_line(manifest.header);
    for (const PartRecord& part : manifest.parts) text += to_line(part);
    write_durably(path, text);
    manifest.intact_bytes = text.size();
  }
  remove_strangers(shard, manifest);
}

// Reads what a shard has done. Leftovers are cleared of this shard and of shards of another split;
// those of this split clear their own when they start, which may be at this very moment.
std::optional<Mistake> RunFolder::State::take_shard(const Shard& shard, Verify verify) {
  const bool own = shard == identity.shard;
  std::optional<FileHandle> other_lock;
  if (shard.count != identity.shard.count) {
    other_lock = try_lock(lock_path(folder, shard));
    if (!other_lock) {
      return mistake(folder,
                     fmt::format("another process is writing shard {}/{} of this run", shard.number,
                                 shard.count),
                     "wait for it, or split the run in the same number of shards");
    }
  }
  std::optional<Manifest> manifest = read_manifest(folder / manifest_name(shard));
  if (manifest) {
    if (auto wrong = check_header(manifest->header)) return wrong;
    if (manifest->header.program_version != engine::program_version()) {
      notices.push_back(fmt::format("shard {} was begun by version {} of the program",
                                    to_text(shard), manifest->header.program_version));
    }
  } else {
    manifest.emplace();
  }
  // The numbers of lost parts are not used again either.
  if (own && !manifest->parts.empty()) next_sequence = manifest->parts.back().sequence + 1;
  if (own || other_lock) repair(shard, *manifest, verify);
  for (const PartRecord& part : manifest->parts) {
    for (const sweep::IndexRange& range : part.positions) done.add(range);
    tally.add(part.tally);
    if (own) next_sequence = std::max(next_sequence, part.sequence + 1);
  }
  if (own) start_log(*manifest);
  return std::nullopt;
}

void RunFolder::State::start_log(Manifest& manifest) {
  const fs::path path = folder / manifest_name(identity.shard);
  if (manifest.intact_bytes == 0) {
    const std::string header =
        to_line(ManifestHeader{.spec_hash = identity.spec_hash,
                               .program_version = std::string(engine::program_version()),
                               .model_version = engine::kModelVersion,
                               .shard = identity.shard,
                               .positions = identity.positions});
    write_durably(path, header);
    manifest.intact_bytes = header.size();
  }
  log.emplace(path, manifest.intact_bytes);
}

engine::Result<RunFolder> RunFolder::open(const fs::path& folder, const RunIdentity& identity,
                                          Verify verify) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->identity = identity;
  try {
    if (auto wrong = state->create()) return *wrong;
    auto lock = try_lock(lock_path(folder, identity.shard));
    if (!lock) {
      return mistake(folder, "another process is writing this shard of the run",
                     "wait for it, or choose another folder with -o DIR");
    }
    state->lock = std::move(*lock);
    std::vector<Shard> shards = shards_of(folder);
    if (std::ranges::find(shards, identity.shard) == shards.end()) {
      shards.push_back(identity.shard);
    }
    for (const Shard& shard : shards) {
      if (auto wrong = state->take_shard(shard, verify)) return *wrong;
    }
  } catch (const std::exception& problem) {
    return mistake(folder, problem.what(), "");
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
  RunSummary summary;
  try {
    for (const Shard& shard : shards_of(folder)) {
      const auto manifest = read_manifest(folder / manifest_name(shard));
      if (!manifest) continue;
      summary.shards.push_back(manifest->header);
      summary.positions = manifest->header.positions;
      for (const PartRecord& part : manifest->parts) {
        for (const sweep::IndexRange& range : part.positions) summary.done.add(range);
        summary.tally.add(part.tally);
        summary.parts.push_back(part);
      }
    }
  } catch (const std::exception& problem) {
    return mistake(folder, problem.what(), "");
  }
  if (summary.shards.empty()) {
    return mistake(folder, "not a run folder: it has no manifest",
                   "give the folder of `run -o DIR`");
  }
  return summary;
}

}  // namespace results
