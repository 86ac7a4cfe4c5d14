#include "tools/calibrate/fit/tree_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include <fmt/core.h>

namespace tools {
namespace {

using engine::kTreeDepth;
using engine::kTreeLeaves;

// Six digits: a limit is written to a file, and what is fitted must be what is read.
double short_number(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

// One feature of all points: where it can be split, and on which side of each limit a point lies.
struct Column {
  std::vector<double> limits;       // ascending
  std::vector<std::uint8_t> above;  // how many limits a point's value is above
};

Column column_of(const std::vector<double>& values, std::size_t most) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  std::vector<double> distinct = sorted;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  Column column;
  if (distinct.size() <= most + 1) {
    for (std::size_t i = 1; i < distinct.size(); ++i) {
      column.limits.push_back(short_number((distinct[i - 1] + distinct[i]) / 2));
    }
  } else {
    for (std::size_t i = 1; i <= most; ++i) {
      const std::size_t place = i * sorted.size() / (most + 1);
      column.limits.push_back(short_number((sorted[place - 1] + sorted[place]) / 2));
    }
  }
  column.limits.erase(std::unique(column.limits.begin(), column.limits.end()), column.limits.end());
  for (const double value : values) {
    // A value is above the limits that are smaller than it.
    const auto first = std::ranges::lower_bound(column.limits, value);
    column.above.push_back(std::uint8_t(first - column.limits.begin()));
  }
  return column;
}

struct Tally {
  double sum = 0;
  double count = 0;
};

struct Question {
  std::size_t feature = 0;
  std::size_t limit = 0;
  double gain = -1;
};

class Boosting {
 public:
  Boosting(std::vector<Column> columns, std::vector<double> targets, const TreeOptions& options)
      : columns_(std::move(columns)), left_(std::move(targets)), options_(options) {}

  void grow(engine::BoostedTrees& trees) {
    std::vector<std::uint8_t> leaf(left_.size(), 0);
    for (std::size_t level = 0; level < kTreeDepth; ++level) {
      const Question best = best_question(leaf, std::size_t(1) << level);
      const Column& column = columns_[best.feature];
      trees.asked.push_back(std::uint8_t(best.feature));
      trees.limit.push_back(column.limits[best.limit]);
      for (std::size_t i = 0; i < leaf.size(); ++i) {
        leaf[i] = std::uint8_t(leaf[i] | (column.above[i] > best.limit) << level);
      }
    }
    std::array<Tally, kTreeLeaves> tallies{};
    for (std::size_t i = 0; i < leaf.size(); ++i) {
      tallies[leaf[i]].sum += left_[i];
      ++tallies[leaf[i]].count;
    }
    std::array<double, kTreeLeaves> taken;
    for (std::size_t i = 0; i < kTreeLeaves; ++i) {
      const double mean = tallies[i].sum / (tallies[i].count + options_.caution);
      const auto units = std::int16_t(std::lround(options_.rate * mean / engine::kLeafUnit));
      trees.leaves.push_back(units);
      taken[i] = units * engine::kLeafUnit;
    }
    for (std::size_t i = 0; i < leaf.size(); ++i) left_[i] -= taken[leaf[i]];
  }

 private:
  // The split of all leaves at once that explains most of what is left.
  Question best_question(const std::vector<std::uint8_t>& leaf, std::size_t leaves) {
    Question best;
    std::vector<double> gains;
    for (std::size_t feature = 0; feature < columns_.size(); ++feature) {
      const Column& column = columns_[feature];
      const std::size_t bins = column.limits.size() + 1;
      if (bins == 1) continue;
      tallies_.assign(leaves * bins, {});
      for (std::size_t i = 0; i < leaf.size(); ++i) {
        Tally& tally = tallies_[leaf[i] * bins + column.above[i]];
        tally.sum += left_[i];
        ++tally.count;
      }
      gains.assign(bins - 1, 0);
      for (std::size_t number = 0; number < leaves; ++number) {
        const Tally* row = tallies_.data() + number * bins;
        Tally all;
        for (std::size_t bin = 0; bin < bins; ++bin) {
          all.sum += row[bin].sum;
          all.count += row[bin].count;
        }
        if (all.count == 0) continue;
        Tally below;
        for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
          below.sum += row[bin].sum;
          below.count += row[bin].count;
          gains[bin] +=
              explained(below) + explained({all.sum - below.sum, all.count - below.count});
        }
      }
      for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
        if (gains[bin] > best.gain) best = {feature, bin, gains[bin]};
      }
    }
    return best;
  }

  double explained(const Tally& tally) const {
    return tally.sum * tally.sum / (tally.count + options_.caution);
  }

  std::vector<Column> columns_;
  std::vector<double> left_;
  TreeOptions options_;
  std::vector<Tally> tallies_;
};

}  // namespace

engine::BoostedTrees fit_trees(const std::vector<engine::MeasuredPoint>& points,
                               engine::Features features, double processors,
                               const TreeOptions& options) {
  if (features == engine::Features::none || points.size() < kLeastForTrees) return {};
  const std::size_t count = std::min(points.size(), options.most_points);
  std::vector<std::vector<double>> values;
  std::vector<double> targets;
  for (std::size_t i = 0; i < count; ++i) {
    const engine::MeasuredPoint& point = points[i * points.size() / count];
    const engine::FeatureValues all = engine::features_of(features, point.shape, processors);
    values.resize(all.count);
    for (std::size_t f = 0; f < all.count; ++f) values[f].push_back(all.value[f]);
    targets.push_back(std::clamp(point.residual, -options.most_residual, options.most_residual));
  }
  std::vector<Column> columns;
  for (const auto& column : values) columns.push_back(column_of(column, options.limits));
  const bool alike =
      std::ranges::all_of(columns, [](const Column& column) { return column.limits.empty(); });
  if (alike) return {};
  engine::BoostedTrees trees{.features = features, .processors = processors};
  Boosting boosting(std::move(columns), std::move(targets), options);
  for (std::size_t tree = 0; tree < options.trees; ++tree) boosting.grow(trees);
  return trees;
}

}  // namespace tools
