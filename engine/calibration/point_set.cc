#include "engine/calibration/point_set.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

namespace engine {
namespace {

constexpr std::size_t kNearest = 3;
constexpr double kReach = 1.25;
constexpr double kSame = 1e-20;  // squared distance: rounding error
// Points of a line nearer than this, in doublings, leave no gap between them.
constexpr double kGap = 1.01;
// Where trees speak, lines farther than a doubling or so have little to add: a vote for nothing, as
// heavy as a line one unit away.
constexpr double kDoubt = 1;

using Places = std::array<double, kMostCoordinates>;

// Before weights, a doubling of anything is one unit of distance.
double scaled(double value, Scale scale) {
  return scale == Scale::size ? std::log2(std::max(value, 1e-3))
                              : std::log2(1 + std::max(value, 0.0));
}

// Where a shape is along each coordinate.
Places places_of(const Coordinates& shape, const std::vector<Coordinate>& list) {
  Places logs, places;
  for (std::size_t c = 0; c < list.size(); ++c) logs[c] = scaled(shape.value[c], list[c].scale);
  for (std::size_t c = 0; c < list.size(); ++c) {
    const double with = list[c].with == kAlone ? 0 : list[c].share * logs[list[c].with];
    places[c] = list[c].weight * (logs[c] + with);
  }
  return places;
}

// The variable that residuals are linear in along a line.
double step_of(double value, Scale scale) {
  return scale == Scale::length ? value : scaled(value, scale);
}

// Lines are told apart by everything but the first coordinate.
bool same_line(const MeasuredPoint& a, const MeasuredPoint& b) {
  return std::equal(a.shape.value.begin() + 1, a.shape.value.end(), b.shape.value.begin() + 1);
}

bool before(const MeasuredPoint& a, const MeasuredPoint& b) {
  if (same_line(a, b)) return a.shape.value[0] < b.shape.value[0];
  return std::lexicographical_compare(a.shape.value.begin() + 1, a.shape.value.end(),
                                      b.shape.value.begin() + 1, b.shape.value.end());
}

// The lines around a shape: those within reach of it, which is known only when all were seen.
class Around {
 public:
  Around() { nearest_.fill(std::numeric_limits<double>::infinity()); }

  // Squared; lines farther than this do not matter.
  const double& reach() const { return reach_; }

  void take(double distance, std::size_t line) {
    if (distance >= reach_) return;
    std::size_t place = kNearest - 1;
    for (; place > 0 && nearest_[place - 1] > distance; --place) {
      nearest_[place] = nearest_[place - 1];
    }
    if (distance < nearest_[place]) nearest_[place] = distance;
    reach_ = nearest_.back() * kReach * kReach;
    if (count_ == seen_.size()) forget_the_far();
    if (count_ < seen_.size()) seen_[count_++] = {distance, line};
  }
  void want_no_more() { reach_ = 0; }

  // The mean of what rest_on(line) says, and `doubt` for nothing.
  template <class RestOn>
  double mean(double doubt, const RestOn& rest_on) const {
    const double radius = std::sqrt(reach_);
    double weights = doubt, sum = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const auto& [distance, line] = seen_[i];
      if (distance >= reach_) continue;
      const double fade = std::isinf(radius) ? 1 : 1 - std::sqrt(distance) / radius;
      const double weight = fade * fade / distance;
      weights += weight;
      sum += weight * rest_on(line);
    }
    return sum / weights;
  }

 private:
  struct Seen {
    double distance;
    std::size_t line;
  };

  void forget_the_far() {
    const auto far = [this](const Seen& seen) { return seen.distance >= reach_; };
    count_ = std::size_t(std::remove_if(seen_.begin(), seen_.end(), far) - seen_.begin());
  }

  std::array<double, kNearest> nearest_;  // smallest distances, in order
  double reach_ = std::numeric_limits<double>::infinity();
  std::array<Seen, 96> seen_;
  std::size_t count_ = 0;
};

// The first of `count` rising numbers that is above `value`; without a branch that could be mispredicted.
std::size_t first_above(const double* numbers, std::size_t count, double value) {
  std::size_t first = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    const bool beyond = numbers[first + half] <= value;
    first = beyond ? first + half + 1 : first;
    count = beyond ? count - half - 1 : half;
  }
  return first;
}

}  // namespace

