#include "results/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace results {
namespace {

using sweep::IndexRange;

std::string trouble_with_ranges(const PartRecord& part, const ManifestHeader& header) {
  std::uint64_t end = 0;
  for (const IndexRange& range : part.positions) {
    if (range.begin >= range.end) {
      return fmt::format("the range {} to {} holds nothing", range.begin, range.end);
    }
    if (range.begin < end) return "its ranges overlap or are out of order";
    end = range.end;
  }
  if (end > header.positions) {
    return fmt::format("it names position {} of a grid of {}", end - 1, header.positions);
  }
  return "";
}

std::string trouble_with_files(const PartRecord& part, const Shard& shard) {
  for (const Table table : kDetailsFirst) {
    const PartFile& file = part.files[table];
    // A name from elsewhere could point anywhere, and files that are not named are removed.
    if (!file.name.empty() && file.name != part_name(table, shard, part.sequence)) {
      return fmt::format("'{}' is not the name of its file of {}", file.name,
                         engine::name_of(table));
    }
  }
  return "";
}

std::string trouble_with_counts(const PartRecord& part) {
  std::uint64_t count = 0;
  for (const IndexRange& range : part.positions) count += range.end - range.begin;
  if (part.tally.positions() != count) {
    return fmt::format("it counts {} positions and names {}", part.tally.positions(), count);
  }
  if (part.tally.rows() != part.files[Table::points].rows) {
    return fmt::format("it counts {} points and has {} rows", part.tally.rows(),
                       part.files[Table::points].rows);
  }
  return "";
}

std::string trouble_with(const PartRecord& part, const ManifestHeader& header) {
  for (std::string trouble : {trouble_with_ranges(part, header),
                              trouble_with_files(part, header.shard), trouble_with_counts(part)}) {
    if (!trouble.empty()) return trouble;
  }
  return "";
}

// Moves the parts for which trouble(number) says something to the damage.
template <class Trouble>
void drop(Manifest& manifest, Trouble trouble) {
  std::vector<PartRecord> parts;
  std::vector<int> lines;
  for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
    const std::string what = trouble(i);
    if (what.empty()) {
      parts.push_back(std::move(manifest.parts[i]));
      lines.push_back(manifest.lines[i]);
    } else {
      manifest.damage.push_back({manifest.lines[i], "the line cannot be right: " + what});
    }
  }
  manifest.parts = std::move(parts);
  manifest.lines = std::move(lines);
}

void check_manifest(ShardManifest& found) {
  Manifest& manifest = found.manifest;
  if (!manifest.header) return;
  const ManifestHeader& header = *manifest.header;
  if (header.shard != found.shard) {
    manifest.damage.push_back(
        {1, fmt::format("it is the manifest of shard {}", to_text(header.shard))});
    manifest.header.reset();
    return;
  }
  std::set<std::uint64_t> sequences;
  drop(manifest, [&](std::size_t i) -> std::string {
    const PartRecord& part = manifest.parts[i];
    if (!sequences.insert(part.sequence).second) return "another line has its number";
    return trouble_with(part, header);
  });
}

// A range of a part, of a manifest.
struct Claim {
  IndexRange range;
  std::size_t manifest = 0;
  std::size_t part = 0;
};

}  // namespace

void check_claims(std::vector<ShardManifest>& manifests) {
  std::vector<Claim> claims;
  for (std::size_t m = 0; m < manifests.size(); ++m) {
    check_manifest(manifests[m]);
    const std::vector<PartRecord>& parts = manifests[m].manifest.parts;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (const IndexRange& range : parts[p].positions) claims.push_back({range, m, p});
    }
  }
  std::ranges::sort(claims, {}, &Claim::range);
  std::map<std::pair<std::size_t, std::size_t>, std::string> doubted;
  const Claim* widest = nullptr;  // of those before: the one that ends last
  for (const Claim& claim : claims) {
    if (widest != nullptr && claim.range.begin < widest->range.end) {
      const std::string what =
          fmt::format("position {} is claimed by two parts", claim.range.begin);
      doubted[{widest->manifest, widest->part}] = what;
      doubted[{claim.manifest, claim.part}] = what;
    }
    if (widest == nullptr || claim.range.end > widest->range.end) widest = &claim;
  }
  if (doubted.empty()) return;
  for (std::size_t m = 0; m < manifests.size(); ++m) {
    drop(manifests[m].manifest, [&](std::size_t part) -> std::string {
      const auto found = doubted.find({m, part});
      return found == doubted.end() ? "" : found->second;
    });
  }
}

}  // namespace results
