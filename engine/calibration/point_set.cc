#include "engine/calibration/point_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace engine {
namespace {

constexpr std::size_t kNearest = 6;
constexpr double kReach = 1.5;
constexpr double kSame = 1e-20;  // squared distance: rounding error

// Before weights, a doubling of anything is one unit of distance.
double scaled(double value, Scale scale) {
  return scale == Scale::size ? std::log2(std::max(value, 1e-3))
                              : std::log2(1 + std::max(value, 0.0));
}

// Where a shape is along a coordinate.
double place_of(const Coordinates& shape, const std::vector<Coordinate>& list, std::size_t c) {
  const Coordinate& coordinate = list[c];
  double place = scaled(shape.value[c], coordinate.scale);
  if (coordinate.with != kAlone) {
    place += coordinate.share * scaled(shape.value[coordinate.with], list[coordinate.with].scale);
  }
  return coordinate.weight * place;
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

// The smallest squared distances, in order.
class Nearest {
 public:
  Nearest() { found_.fill(std::numeric_limits<double>::infinity()); }
  double last() const { return found_.back(); }
  void take(double distance) {
    if (distance >= found_.back()) return;
    std::size_t place = kNearest - 1;
    for (; place > 0 && found_[place - 1] > distance; --place) found_[place] = found_[place - 1];
    found_[place] = distance;
  }

 private:
  std::array<double, kNearest> found_;
};

}  // namespace

PointSet::PointSet(std::vector<MeasuredPoint> points, CoordinateList list)
    : list_(list.begin(), list.end()) {
  std::stable_sort(points.begin(), points.end(), before);
  points.erase(std::unique(points.begin(), points.end(),
                           [](const MeasuredPoint& a, const MeasuredPoint& b) {
                             return a.shape.value == b.shape.value;
                           }),
               points.end());
  points_ = std::move(points);
  const Scale scale = list_.empty() ? Scale::size : list_[0].scale;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double value = points_[i].shape.value[0];
    steps_.push_back(step_of(value, scale));
    along_.push_back(place_of(points_[i].shape, list_, 0));
    if (i > 0 && same_line(points_[i - 1], points_[i])) {
      lines_.back().last = i;
      continue;
    }
    lines_.push_back({i, i});
    for (std::size_t c = 1; c < list_.size(); ++c) {
      places_.push_back(place_of(points_[i].shape, list_, c));
    }
  }
}

double PointSet::aside(std::size_t line, const double* place) const {
  const std::size_t others = list_.size() - 1;
  const double* row = places_.data() + line * others;
  double sum = 0;
  for (std::size_t i = 0; i < others; ++i) sum += (row[i] - place[i + 1]) * (row[i] - place[i + 1]);
  return sum;
}

PointSet::View PointSet::view(std::size_t line, double aside, double step, double place,
                              std::size_t& guess) const {
  const Line& range = lines_[line];
  std::size_t above = range.first + guess;
  const bool found = above <= range.last && along_[above] >= place &&
                     (above == range.first || along_[above - 1] < place);
  if (!found) {
    const auto begin = along_.begin() + std::ptrdiff_t(range.first);
    const auto end = along_.begin() + std::ptrdiff_t(range.last) + 1;
    above = std::size_t(std::lower_bound(begin, end, place) - along_.begin());
    guess = above - range.first;
  }
  const auto off = [&](std::size_t point) {
    return aside + (along_[point] - place) * (along_[point] - place);
  };
  if (above == range.first) return {off(above), points_[above].residual};
  const std::size_t below = above - 1;
  if (above > range.last) return {off(below), points_[below].residual};
  const double share = (step - steps_[below]) / (steps_[above] - steps_[below]);
  return {std::min(off(below), off(above)),
          points_[below].residual * (1 - share) + points_[above].residual * share};
}

double PointSet::residual_at(const Coordinates& shape) const {
  if (points_.empty()) return 0;
  std::array<double, kMostCoordinates> place;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    place[i] = place_of(shape, list_, i);
  }
  const double step = step_of(shape.value[0], list_[0].scale);
  Nearest nearest;
  std::size_t guess = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const double from_line = aside(i, place.data());
    if (from_line >= nearest.last()) continue;
    const View seen = view(i, from_line, step, place[0], guess);
    if (seen.squared < kSame) return seen.residual;
    nearest.take(seen.squared);
  }
  const double reach = nearest.last() * kReach * kReach;
  const double radius = std::sqrt(reach);
  double weights = 0, sum = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const double from_line = aside(i, place.data());
    if (from_line >= reach) continue;
    const View seen = view(i, from_line, step, place[0], guess);
    if (seen.squared >= reach) continue;
    const double fade = std::isinf(radius) ? 1 : 1 - std::sqrt(seen.squared) / radius;
    const double weight = fade * fade / seen.squared;
    weights += weight;
    sum += weight * seen.residual;
  }
  return sum / weights;
}

}  // namespace engine
