#include "tools/calibrate/tables/table_checks.h"

#include <fmt/core.h>

#include <map>

#include "tools/calibrate/tables/predict.h"
#include "tools/calibrate/tables/quantile.h"

namespace tools {
namespace {

// Kernels of all our tables take between 0.3 (warm cache) and 40 times their roofline in the median of
// a family; a wrong unit is a factor of a thousand.
constexpr double kTooFast = 0.05;
constexpr double kTooSlow = 250;

std::string place(const engine::Location& where) {
  return fmt::format("{}:{}:{}", where.file, where.line, where.column);
}

std::string unit_hint(double ratio) {
  if (ratio > 1e5) return "are they microseconds? the column is in seconds";
  if (ratio > kTooSlow) return "are they milliseconds? the column is in seconds";
  return "is this the right device, and are the times of one call?";
}

}  // namespace

std::vector<engine::Mistake> unit_mistakes(const KernelTable& table, const engine::Device& device) {
  struct Ratios {
    std::vector<double> values;
    std::uint32_t row = 0;
  };
  std::map<engine::Family, Ratios> families;
  const Predictor roofline(device, nullptr);
  for (const KernelRecord& record : table.records) {
    const double least = roofline(record.call).seconds;
    Ratios& ratios = families[record.call.family];
    if (ratios.values.empty()) ratios.row = record.row;
    if (least > 0) ratios.values.push_back(record.seconds / least);
  }
  std::vector<engine::Mistake> mistakes;
  const std::size_t column = table.text.find("seconds").value_or(0);
  for (auto& [family, ratios] : families) {
    if (ratios.values.empty()) continue;
    const double ratio = quantile(ratios.values, 0.5);
    if (ratio >= kTooFast && ratio <= kTooSlow) continue;
    mistakes.push_back(
        {table.text.where(ratios.row, column),
         fmt::format("half of the {} rows take {} {:.3g} times what the datasheet of {} allows",
                     engine::name_of(family), ratio > 1 ? "more than" : "less than", ratio,
                     device.name),
         unit_hint(ratio)});
  }
  return mistakes;
}

std::vector<std::string> remarks_on(const KernelTable& table) {
  std::vector<std::string> remarks;
  for (const SkippedRows& skipped : table.skipped) {
    remarks.push_back(fmt::format("{}: {} has no model here: {} rows left out",
                                  place(skipped.first), skipped.what, skipped.rows));
  }
  return remarks;
}

std::vector<std::string> remarks_on(const GatheredCalls& calls) {
  if (calls.conflicts == 0) return {};
  return {
      fmt::format("{}: {} calls were measured more than once with times that differ by more than "
                  "10% (up to {:.2g}x): their median counts",
                  place(calls.first_conflict), calls.conflicts, calls.worst_conflict)};
}

}  // namespace tools
