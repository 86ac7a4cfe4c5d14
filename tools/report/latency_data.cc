// Latencies of the requests of each point for the page: quantiles, since a point may have a million.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tools/report/page_data.h"

namespace tools {
namespace {

using nlohmann::json;

// From the least to the greatest in steps of one percent.
constexpr std::size_t kQuantiles = 101;
constexpr std::array<std::string_view, 3> kLatencies = {"time to first token",
                                                        "time per output token", "end to end"};
// Their curves take a kilobyte a point.
constexpr std::size_t kMostLatencies = 5000;

struct RequestColumns {
  std::vector<double> arrival, first, finish, outputs, measured;
};

// NaN where a request has no such latency: it was refused, or answered with a single token.
double latency(const RequestColumns& requests, std::size_t kind, std::size_t i) {
  switch (kind) {
    case 0:
      return requests.first[i] - requests.arrival[i];
    case 1:
      return requests.outputs[i] > 1
                 ? (requests.finish[i] - requests.first[i]) / (requests.outputs[i] - 1)
                 : std::numeric_limits<double>::quiet_NaN();
    default:
      return requests.finish[i] - requests.arrival[i];
  }
}

void append_quantiles(std::vector<double>& curves, std::vector<double>& values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  for (std::size_t q = 0; q < kQuantiles; ++q) {
    if (values.empty()) {
      curves.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    const double place = double(q) / double(kQuantiles - 1) * double(values.size() - 1);
    const auto below = std::size_t(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    curves.push_back(values[below] + (place - double(below)) * (values[above] - values[below]));
  }
}

}  // namespace

json latency_data(const RunRows& points, const PageRows& rows, Blobs& blobs) {
  const auto details = detail_rows(points, rows, "requests");
  if (!details) return nullptr;
  const RunRows& table = details->table;
  const RequestColumns requests{table.numbers("arrival_s"), table.numbers("first_token_s"),
                                table.numbers("finish_s"), table.numbers("output_tokens"),
                                table.numbers("measured")};
  // Requests of one point, one after another; those outside the measured window do not count.
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < details->page_row.size(); ++i) {
    if (details->page_row[i] != PageRowFinder::kNotThere && requests.measured[i] != 0)
      order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return details->page_row[i]; });

  std::vector<std::uint32_t> with_curves;
  std::vector<double> curves, values;
  for (std::size_t begin = 0; begin < order.size() && with_curves.size() < kMostLatencies;) {
    const std::uint32_t row = details->page_row[order[begin]];
    std::size_t end = begin;
    while (end < order.size() && details->page_row[order[end]] == row) ++end;
    with_curves.push_back(row);
    for (std::size_t kind = 0; kind < kLatencies.size(); ++kind) {
      values.clear();
      for (std::size_t i = begin; i < end; ++i) values.push_back(latency(requests, kind, order[i]));
      append_quantiles(curves, values);
    }
    begin = end;
  }
  return {{"names", kLatencies},
          {"quantiles", kQuantiles},
          {"point", blobs.add_codes(with_curves, std::size_t(1) << 32U)},
          {"curves", blobs.add(curves)}};
}

}  // namespace tools
