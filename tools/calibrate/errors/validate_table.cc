#include "tools/calibrate/errors/validate_table.h"

#include <fmt/core.h>

#include <map>
#include <utility>

namespace tools {
namespace {

std::string format_text(const KernelCall& call) {
  std::string text(engine::name_of(call.dtype));
  if (call.kv_dtype != Format::bf16 && call.kv_dtype != call.dtype) {
    text += "/" + std::string(engine::name_of(call.kv_dtype));
  }
  return text;
}

}  // namespace

std::vector<ErrorLine> validate_calls(const std::vector<MeasuredCall>& calls,
                                      const PredictCall& predict) {
  std::map<std::pair<engine::Family, std::string>, std::vector<Scored>> groups;
  std::vector<Scored> all;
  for (const MeasuredCall& measured : calls) {
    const Prediction prediction = predict(measured);
    const Scored scored{.measured = measured.seconds,
                        .predicted = prediction.seconds,
                        .lo = prediction.lo,
                        .hi = prediction.hi};
    groups[{measured.call.family, format_text(measured.call)}].push_back(scored);
    all.push_back(scored);
  }
  std::vector<ErrorLine> lines;
  for (const auto& [key, scored] : groups) {
    lines.push_back({std::string(engine::name_of(key.first)), key.second, error_summary(scored)});
  }
  lines.push_back({"all", "", error_summary(all)});
  return lines;
}

std::vector<ErrorLine> validate_calls(const std::vector<MeasuredCall>& calls,
                                      const Predictor& predictor) {
  return validate_calls(calls, [&](const MeasuredCall& call) { return predictor(call.call); });
}

std::string error_table_text(const std::vector<ErrorLine>& lines) {
  std::string text = fmt::format("{:<15} {:<17} {}\n", "family", "format", error_heading());
  for (const ErrorLine& line : lines) {
    text += fmt::format("{:<15} {:<17} {}\n", line.family, line.format, error_text(line.errors));
  }
  return text;
}

results::TextTable error_table(const std::vector<ErrorLine>& lines) {
  results::TextTable table;
  for (const char* name : {"family", "format", "rows", "mean_error", "median_error", "p90_error",
                           "bias", "rank_correlation", "coverage_90"}) {
    table.columns.emplace_back(name);
  }
  for (const ErrorLine& line : lines) {
    const ErrorSummary& errors = line.errors;
    std::size_t column = 0;
    table.columns[column++].append(line.family);
    table.columns[column++].append(line.format);
    table.columns[column++].append(std::to_string(errors.rows));
    for (const double value : {errors.mean, errors.median, errors.p90, errors.bias,
                               errors.rank_correlation, errors.coverage}) {
      table.columns[column++].append(fmt::format("{}", value));
    }
  }
  return table;
}

}  // namespace tools
