#include "tools/status/run_status.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <system_error>

#include "results/claims.h"
#include "results/run_manifests.h"
#include "sweep/space/shard.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using results::PartRecord;
using results::Shard;

constexpr double kGone = std::numeric_limits<double>::max();

// When a file was last written, in seconds before now; `kGone` where there is none. The clock of another machine may be ahead.
double age_of(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  if (error) return kGone;
  return std::max(std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count(),
                  0.0);
}

std::uint64_t positions_of(const PartRecord& part) {
  std::uint64_t count = 0;
  for (const sweep::IndexRange& range : part.positions) count += range.end - range.begin;
  return count;
}

// Parts have no times of their own; their files do. The first one shows when the clock starts, so what
// it holds is not counted.
void add_pace(const fs::path& run, const std::vector<PartRecord>& parts, ShardStatus& status) {
  double first = 0, last = kGone;
  std::uint64_t first_count = 0, all = 0;
  for (const PartRecord& part : parts) {
    status.rows += part.files[results::Table::points].rows;
    const std::uint64_t count = positions_of(part);
    const std::string& name = part.files[results::Table::points].name;
    if (name.empty()) continue;
    const double age = age_of(run / name);
    if (age == kGone) continue;
    all += count;
    if (age > first) {
      first = age;
      first_count = count;
    }
    last = std::min(last, age);
  }
  status.parts = parts.size();
  if (last == kGone) return;
  status.seconds_since = last;
  if (first > last) status.positions_per_s = double(all - first_count) / (first - last);
}

std::uint64_t done_of(const sweep::IndexSet& share, const sweep::IndexSet& done) {
  return share.count() - share.minus(done).count();
}

// A run that was split into three and is being finished in five has manifests of both splits: the newer
// one says who is at work now.
std::uint32_t newest_split(const fs::path& run, const std::vector<results::ShardManifest>& found) {
  const auto newest = std::ranges::min_element(found, {}, [&run](const auto& shard) {
    return age_of(run / results::manifest_name(shard.shard));
  });
  return newest->shard.count;
}

// The positions of each shard: fixed, or of the pieces it has taken.
std::vector<sweep::IndexSet> shares(const fs::path& run, std::uint32_t count, RunStatus& status) {
  std::vector<sweep::IndexSet> all(count);
  const auto claims = results::read_claims(run, count, status.positions);
  if (!claims) {
    for (std::uint32_t i = 0; i < count; ++i) {
      all[i] = sweep::shard_of(status.positions, i + 1, count);
    }
    return all;
  }
  status.sharing = results::Sharing::taken;
  for (std::uint64_t piece = 0; piece < claims->workers.size(); ++piece) {
    if (claims->workers[piece] == 0) {
      ++status.untaken;
    } else {
      all[claims->workers[piece] - 1].add(results::piece_of(status.positions, count, piece));
    }
  }
  return all;
}

// Shards that are fixed wait for the slowest; workers that share the work end together.
void add_forecast(RunStatus& status) {
  double longest = 0;
  for (const ShardStatus& shard : status.shards) {
    const bool works = shard.writer != results::Writer::none && shard.positions_per_s > 0;
    const bool goes_on = shard.left() > 0 || status.untaken > 0;
    if (works && goes_on) status.positions_per_s += shard.positions_per_s;
    if (shard.left() == 0) continue;
    longest = std::max(longest, works ? double(shard.left()) / shard.positions_per_s
                                      : std::numeric_limits<double>::infinity());
  }
  if (status.untaken > 0) {
    longest = std::max(longest, double(status.missing().count()) / status.positions_per_s);
  }
  status.seconds_left = longest;
}

}  // namespace

sweep::IndexSet RunStatus::missing() const {
  return positions == 0 ? sweep::IndexSet()
                        : sweep::IndexSet({.begin = 0, .end = positions}).minus(done);
}

bool RunStatus::has_writer() const {
  return std::ranges::any_of(
      shards, [](const ShardStatus& shard) { return shard.writer != results::Writer::none; });
}

engine::Result<RunStatus> run_status(const fs::path& run) {
  const auto known = results::summarise(run);
  if (!known) return known.mistakes();
  RunStatus status{.positions = known->positions, .done = known->done, .rows = known->tally.rows()};
  const std::vector<results::ShardManifest> found = results::read_run(run);
  std::map<Shard, const results::Manifest*> manifests;
  for (const auto& shard : found) manifests[shard.shard] = &shard.manifest;

  const std::uint32_t count = newest_split(run, found);
  std::vector<Shard> shards;
  for (std::uint32_t number = 1; number <= count; ++number) shards.push_back({number, count});
  const std::vector<results::Writer> writers = results::writers_of(run, shards);
  const std::vector<sweep::IndexSet> share = shares(run, count, status);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    ShardStatus shard{.shard = shards[i],
                      .positions = share[i].count(),
                      .done = done_of(share[i], status.done),
                      .writer = writers[i]};
    if (const auto manifest = manifests.find(shards[i]); manifest != manifests.end()) {
      shard.seconds_since = age_of(run / results::manifest_name(shards[i]));
      add_pace(run, manifest->second->parts, shard);
    }
    status.shards.push_back(shard);
  }
  add_forecast(status);
  return status;
}

}  // namespace tools
