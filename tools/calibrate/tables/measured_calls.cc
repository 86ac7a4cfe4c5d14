#include "tools/calibrate/tables/measured_calls.h"

#include <algorithm>
#include <regex>
#include <span>

#include "tools/calibrate/tables/quantile.h"

namespace tools {
namespace {

constexpr double kConflict = 1.1;

// Which implementations count.
engine::Result<std::vector<bool>> chosen_impls(const KernelTable& table, const std::string& text) {
  std::vector<bool> chosen;
  try {
    const std::regex wanted(text);
    for (const std::string& impl : table.impls) {
      const bool special = impl.ends_with(":sustained") || impl.ends_with("_eager");
      chosen.push_back(text.empty() ? !special : std::regex_search(impl, wanted));
    }
  } catch (const std::regex_error& error) {
    return engine::Mistake{{}, "--impl '" + text + "' is no regular expression", error.what()};
  }
  return chosen;
}

double median(std::vector<double>& times) { return quantile(times, 0.5); }

}  // namespace

engine::Result<GatheredCalls> gather_calls(const KernelTable& table, const GatherOptions& options) {
  const auto chosen = chosen_impls(table, options.impl);
  if (!chosen) return chosen.mistakes();
  std::vector<const KernelRecord*> records;
  for (const KernelRecord& record : table.records) {
    if ((*chosen)[record.impl]) records.push_back(&record);
  }
  std::ranges::sort(records, [](const KernelRecord* a, const KernelRecord* b) {
    if (a->call != b->call) return a->call < b->call;
    return a->impl != b->impl ? a->impl < b->impl : a->row < b->row;
  });
  GatheredCalls gathered{.rows = records.size()};
  std::vector<double> same, impls;
  for (std::size_t i = 0; i < records.size();) {
    const KernelRecord& first = *records[i];
    std::uint32_t row = first.row;
    impls.clear();
    while (i < records.size() && records[i]->call == first.call) {
      const KernelRecord& start = *records[i];
      row = std::min(row, start.row);
      same.clear();
      for (; i < records.size() && records[i]->call == start.call && records[i]->impl == start.impl;
           ++i) {
        same.push_back(records[i]->seconds);
      }
      const auto [least, most] = std::ranges::minmax(same);
      if (most > kConflict * least) {
        if (gathered.conflicts++ == 0) gathered.first_conflict = table.text.where(start.row, 0);
        gathered.worst_conflict = std::max(gathered.worst_conflict, most / least);
      }
      impls.push_back(median(same));
      if (options.across == Across::separate) {
        gathered.calls.push_back({start.call, impls.back(), start.row, start.impl});
      }
    }
    if (options.across == Across::separate) continue;
    const double seconds =
        options.across == Across::median ? median(impls) : *std::ranges::min_element(impls);
    gathered.calls.push_back({first.call, seconds, row, first.impl});
  }
  return gathered;
}

}  // namespace tools
