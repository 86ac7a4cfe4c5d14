// Kernels of the points for the page: time by family for all, every kernel for some.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tools/query/question.h"
#include "tools/query/ranking.h"
#include "tools/report/page_data.h"

namespace tools {
namespace {

using nlohmann::json;

// Seconds by family and point: one array a family.
json family_seconds(const DetailRows& details, std::size_t points, Blobs& blobs) {
  const Coded family = details.table.texts("family");
  const std::vector<double> seconds = details.table.numbers("seconds");
  std::vector<std::vector<double>> sums(family.names.size(), std::vector<double>(points));
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (details.page_row[i] == PageRowFinder::kNotThere || family.codes[i] == Coded::kNone)
      continue;
    sums[family.codes[i]][details.page_row[i]] += seconds[i];
  }
  json families = json::array();
  for (std::size_t f = 0; f < sums.size(); ++f) {
    families.push_back({{"name", family.names[f]}, {"blob", blobs.add(sums[f])}});
  }
  return families;
}

// Points whose kernels a reader will want to see first: the front of every pair of the usual figures.
std::vector<std::uint8_t> front_flags(const RunRows& points, const PageRows& rows) {
  std::vector<std::uint8_t> on_front(points.rows());
  const std::vector<std::string> figures = {
      "output_per_user_tokens_per_s", "output_per_device_tokens_per_s", "per_device_tokens_per_s",
      "step_time_s", "price_usd_per_mtok"};
  for (std::size_t a = 0; a < figures.size(); ++a) {
    for (std::size_t b = a + 1; b < figures.size(); ++b) {
      Question question;
      for (const std::string& name : {figures[a], figures[b]}) {
        if (points.find(name) != nullptr) question.objectives.push_back({name, better_of(name)});
      }
      const auto found = candidates(points, question);
      if (question.objectives.size() < 2 || !found) continue;
      for (const std::uint32_t row : front_rows(*found, question)) on_front[row] = 1;
    }
  }
  return rows.of(on_front);
}

// Which points of the page have room for all their kernels: those on fronts, then the others evenly.
std::vector<std::uint8_t> chosen_points(const DetailRows& details, const RunRows& points,
                                        const PageRows& rows, std::size_t most) {
  std::vector<std::uint32_t> kernels(rows.rows.size());
  std::size_t all = 0;
  for (const std::uint32_t row : details.page_row) {
    if (row == PageRowFinder::kNotThere) continue;
    ++kernels[row];
    ++all;
  }
  if (all <= most) return std::vector<std::uint8_t>(rows.rows.size(), 1);
  std::vector<std::uint8_t> chosen = front_flags(points, rows);
  std::size_t room = most;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = std::uint8_t(chosen[i] != 0 && kernels[i] <= room);
    if (chosen[i] != 0) room -= kernels[i];
  }
  const std::size_t stride = all / std::max<std::size_t>(room, 1) + 1;
  for (std::size_t i = 0; i < chosen.size(); i += stride) {
    if (chosen[i] != 0 || kernels[i] > room) continue;
    chosen[i] = 1;
    room -= kernels[i];
  }
  return chosen;
}

json kernel_rows(const DetailRows& details, const std::vector<std::uint8_t>& chosen, Blobs& blobs) {
  // Ordered by point: the page finds the kernels of one by bisection.
  std::vector<std::uint32_t> kept;
  for (std::uint32_t i = 0; i < details.page_row.size(); ++i) {
    const std::uint32_t row = details.page_row[i];
    if (row != PageRowFinder::kNotThere && chosen[row] != 0) kept.push_back(i);
  }
  std::ranges::stable_sort(kept, {}, [&](std::uint32_t i) { return details.page_row[i]; });
  const PageRows some{.rows = kept, .asked_for = 0};

  json entry = {{"rows", kept.size()}, {"points", std::ranges::count(chosen, 1)}};
  entry["point"] = blobs.add_codes(some.of(details.page_row), std::size_t(1) << 32U);
  for (const char* name : {"phase", "op", "family", "bound"}) {
    const Coded column = details.table.texts(name);
    entry[name] = {{"names", column.names},
                   {"blob", blobs.add_codes(some.of(column.codes), column.names.size())}};
  }
  for (const char* name : {"calls", "seconds", "flops", "bytes"}) {
    entry[name] = blobs.add(some.of(details.table.numbers(name)));
  }
  return entry;
}

}  // namespace

json kernels_data(const RunRows& points, const PageRows& rows, const ReportOptions& options,
                  Blobs& blobs) {
  const auto details = detail_rows(points, rows, "kernels");
  if (!details) return nullptr;
  json data = {{"families", family_seconds(*details, rows.rows.size(), blobs)}};
  data["rows"] =
      kernel_rows(*details, chosen_points(*details, points, rows, options.most_kernels), blobs);
  return data;
}

}  // namespace tools
