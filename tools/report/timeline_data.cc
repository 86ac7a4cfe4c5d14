// How the load of each point went on in time, for the page: all replicas together, at most some hundred moments.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "tools/report/page_data.h"

namespace tools {
namespace {

using nlohmann::json;

// More moments than a chart has pixels are not seen.
constexpr std::size_t kMostMoments = 500;
constexpr std::size_t kMostTimelines = 1000;

// What the replicas add up to; the use of the cache is their mean.
struct Curve {
  const char* column;
  const char* title;
  bool adds_up;
};
constexpr std::array<Curve, 4> kCurves = {{
    {"running", "requests running", true},
    {"waiting", "requests waiting", true},
    {"kv_use", "share of the KV cache in use", false},
    {"output_tokens_per_s", "generated tokens a second", true},
}};

struct Timeline {
  std::vector<double> time;
  std::array<std::vector<double>, kCurves.size()> curves;
};

// Adds the rows of one point, which are sorted by time. Replicas are sampled at the same moments.
void add_point(Timeline& all, const Timeline& table, std::span<const std::uint32_t> rows) {
  std::vector<std::size_t> moments;  // where each begins
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || table.time[rows[i]] != table.time[rows[i - 1]]) moments.push_back(i);
  }
  const std::size_t stride = moments.size() / kMostMoments + 1;
  for (std::size_t m = 0; m < moments.size(); m += stride) {
    const std::size_t end = m + 1 < moments.size() ? moments[m + 1] : rows.size();
    const auto replicas = rows.subspan(moments[m], end - moments[m]);
    all.time.push_back(table.time[replicas.front()]);
    for (std::size_t c = 0; c < kCurves.size(); ++c) {
      double sum = 0;
      for (const std::uint32_t row : replicas) sum += table.curves[c][row];
      all.curves[c].push_back(kCurves[c].adds_up ? sum : sum / double(replicas.size()));
    }
  }
}

Timeline read_timeline(const RunRows& rows) {
  Timeline table{.time = rows.numbers("time_s"), .curves = {}};
  for (std::size_t c = 0; c < kCurves.size(); ++c)
    table.curves[c] = rows.numbers(kCurves[c].column);
  return table;
}

}  // namespace

json timeline_data(const RunRows& points, const PageRows& rows, Blobs& blobs) {
  const auto details = detail_rows(points, rows, "timeline");
  if (!details) return nullptr;
  const Timeline table = read_timeline(details->table);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < details->page_row.size(); ++i) {
    if (details->page_row[i] != PageRowFinder::kNotThere) order.push_back(i);
  }
  std::ranges::stable_sort(
      order, {}, [&](std::uint32_t i) { return std::pair(details->page_row[i], table.time[i]); });

  std::vector<std::uint32_t> with_curves, ends;
  Timeline all;
  for (std::size_t begin = 0; begin < order.size() && with_curves.size() < kMostTimelines;) {
    const std::uint32_t row = details->page_row[order[begin]];
    std::size_t end = begin;
    while (end < order.size() && details->page_row[order[end]] == row) ++end;
    add_point(all, table, std::span(order).subspan(begin, end - begin));
    with_curves.push_back(row);
    ends.push_back(std::uint32_t(all.time.size()));
    begin = end;
  }

  json entry = {{"point", blobs.add_codes(with_curves, std::size_t(1) << 32U)},
                {"ends", blobs.add_codes(ends, std::size_t(1) << 32U)},
                {"time", blobs.add(all.time)},
                {"curves", json::array()}};
  for (std::size_t c = 0; c < kCurves.size(); ++c) {
    entry["curves"].push_back({{"title", kCurves[c].title}, {"blob", blobs.add(all.curves[c])}});
  }
  return entry;
}

}  // namespace tools
