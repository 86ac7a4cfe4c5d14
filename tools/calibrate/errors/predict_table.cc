#include "tools/calibrate/errors/predict_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace tools {
namespace {

constexpr std::array<std::string_view, 6> kAdded = {"predicted_s",  "tier", "bound",
                                                    "extrapolated", "lo_s", "hi_s"};

void append_seconds(double value, results::TextColumn& column) {
  // Seven digits: far below any measurement's error, and half as long as all of them.
  std::array<char, 32> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 7)
          .ptr;
  column.append({text.data(), std::size_t(end - text.data())});
}

}  // namespace

PredictedTable predict_table(KernelTable table, TablePredictor& predictors) {
  PredictedTable result;
  std::vector<const Predictor*> by_impl;
  for (const std::string& impl : table.impls) by_impl.push_back(&predictors.of(impl));
  std::vector<results::TextColumn> added;
  for (const std::string_view name : kAdded) {
    added.emplace_back(std::string(name)).reserve(table.text.rows());
  }
  auto record = table.records.begin();
  for (std::size_t row = 0; row < table.text.rows(); ++row) {
    if (record == table.records.end() || record->row != row) {
      for (results::TextColumn& column : added) column.append("");
      continue;
    }
    const Prediction prediction = (*by_impl[record->impl])(record->call);
    ++record;
    ++result.predicted;
    if (prediction.extrapolated) ++result.extrapolated;
    append_seconds(prediction.seconds, added[0]);
    added[1].append(engine::name_of(prediction.tier));
    added[2].append(engine::name_of(prediction.bound));
    added[3].append(prediction.extrapolated ? "true" : "false");
    append_seconds(prediction.lo, added[4]);
    append_seconds(prediction.hi, added[5]);
  }
  result.table = std::move(table.text);
  std::erase_if(result.table.columns, [](const results::TextColumn& column) {
    return std::ranges::find(kAdded, column.name()) != kAdded.end();
  });
  for (results::TextColumn& column : added) result.table.columns.push_back(std::move(column));
  return result;
}

}  // namespace tools