// Made when somebody asks first. A program reads all sweeps there are, and few of their families are asked in a run; the trees alone
// take longer at all points than it takes to read them. Of threads that ask at the same time each makes one, and the first to be done
// makes that of all: they say the same.
class PointSet::OnDemand {
 public:
  OnDemand() = default;
  OnDemand(const OnDemand&) = delete;
  OnDemand& operator=(const OnDemand&) = delete;
  ~OnDemand() { delete made_.load(std::memory_order_acquire); }
  const Index& get(const PointSet& set) {
    const Index* const made = made_.load(std::memory_order_acquire);
    return made != nullptr ? *made : make(set);
  }

 private:
  const Index& make(const PointSet& set) {
    auto mine = std::make_unique<const Index>(set);
    const Index* first = nullptr;
    if (made_.compare_exchange_strong(first, mine.get(), std::memory_order_acq_rel)) {
      return *mine.release();
    }
    return *first;
  }

  std::atomic<const Index*> made_{nullptr};  // owned
};

PointSet::PointSet(std::vector<MeasuredPoint> points, CoordinateList list, BoostedTrees trees)
    : list_(list.list.begin(), list.list.end()), trees_(std::move(trees)) {
  // Points of a file come in order.
  if (!std::ranges::is_sorted(points, before)) std::ranges::stable_sort(points, before);
  points.erase(std::unique(points.begin(), points.end(),
                           [](const MeasuredPoint& a, const MeasuredPoint& b) {
                             return a.shape.value == b.shape.value;
                           }),
               points.end());
  points_ = std::move(points);
  if (!points_.empty()) index_ = std::make_shared<OnDemand>();
}

PointSet::Index::Index(const PointSet& set) {
  const std::vector<Coordinate>& list = set.list_;
  const std::vector<MeasuredPoint>& points = set.points_;
  const Scale scale = list.empty() ? Scale::size : list[0].scale;
  std::vector<double> beside;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Places place = places_of(points[i].shape, list);
    steps.push_back(step_of(points[i].shape.value[0], scale));
    along.push_back(place[0]);
    rests.push_back(points[i].residual - set.trees_.at(points[i].shape));
    if (i > 0 && same_line(points[i - 1], points[i])) {
      lines.back().last = i;
      continue;
    }
    lines.push_back({.first = i, .last = i});
    for (std::size_t c = 1; c < list.size(); ++c) beside.push_back(place[c]);
  }
  for (Line& line : lines) {
    line.first_step = steps[line.first];
    line.last_step = steps[line.last];
    for (std::size_t i = line.first; i < line.last; ++i) {
      line.gapless = line.gapless && along[i + 1] - along[i] <= kGap * list[0].weight;
    }
  }
  places = PlaceTree(beside, lines.size(), list.empty() ? 0 : list.size() - 1);
}

std::size_t PointSet::Index::above(const Line& line, double step) const {
  return line.first + first_above(steps.data() + line.first, line.last + 1 - line.first, step);
}

double PointSet::Index::off(const Line& line, double step, double place, double unit) const {
  const auto to = [&](std::size_t point) {
    return (place - along[point]) * (place - along[point]);
  };
  if (step < line.first_step) return to(line.first);
  if (step >= line.last_step) return to(line.last);
  if (line.gapless) return 0;
  const std::size_t next = above(line, step);
  const bool gap = along[next] - along[next - 1] > kGap * unit;
  return gap ? std::min(to(next - 1), to(next)) : 0;
}

double PointSet::Index::rest_on(const Line& line, double step) const {
  if (step < line.first_step) return rests[line.first];
  if (step >= line.last_step) return rests[line.last];
  const std::size_t next = above(line, step), below = next - 1;
  const double share = (step - steps[below]) / (steps[next] - steps[below]);
  return rests[below] * (1 - share) + rests[next] * share;
}

double PointSet::rest_at(const Coordinates& shape) const {
  const Places places = places_of(shape, list_);
  const double step = step_of(shape.value[0], list_[0].scale);
  const Index& index = index_->get(*this);
  Around around;
  const Line* measured = nullptr;
  index.places.visit(places.data() + 1, around.reach(), [&](std::size_t number, double aside) {
    const Line& line = index.lines[number];
    const double distance = aside + index.off(line, step, places[0], list_[0].weight);
    around.take(distance, number);
    if (distance >= kSame) return;
    measured = &line;
    around.want_no_more();
  });
  if (measured != nullptr) return index.rest_on(*measured, step);
  return around.mean(trees_.empty() ? 0 : kDoubt,
                     [&](std::size_t line) { return index.rest_on(index.lines[line], step); });
}

double PointSet::residual_at(const Coordinates& shape) const {
  if (points_.empty()) return trees_.at(shape);
  return trees_.at(shape) + rest_at(shape);
}

}  // namespace engine
