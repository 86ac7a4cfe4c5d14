#include "tools/report/first_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tools {
namespace {

using nlohmann::json;

struct FigurePair {
  std::string x, y;
};

// Figures that the page's working points differ in.
std::vector<std::string> varying_figures(const json& columns) {
  std::vector<std::string> names;
  for (const json& column : columns) {
    if (column.contains("least") && column["least"] < column["most"])
      names.push_back(column["name"]);
  }
  return names;
}

bool has_text(const RunRows& points, std::string_view column, std::string_view text) {
  if (points.find(column) == nullptr) return false;
  const Coded texts = points.texts(column);
  return std::ranges::find(texts.names, text) != texts.names.end();
}

// "slo.ttft_p99" limits "ttft_p99_s", "slo.ttft_mean" limits "ttft_s". Zero stands for no limit.
std::vector<std::string> limited_latencies(const RunRows& points) {
  constexpr std::string_view kLimits = "slo.", kMean = "_mean";
  std::vector<std::string> figures;
  for (const results::Column& column : points.columns()) {
    if (!column.name.starts_with(kLimits) || !is_number(column)) continue;
    const std::vector<double> limits = points.numbers(column.name);
    if (std::ranges::none_of(limits, [](double limit) { return limit > 0; })) continue;
    std::string figure = column.name.substr(kLimits.size());
    if (figure.ends_with(kMean)) figure.resize(figure.size() - kMean.size());
    figures.push_back(figure + "_s");
  }
  return figures;
}

std::vector<FigurePair> serving_pairs(const RunRows& points) {
  const FigurePair user_or_device = {"output_per_user_tokens_per_s",
                                     "output_per_device_tokens_per_s"};
  if (has_text(points, "load.arrivals", "closed")) return {user_or_device};
  std::vector<FigurePair> pairs;
  for (std::string& latency : limited_latencies(points)) {
    pairs.push_back({"output_per_device_tokens_per_s", std::move(latency)});
  }
  pairs.push_back({"output_per_device_tokens_per_s", "ttft_p99_s"});
  pairs.push_back(user_or_device);
  return pairs;
}

// The first of these of which both figures vary is shown. A figure that no point has does not vary, so that those of
// other tasks do no harm, except where tasks share them.
std::vector<FigurePair> candidate_pairs(const RunRows& points) {
  std::vector<FigurePair> pairs = {{"capacity_req_per_s", "price_usd_per_mtok"},
                                   {"capacity_req_per_s", "devices"}};
  const auto add = [&pairs](const std::vector<FigurePair>& more) {
    pairs.insert(pairs.end(), more.begin(), more.end());
  };
  add({{"rent_usd_per_hour", "iteration_time_s"},
       {"peak_memory_bytes", "tokens_per_s_per_device"}});
  add(serving_pairs(points));
  add({{"tpot_s", "per_device_tokens_per_s"},
       {"e2e_s", "per_device_tokens_per_s"},
       {"step_time_s", "per_device_tokens_per_s"},
       {"step_time_s", "price_usd_per_mtok"},
       {"image_latency_s", "images_per_s"}});
  return pairs;
}

}  // namespace

json first_view(const RunRows& points, const json& columns) {
  const std::vector<std::string> varying = varying_figures(columns);
  if (varying.empty()) return nullptr;
  const auto varies = [&varying](const std::string& name) {
    return std::ranges::find(varying, name) != varying.end();
  };
  for (const FigurePair& pair : candidate_pairs(points)) {
    if (varies(pair.x) && varies(pair.y)) return {{"x", pair.x}, {"y", pair.y}};
  }
  return {{"x", varying.front()}, {"y", varying.size() > 1 ? varying[1] : varying.front()}};
}

}  // namespace tools
