#include "results/archive.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/outcome.h"
#include "results/checked_file.h"
#include "results/detail_table.h"
#include "results/failure.h"
#include "results/measured.h"
#include "results/reader.h"
#include "results/run_folder.h"
#include "results/schema.h"

namespace results {
namespace {

namespace fs = std::filesystem;

// The rows of one part as the engine would have given them.
struct DecodedPart {
  std::vector<engine::Key> keys;
  std::vector<engine::Outcome> outcomes;
  std::size_t bytes = 0;
};

template <engine::NamedEnum E>
std::vector<std::uint8_t> codes(const ParquetReader& file, std::string_view column,
                                std::optional<E> if_null = std::nullopt) {
  static constexpr auto names = enum_names(E{});
  std::optional<std::uint8_t> null_code;
  if (if_null) null_code = std::uint8_t(*if_null);
  return file.codes(column, names.data(), names.size(), null_code);
}

// The figure whose column says `written`. Dividing may miss it by a rounding; what counts is that
// it is written as the very same number again.
double unscaled(double written, double scale) {
  const double value = written / scale;
  for (const double candidate :
       {value, std::nextafter(value, INFINITY), std::nextafter(value, -INFINITY)}) {
    if (candidate * scale == written) return candidate;
  }
  return value;
}

engine::ReasonClass known_class(const std::string& name) {
  const auto known = engine::from_name<engine::ReasonClass>(name);
  if (!known) throw Failure("column 'reason_class' says '" + name + "', which is not known");
  return *known;
}

void decode_points(const ParquetReader& file, DecodedPart& part) {
  part.keys = file.keys();
  part.outcomes.resize(part.keys.size());
  const auto status = codes<engine::Status>(file, "status");
  const auto saturation = codes<engine::Saturation>(file, "saturation");
  // Points that do not work have neither.
  const auto bound = codes<engine::Bound>(file, "bound", engine::Outcome{}.bound);
  const auto tier = codes<engine::Tier>(file, "tier", engine::Outcome{}.tier);
  const auto extrapolated = file.booleans("extrapolated");
  auto reason = file.texts("reason");
  const auto reason_class = file.texts("reason_class");
  for (std::size_t i = 0; i < part.outcomes.size(); ++i) {
    engine::Outcome& outcome = part.outcomes[i];
    outcome.status = engine::Status(status[i]);
    outcome.saturation = engine::Saturation(saturation[i]);
    outcome.bound = engine::Bound(bound[i]);
    outcome.tier = engine::Tier(tier[i]);
    outcome.extrapolated = extrapolated[i] != 0;
    if (reason[i]) outcome.reason = std::move(*reason[i]);
    if (reason_class[i]) outcome.reason_class = known_class(*reason_class[i]);
  }
  for (std::size_t m = 0; m < kMetrics; ++m) {
    const Metric& metric = metric_table()[m];
    // A figure this version of the program added is absent, as it was for that run.
    if (!file.has(metric.column)) continue;
    const std::vector<double> values = file.numbers(metric.column);
    for (std::size_t i = 0; i < values.size(); ++i) {
      metric_values(part.outcomes[i].metrics)[m] =
          metric.unit.per_base == 1 ? values[i] : unscaled(values[i], metric.unit.per_base);
    }
  }
}

std::string computed_again(const Failure& problem) {
  return std::string(problem.what()) + ": its points are computed again";
}

std::shared_ptr<const DecodedPart> decode(const fs::path& folder, const PartRecord& record) {
  auto part = std::make_shared<DecodedPart>();
  // What is taken over is what was written: a flipped bit would otherwise be copied on for good.
  const auto file = [&](Table table) {
    const PartFile& about = record.files[table];
    return ParquetReader(folder / about.name, checked_bytes(folder, about));
  };
  const ParquetReader of_points = file(Table::points);
  decode_points(of_points, *part);
  part->bytes = part->outcomes.size() * (sizeof(engine::Outcome) + sizeof(engine::Key));
  const auto points = of_points.integers("index");
  for (const Table table : kDetailsFirst) {
    const std::size_t rows = record.files[table].rows;
    if (table == Table::points || rows == 0) continue;
    read_details(table, file(table), points, part->outcomes);
    part->bytes += detail_bytes(table, rows);
  }
  return part;
}

}  // namespace

struct Archive::Impl {
  // Half of a key, and where its row is; sorted by the former.
  struct Entry {
    std::uint64_t key_low = 0;
    std::uint32_t part = 0;
    std::uint32_t row = 0;
    auto operator<=>(const Entry&) const = default;
  };
  struct Cached {
    std::uint32_t part = 0;
    std::shared_ptr<const DecodedPart> rows;
  };

