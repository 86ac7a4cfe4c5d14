#include "tools/import/vllm_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "sweep/input/read_text.h"
#include "tools/import/json_file.h"

namespace tools {
namespace {

using engine::Mistake;
using engine::Seconds;
using nlohmann::json;

constexpr double kNotStated = std::numeric_limits<double>::quiet_NaN();

// The p-th percentile of sorted samples, by linear interpolation between ranks, as NumPy and so vLLM do.
double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return kNotStated;
  const double rank = share * double(sorted.size() - 1);
  const std::size_t below = std::size_t(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (rank - double(below));
}

// Mean and percentiles of one latency: where they go, and what vLLM and SGLang call it.
struct Latency {
  const char* name;
  const char* of_sglang;
  Seconds engine::Metrics::*mean;
  Seconds engine::Metrics::*p50;
  Seconds engine::Metrics::*p90;
  Seconds engine::Metrics::*p95;
  Seconds engine::Metrics::*p99;
};
using M = engine::Metrics;
constexpr Latency kReportedLatencies[] = {
    {"ttft", "ttft", &M::ttft, &M::ttft_p50, &M::ttft_p90, &M::ttft_p95, &M::ttft_p99},
    {"tpot", "tpot", &M::tpot, &M::tpot_p50, &M::tpot_p90, &M::tpot_p95, &M::tpot_p99},
    {"itl", "itl", &M::itl, &M::itl_p50, &M::itl_p90, &M::itl_p95, &M::itl_p99},
    {"e2el", "e2e_latency", &M::e2e, &M::e2e_p50, &M::e2e_p90, &M::e2e_p95, &M::e2e_p99},
};

// Samples of the four, in the order of kReportedLatencies.
using Samples = std::array<std::vector<double>, 4>;

class ResultReader {
 public:
  ResultReader(std::string file, const json& root, const char* kind)
      : file_(std::move(file)), root_(root), kind_(kind) {}

  engine::Result<LoadResult> run() {
    if (!root_.is_object() || !root_.contains("completed") || !root_.contains("duration")) {
      return Mistake{{file_, 0, 0},
                     "this is not " + std::string(kind_),
                     "it has no 'completed' and 'duration'"};
    }
    LoadResult result;
    engine::Metrics& metrics = result.outcome.metrics;
    result.outcome.tier = engine::Tier::measured;
    result.request_rate = stated("request_rate");
    result.concurrency = stated("max_concurrency");
    metrics.requests_finished = number("completed");
    metrics.makespan = Seconds{number("duration")};
    metrics.throughput = engine::RequestsPerSecond{number("request_throughput")};
    metrics.output = engine::TokensPerSecond{number("output_throughput")};
    metrics.total = engine::TokensPerSecond{number("total_token_throughput")};
    if (std::isnan(metrics.total.value)) {  // SGLang's has its parts
      metrics.total = engine::TokensPerSecond{number("input_throughput")} + metrics.output;
    }
    metrics.goodput = engine::RequestsPerSecond{number("request_goodput")};
    if (std::isnan(metrics.goodput.value)) {
      metrics.goodput = engine::RequestsPerSecond{number("request_goodput:")};
    }
    if (root_.contains("ttfts")) {
      read_requests(result);
    } else {
      for (const Latency& latency : kReportedLatencies) read_summary(latency, metrics);
    }
    for (const char* name : {"completed", "duration"})
      if (number(name) == 0) wrong("'" + std::string(name) + "' is 0: nothing was measured");
    if (!mistakes_.empty()) return mistakes_;
    return result;
  }

 private:
  void wrong(std::string what) { mistakes_.push_back({{file_, 0, 0}, std::move(what), ""}); }

  // NaN where it is not there.
  double number(const std::string& name) {
    const auto found = root_.find(name);
    if (found == root_.end() || found->is_null()) return kNotStated;
    if (!found->is_number()) {
      wrong("'" + name + "' is not a number");
    } else if (found->get<double>() < 0) {
      wrong("'" + name + "' is below 0");
    } else {
      return found->get<double>();
    }
    return kNotStated;
  }

  // The same of a setting, which may be a word: "inf".
  double stated(const std::string& name) {
    const auto found = root_.find(name);
    return found == root_.end() || !found->is_number() ? kNotStated : found->get<double>();
  }

  void read_summary(const Latency& latency, engine::Metrics& metrics) {
    const std::string of_sglang = latency.of_sglang;
    const bool theirs = root_.contains("mean_" + of_sglang + "_ms");
    const std::string name = theirs ? of_sglang : latency.name;
    const auto ms = [&](const std::string& which) {
      return Seconds{number(which + "_" + name + "_ms") * 1e-3};
    };
    metrics.*latency.mean = ms("mean");
    metrics.*latency.p50 = ms("median");
    metrics.*latency.p90 = ms("p90");
    metrics.*latency.p95 = ms("p95");
    metrics.*latency.p99 = ms("p99");
  }

  // A time or a count of tokens; moments, which are counted from anywhere, are so as well.
  static bool is_length(const json& value) { return value.is_number() && value.get<double>() >= 0; }

  // A list with a number (or, of `itls`, a list of numbers) for each request.
  const json* list(const std::string& name, std::size_t size) {
    const auto found = root_.find(name);
    if (found == root_.end()) return wrong("there are 'ttfts', but no '" + name + "'"), nullptr;
    if (!found->is_array() || found->size() != size) {
      return wrong("'" + name + "' is not a list of " + std::to_string(size) + ", as 'ttfts' is"),
             nullptr;
    }
    for (std::size_t i = 0; i < size; ++i) {
      const bool sound = name == "itls"
                             ? (*found)[i].is_array() && std::ranges::all_of((*found)[i], is_length)
                             : is_length((*found)[i]);
      if (!sound)
        return wrong("'" + name + "' of request " + std::to_string(i) + " is damaged"), nullptr;
    }
    return &*found;
  }

