#include "tools/import/genai_perf_result.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tools/import/json_file.h"

namespace tools {
namespace {

using engine::Mistake;
using engine::Seconds;
using nlohmann::json;
using M = engine::Metrics;

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// Each figure is a map: its unit, its mean ("avg") and percentiles. Units of times have been these.
struct Unit {
  const char* name;
  double seconds;
};
constexpr Unit kUnits[] = {{"ms", 1e-3}, {"ns", 1e-9}, {"us", 1e-6}, {"s", 1}, {"sec", 1}};

struct MetricLatency {
  const char* name;
  Seconds M::*mean;
  Seconds M::*p50;
  Seconds M::*p90;
  Seconds M::*p95;
  Seconds M::*p99;
};
// What it calls the latency between tokens has one value for each request: the time after the first token over the tokens after it
// (https://docs.nvidia.com/aiperf/reference/ai-perf-metrics-reference). That is our time per output token.
constexpr MetricLatency kMetricLatencies[] = {
    {"time_to_first_token", &M::ttft, &M::ttft_p50, &M::ttft_p90, &M::ttft_p95, &M::ttft_p99},
    {"inter_token_latency", &M::tpot, &M::tpot_p50, &M::tpot_p90, &M::tpot_p95, &M::tpot_p99},
    {"request_latency", &M::e2e, &M::e2e_p50, &M::e2e_p90, &M::e2e_p95, &M::e2e_p99},
};

class FigureReader {
 public:
  FigureReader(std::string file, const json& root) : file_(std::move(file)), root_(root) {}

  engine::Result<LoadResult> run() {
    if (!root_.is_object() || !root_.contains("request_throughput") ||
        !root_.contains("request_latency")) {
      return Mistake{{file_, 0, 0},
                     "this is not a summary of GenAI-Perf or AIPerf",
                     "it has no 'request_throughput' and 'request_latency'; the summary is called "
                     "profile_export_genai_perf.json or profile_export_aiperf.json"};
    }
    LoadResult result;
    M& metrics = result.outcome.metrics;
    for (const auto& [name, mean, p50, p90, p95, p99] : kMetricLatencies) {
      metrics.*mean = time(name, "avg");
      metrics.*p50 = time(name, "p50");
      metrics.*p90 = time(name, "p90");
      metrics.*p95 = time(name, "p95");
      metrics.*p99 = time(name, "p99");
    }
    result.outcome.tier = engine::Tier::measured;
    metrics.throughput = engine::RequestsPerSecond{figure("request_throughput", "avg")};
    metrics.output = engine::TokensPerSecond{figure("output_token_throughput", "avg")};
    metrics.total = engine::TokensPerSecond{figure("total_token_throughput", "avg")};
    metrics.goodput = engine::RequestsPerSecond{figure("goodput", "avg")};
    metrics.requests_finished = figure("request_count", "avg");
    metrics.makespan = Seconds{metrics.requests_finished / metrics.throughput.value};
    result.request_rate = result.concurrency = kNoFigure;
    if (metrics.throughput.value == 0) wrong("request_throughput", "is 0: nothing was measured");
    if (!mistakes_.empty()) return mistakes_;
    return result;
  }

 private:
  void wrong(const std::string& name, std::string_view what) {
    mistakes_.push_back({{file_, 0, 0}, fmt::format("'{}' {}", name, what), ""});
  }

  // NaN where it is not there.
  double figure(const std::string& name, const char* which) {
    const auto found = root_.find(name);
    if (found == root_.end() || found->is_null()) return kNoFigure;
    if (!found->is_object()) return wrong(name, "has no unit and no mean"), kNoFigure;
    const auto value = found->find(which);
    if (value == found->end() || value->is_null()) return kNoFigure;
    if (!value->is_number()) {
      wrong(name, fmt::format("has a '{}' that is not a number", which));
    } else if (value->get<double>() < 0) {
      wrong(name, fmt::format("has a '{}' below 0", which));
    } else {
      return value->get<double>();
    }
    return kNoFigure;
  }

  Seconds time(const std::string& name, const char* which) {
    const double value = figure(name, which);
    if (std::isnan(value)) return Seconds{value};
    const json unit = root_[name].value("unit", json());
    for (const Unit& known : kUnits) {
      if (unit == known.name) return Seconds{value * known.seconds};
    }
    if (which == std::string_view("avg")) {
      wrong(name, fmt::format("is in '{}'", unit.is_string() ? unit.get<std::string>() : ""));
    }
    return Seconds{kNoFigure};
  }

  std::string file_;
  const json& root_;
  std::vector<Mistake> mistakes_;
};

}  // namespace

engine::Result<LoadResult> read_genai_perf_result(const std::filesystem::path& file) {
  const auto root = read_json_file(file);
  if (!root) return root.mistakes();
  return FigureReader(file.string(), *root).run();
}

}  // namespace tools
