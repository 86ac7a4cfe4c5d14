#include "tools/query/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

#include "engine/base/random.h"

namespace tools {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// An axis with more values than this is cut into as many parts of equal size to explain variance:
// with one row a value any axis would explain everything.
constexpr std::size_t kMostLevels = 24;

// An axis as the candidates see it.
struct Axis {
  std::string name;
  std::vector<std::uint32_t> codes;  // of each candidate
  std::vector<std::string> labels;
  std::size_t values = 0;
  bool sampled = false;         // nearly every row has a value of its own
  std::vector<double> numbers;  // of each candidate, from the setting of the axis's name; or empty
};

Axis axis_of(const RunRows& rows, const Candidates& candidates, const results::Column& column) {
  Axis axis{.name = axis_name(column.name), .sampled = column.sampled};
  Coded labels = rows.texts(column.name);
  std::vector<std::uint8_t> seen(labels.names.size() + 1);
  for (const std::uint32_t row : candidates.rows) {
    const std::uint32_t code =
        labels.codes[row] == Coded::kNone ? std::uint32_t(labels.names.size()) : labels.codes[row];
    axis.values += seen[code] == 0 ? 1 : 0;
    seen[code] = 1;
    axis.codes.push_back(code);
  }
  axis.labels = std::move(labels.names);
  axis.labels.emplace_back();
  const results::Column* setting = rows.find(axis.name);
  if (setting != nullptr && setting->type != results::ColumnType::text &&
      setting->type != results::ColumnType::boolean) {
    const std::vector<double> all = rows.numbers(axis.name);
    for (const std::uint32_t row : candidates.rows) axis.numbers.push_back(all[row]);
  }
  return axis;
}

// Replicates and seeds are numbered: the number is no amount of anything, and none of them is a better choice.
bool is_setting(const Axis& axis) { return axis.name != "replicate" && axis.name != "seed"; }

// What a sweep names brings other settings along, which then stand on axes of their own: a model its formats, an engine its host.
bool may_bring(const std::string& axis, const std::string& other) {
  struct Brought {
    std::string_view named, along;
  };
  constexpr Brought all[] = {{"model", "quant."}, {"serving", "host"}, {"train", "host"}};
  return std::ranges::any_of(all, [&](const Brought& one) {
    if (!axis.ends_with(one.named)) return false;
    const std::string role = axis.substr(0, axis.size() - one.named.size());
    return other.starts_with(role + std::string(one.along));
  });
}

// Whether the other one does not move unless this one does.
bool carries(const Axis& axis, const Axis& other) {
  std::map<std::uint32_t, std::uint32_t> along;
  for (std::size_t i = 0; i < axis.codes.size(); ++i) {
    if (along.try_emplace(axis.codes[i], other.codes[i]).first->second != other.codes[i]) {
      return false;
    }
  }
  return true;
}

bool brings(const Axis& axis, const Axis& other) {
  return may_bring(axis.name, other.name) && carries(axis, other);
}

// As members of a zip do: what one of them alone would do no point says. Of a sample, where nearly every value is one of its kind, that
// says nothing.
bool always_move_together(const Axis& axis, const Axis& other) {
  return &axis != &other && !axis.sampled && !other.sampled && carries(axis, other) &&
         carries(other, axis);
}

// Candidates that agree on every axis but one, as a number a set.
std::vector<std::uint32_t> sets_without(const std::vector<Axis>& axes, std::size_t left_out,
                                        std::size_t count) {
  std::vector<std::uint64_t> digests(count);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (a == left_out) continue;
    for (std::size_t i = 0; i < count; ++i) {
      digests[i] = engine::mixed_seed(digests[i], axes[a].codes[i]);
    }
  }
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  std::vector<std::uint32_t> sets(count);
  for (std::size_t i = 0; i < count; ++i) {
    sets[i] = known.try_emplace(digests[i], std::uint32_t(known.size())).first->second;
  }
  return sets;
}

// How many levels an axis is cut into: of a sample few enough that each has several rows.
std::size_t most_levels(const Axis& axis) {
  if (!axis.sampled) return kMostLevels;
  const auto root = std::size_t(std::sqrt(double(axis.codes.size())));
  return std::clamp<std::size_t>(root, 2, kMostLevels);
}

// Levels to compare means between: the values of the axis, or parts of equal size where they are many.
std::vector<std::uint32_t> levels_of(const Axis& axis) {
  const std::size_t most = most_levels(axis);
  if (axis.values <= most || axis.numbers.empty()) return axis.codes;
  std::vector<std::uint32_t> order(axis.codes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&axis](std::uint32_t i) { return axis.numbers[i]; });
  std::vector<std::uint32_t> levels(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    levels[order[rank]] = std::uint32_t(rank * most / order.size());
  }
  return levels;
}

// Sums of many figures leave a rest in their last digits, which is no effect.
constexpr double kRounding = 1e-12;
double without_rounding(double effect) { return std::abs(effect) < kRounding ? 0 : effect; }