  fs::path folder;
  ArchiveOptions options;
  std::vector<PartRecord> parts;
  std::vector<Entry> entries;
  std::vector<std::string> notices;

  std::mutex mutex;
  std::list<Cached> cache;  // most recently used first
  std::size_t cached_bytes = 0;
  std::vector<std::unique_ptr<std::mutex>> decoding;  // by part: two threads decode it once
  std::vector<std::uint8_t> unreadable;               // by part

  void index_keys();
  std::shared_ptr<const DecodedPart> cached(std::uint32_t part);
  std::shared_ptr<const DecodedPart> part_rows(std::uint32_t part);
};

void Archive::Impl::index_keys() {
  for (std::uint32_t p = 0; p < parts.size(); ++p) {
    decoding.push_back(std::make_unique<std::mutex>());
    unreadable.push_back(0);
    const PartFile& points = parts[p].files[Table::points];
    if (points.name.empty()) continue;
    try {
      const auto keys = ParquetReader(folder / points.name, checked_bytes(folder, points)).keys();
      for (std::uint32_t row = 0; row < keys.size(); ++row) {
        entries.push_back({.key_low = keys[row].low, .part = p, .row = row});
      }
    } catch (const Failure& problem) {
      notices.push_back(computed_again(problem));
    }
  }
  std::ranges::sort(entries);
}

std::shared_ptr<const DecodedPart> Archive::Impl::cached(std::uint32_t part) {
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find(cache, part, &Cached::part);
  if (found == cache.end()) return nullptr;
  cache.splice(cache.begin(), cache, found);
  return found->rows;
}

std::shared_ptr<const DecodedPart> Archive::Impl::part_rows(std::uint32_t part) {
  if (auto rows = cached(part)) return rows;
  const std::lock_guard one_at_a_time(*decoding[part]);
  if (auto rows = cached(part)) return rows;
  if (unreadable[part] != 0) return nullptr;
  std::shared_ptr<const DecodedPart> rows;
  try {
    rows = decode(folder, parts[part]);
  } catch (const Failure& problem) {
    unreadable[part] = 1;
    const std::lock_guard lock(mutex);
    notices.push_back(computed_again(problem));
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  cache.push_front({.part = part, .rows = rows});
  cached_bytes += rows->bytes;
  while (cached_bytes > options.memory_bytes && cache.size() > 1) {
    cached_bytes -= cache.back().rows->bytes;
    cache.pop_back();
  }
  return rows;
}

Archive::Archive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Archive::~Archive() = default;

engine::Result<std::unique_ptr<Archive>> Archive::open(const fs::path& folder,
                                                       ArchiveOptions options) {
  auto summary = summarise(folder);
  if (!summary.ok()) return summary.mistakes();
  if (is_measured(summary->shards.front().spec_hash)) {
    return engine::Mistake{{.file = folder.string()},
                           "the folder holds measured points, which a simulation cannot take over",
                           "name a run that was simulated"};
  }
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  impl->options = options;
  impl->parts = std::move(summary->parts);
  impl->index_keys();
  return std::unique_ptr<Archive>(new Archive(std::move(impl)));
}

bool Archive::find(const engine::Key& key, engine::Outcome& outcome) {
  const auto& entries = impl_->entries;
  auto entry = std::ranges::lower_bound(entries, key.low, {}, &Impl::Entry::key_low);
  for (; entry != entries.end() && entry->key_low == key.low; ++entry) {
    const auto rows = impl_->part_rows(entry->part);
    if (rows == nullptr || rows->keys[entry->row] != key) continue;
    outcome = rows->outcomes[entry->row];
    return true;
  }
  return false;
}

std::uint64_t Archive::size() const { return impl_->entries.size(); }
std::vector<std::string> Archive::notices() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->notices;
}

}  // namespace results
