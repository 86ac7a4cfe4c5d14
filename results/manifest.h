// The record of one shard: which positions are done and which files hold their rows. One JSON object
// a line, with its checksum; a line is written only once everything it names is permanent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/table.h"
#include "sweep/space/index_set.h"
#include "sweep/space/row_sink.h"

namespace results {

// Number `number` of `count`, from one, as in `--shard 2/3`.
struct Shard {
  std::uint32_t number = 1;
  std::uint32_t count = 1;
  auto operator<=>(const Shard&) const = default;
};
std::string to_text(const Shard& shard);  // "2of3", as in file names
std::optional<Shard> shard_from_text(std::string_view text);

struct ManifestHeader {
  std::string spec_hash;
  std::string program_version;
  std::string program_commit;  // empty: written by a version that did not say
  std::int64_t model_version = 0;
  Shard shard;
  std::uint64_t positions = 0;  // of the whole grid
  bool operator==(const ManifestHeader&) const = default;
};

struct PartFile {
  std::string name;  // within the run folder; empty: there are no rows
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH3 of the file
  bool operator==(const PartFile&) const = default;
};

struct PartRecord {
  std::uint64_t sequence = 0;
  std::vector<sweep::IndexRange> positions;  // with those that were rejected
  ByTable<PartFile> files;
  sweep::Tally tally;
  bool operator==(const PartRecord&) const = default;
};

// Something in a manifest that cannot be believed.
struct Damage {
  int line = 0;  // from one; 0: the file as a whole
  std::string what;
  bool operator==(const Damage&) const = default;
};

struct Manifest {
  std::optional<ManifestHeader> header;  // absent where its line is damaged
  std::vector<PartRecord> parts;
  std::vector<int> lines;  // of the parts
  std::vector<Damage> damage;
  int format = 0;        // 0 where the header is damaged
  int newer_format = 0;  // written by a program that knows more than this one: the rest is not read
  std::uint64_t intact_bytes = 0;  // a torn last line, left by a kill, starts here
  bool torn = false;
};

// With their checksums and line ends.
std::string to_line(const ManifestHeader& header);
std::string to_line(const PartRecord& part);
// Nothing where there is no file. Only what follows the last line end counts as torn: a line that
// ends and cannot be read is damage, whose parts must not be taken for unfinished ones.
std::optional<Manifest> inspect_manifest(const std::filesystem::path& path);

std::string manifest_name(const Shard& shard);
// "points/part-2of3-000017.parquet"
std::string part_name(Table table, const Shard& shard, std::uint64_t sequence);

}  // namespace results