double explained_share(const std::vector<double>& figure,
                       const std::vector<std::uint32_t>& levels) {
  struct Sum {
    double total = 0;
    double count = 0;
  };
  std::map<std::uint32_t, Sum> sums;
  double mean = 0;
  for (std::size_t i = 0; i < figure.size(); ++i) {
    sums[levels[i]].total += figure[i];
    sums[levels[i]].count += 1;
    mean += figure[i];
  }
  mean /= double(figure.size());
  double between = 0, whole = 0;
  for (const auto& [level, sum] : sums) {
    between += sum.count * (sum.total / sum.count - mean) * (sum.total / sum.count - mean);
  }
  double largest = 0;
  for (const double value : figure) {
    whole += (value - mean) * (value - mean);
    largest = std::max(largest, std::abs(value));
  }
  // Of a figure that is the same everywhere there is nothing to explain, though its mean may be off by a rounding.
  const double rounding = kRounding * largest;
  if (whole <= double(figure.size()) * rounding * rounding) return 0;
  return without_rounding(between / whole);
}

// Slope of the figure's logarithm over the axis's, within sets.
double slope_within(const std::vector<double>& figure, const Axis& axis,
                    const std::vector<std::uint32_t>& sets, std::size_t set_count) {
  struct Sum {
    double x = 0, y = 0, count = 0;
  };
  std::vector<Sum> sums(set_count);
  const auto usable = [&axis](std::size_t i) { return axis.numbers[i] > 0; };
  for (std::size_t i = 0; i < figure.size(); ++i) {
    if (!usable(i)) continue;
    sums[sets[i]].x += std::log(axis.numbers[i]);
    sums[sets[i]].y += figure[i];
    sums[sets[i]].count += 1;
  }
  double xy = 0, xx = 0;
  for (std::size_t i = 0; i < figure.size(); ++i) {
    if (!usable(i)) continue;
    const Sum& sum = sums[sets[i]];
    const double x = std::log(axis.numbers[i]) - sum.x / sum.count;
    xy += x * (figure[i] - sum.y / sum.count);
    xx += x * x;
  }
  return xx > 0 ? without_rounding(xy / xx) : kNone;
}

struct Extremes {
  std::uint32_t count = 0;
  double least = 0, most = 0;
  std::uint32_t best = 0;  // code of the axis
  double best_figure = 0;
};

void add_sets(AxisEffect& effect, const std::vector<double>& figure, const Axis& axis,
              const std::vector<std::uint32_t>& sets, std::size_t set_count, Better better) {
  std::vector<Extremes> extremes(set_count);
  for (std::size_t i = 0; i < figure.size(); ++i) {
    Extremes& set = extremes[sets[i]];
    const double signed_figure = better == Better::higher ? -figure[i] : figure[i];
    if (set.count == 0 || signed_figure < set.best_figure) {
      set.best = axis.codes[i];
      set.best_figure = signed_figure;
    }
    set.least = set.count == 0 ? figure[i] : std::min(set.least, figure[i]);
    set.most = set.count == 0 ? figure[i] : std::max(set.most, figure[i]);
    ++set.count;
  }
  double spread = 0;
  std::map<std::uint32_t, std::size_t> wins;
  for (const Extremes& set : extremes) {
    if (set.count < 2) continue;
    ++effect.sets;
    spread += set.most - set.least;
    if (set.most > set.least) ++wins[set.best];  // where all are alike none is best
  }
  effect.ratio = effect.sets > 0 ? std::exp(spread / double(effect.sets)) : kNone;
  const auto most_wins =
      std::ranges::max_element(wins, {}, [](const auto& win) { return win.second; });
  if (most_wins != wins.end() && is_setting(axis)) effect.best = axis.labels[most_wins->first];
}

}  // namespace

std::vector<AxisEffect> axis_effects(const RunRows& rows, const Candidates& candidates,
                                     const Objective& objective) {
  std::vector<Axis> axes;
  for (const results::Column& column : rows.axes()) {
    Axis axis = axis_of(rows, candidates, column);
    if (axis.values > 1) axes.push_back(std::move(axis));
  }
  const std::vector<Axis> all = axes;
  std::erase_if(axes, [&all](const Axis& axis) {
    return std::ranges::any_of(all, [&](const Axis& other) { return brings(other, axis); });
  });
  std::vector<double> figure;
  for (const std::uint32_t row : candidates.rows) figure.push_back(candidates.values[0][row]);
  const bool positive = std::ranges::all_of(figure, [](double value) { return value > 0; });
  if (positive)
    std::ranges::transform(figure, figure.begin(), [](double value) { return std::log(value); });

  std::vector<AxisEffect> effects;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const Axis& axis = axes[a];
    AxisEffect effect{.axis = axis.name, .values = axis.values};
    effect.share = explained_share(figure, levels_of(axis));
    std::vector<std::uint32_t> sets = sets_without(axes, a, figure.size());
    std::size_t set_count = sets.empty() ? 0 : *std::ranges::max_element(sets) + std::size_t(1);
    add_sets(effect, figure, axis, sets, set_count, objective.better);
    if (effect.sets == 0) {
      std::ranges::fill(sets, 0U);
      set_count = 1;
    }
    const bool tied = effect.sets == 0 && std::ranges::any_of(axes, [&axis](const Axis& other) {
                        return always_move_together(axis, other);
                      });
    const bool has_slope = positive && !axis.numbers.empty() && is_setting(axis) && !tied;
    effect.elasticity = has_slope ? slope_within(figure, axis, sets, set_count) : kNone;
    if (!positive) effect.ratio = kNone;
    effects.push_back(std::move(effect));
  }
  std::ranges::stable_sort(effects, std::greater<>(), &AxisEffect::share);
  return effects;
}

}  // namespace tools