  void read_requests(LoadResult& result) {
    const json& first = root_["ttfts"];
    if (!first.is_array()) return wrong("'ttfts' is not a list");
    const std::size_t count = first.size();
    const json* ttfts = list("ttfts", count);
    const json* itls = list("itls", count);
    const json* prompts = list("input_lens", count);
    const json* outputs = list("output_lens", count);
    const json* starts = root_.contains("start_times") ? list("start_times", count) : nullptr;
    if (!mistakes_.empty()) return;
    result.detailed = true;
    result.timed = starts != nullptr;
    Samples samples;
    double origin = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; starts != nullptr && i < count; ++i) {
      origin = std::min(origin, (*starts)[i].get<double>());
    }
    for (std::size_t i = 0; i < count; ++i) {
      engine::RequestRow row{.number = std::int64_t(i)};
      row.prompt_tokens = (*prompts)[i].get<std::int64_t>();
      row.output_tokens = (*outputs)[i].get<std::int64_t>();
      row.arrival = Seconds{starts != nullptr ? (*starts)[i].get<double>() - origin : 0};
      const bool answered = row.output_tokens > 0 && !failed(i);
      row.end = answered ? engine::RequestEnd::finished : engine::RequestEnd::refused;
      row.measured = answered;
      row.scheduled = row.first_token = row.finish = Seconds{kNotStated};
      if (answered) add_answered((*ttfts)[i].get<double>(), (*itls)[i], row, samples);
      result.outcome.requests.push_back(row);
    }
    for (std::size_t i = 0; i < samples.size(); ++i)
      summarise(kReportedLatencies[i], samples[i], result.outcome.metrics);
  }

  bool failed(std::size_t request) const {
    const auto errors = root_.find("errors");
    return errors != root_.end() && errors->is_array() && request < errors->size() &&
           (*errors)[request].is_string() &&
           !(*errors)[request].get_ref<const std::string&>().empty();
  }

  static void add_answered(double ttft, const json& gaps, engine::RequestRow& row,
                           Samples& samples) {
    double decoding = 0;
    for (const json& gap : gaps) {
      samples[2].push_back(gap.get<double>());
      decoding += gap.get<double>();
    }
    row.first_token = row.arrival + Seconds{ttft};
    row.finish = row.first_token + Seconds{decoding};
    samples[0].push_back(ttft);
    if (row.output_tokens > 1) samples[1].push_back(decoding / double(row.output_tokens - 1));
    samples[3].push_back(ttft + decoding);
  }

  static void summarise(const Latency& latency, std::vector<double>& samples,
                        engine::Metrics& metrics) {
    std::ranges::sort(samples);
    double sum = 0;
    for (const double sample : samples) sum += sample;
    metrics.*latency.mean = Seconds{samples.empty() ? kNotStated : sum / double(samples.size())};
    metrics.*latency.p50 = Seconds{percentile(samples, 0.5)};
    metrics.*latency.p90 = Seconds{percentile(samples, 0.9)};
    metrics.*latency.p95 = Seconds{percentile(samples, 0.95)};
    metrics.*latency.p99 = Seconds{percentile(samples, 0.99)};
  }

  std::string file_;
  const json& root_;
  const char* kind_;
  std::vector<Mistake> mistakes_;
};

}  // namespace

std::string contradiction(const LoadResult& result, const engine::Load& load) {
  using engine::ArrivalKind;
  const auto differ = [](double stated, double expected) {
    return std::abs(stated - expected) > 1e-3 * expected;  // false where nothing is stated
  };
  const bool at_a_rate = load.arrivals == ArrivalKind::poisson ||
                         load.arrivals == ArrivalKind::gamma ||
                         load.arrivals == ArrivalKind::deterministic;
  if (at_a_rate && load.turns == 1 && differ(result.request_rate, load.rate.value)) {
    return fmt::format("it was measured at {} requests a second", result.request_rate);
  }
  if (load.arrivals == ArrivalKind::closed && load.kv_fraction == 0 &&
      differ(result.concurrency, double(load.clients))) {
    return fmt::format("it was measured with {} requests at a time", result.concurrency);
  }
  return "";
}

engine::Result<LoadResult> read_vllm_result(const std::filesystem::path& file) {
  const auto root = read_json_file(file);
  if (!root) return root.mistakes();
  return ResultReader(file.string(), *root, "a result of 'vllm bench serve --save-result'").run();
}

engine::Result<LoadResult> read_sglang_result(const std::filesystem::path& file) {
  const auto text = sweep::read_table_text(file);
  if (!text) return text.mistakes();
  // Every call of it adds a line.
  std::string_view rest = *text;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  if (const auto others = std::ranges::count(rest, '\n'); others > 0) {
    return Mistake{{file.string(), 2, 1},
                   fmt::format("the file has {} results, one a line", others + 1),
                   "give each its own file, as in 'sed -n 2p FILE > second.jsonl'"};
  }
  const auto root = read_json_file(file);
  if (!root) return root.mistakes();
  return ResultReader(file.string(), *root, "a result of 'sglang.bench_serving --output-file'")
      .run();
}

}  // namespace tools
