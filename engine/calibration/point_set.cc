#include "engine/calibration/point_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace engine {
namespace {

constexpr std::size_t kNearest = 6;
constexpr double kReach = 1.5;
// Tokens that are as far apart as a doubling of any other size.
constexpr double kLengthUnit = 2048;

double scaled(double value, Scale scale) {
  switch (scale) {
    case Scale::size:
      return std::log2(std::max(value, 1e-3));
    case Scale::amount:
      return std::log2(1 + std::max(value, 0.0));
    case Scale::length:
      // Linear, with short sequences drawn apart: the first tokens matter more than the later ones.
      return value / kLengthUnit + 0.5 * std::log2(1 + value);
  }
  return value;
}

// Squared distances of the nearest points so far, in order.
class Nearest {
 public:
  double limit() const { return found_[kNearest - 1]; }
  double closest() const { return found_[0]; }
  std::size_t closest_point() const { return point_; }
  void operator()(std::size_t point, double distance) {
    if (distance >= limit()) return;
    if (distance < found_[0]) point_ = point;
    std::size_t place = kNearest - 1;
    for (; place > 0 && found_[place - 1] > distance; --place) found_[place] = found_[place - 1];
    found_[place] = distance;
  }

 private:
  std::array<double, kNearest> found_ = filled();
  std::size_t point_ = 0;
  static std::array<double, kNearest> filled() {
    std::array<double, kNearest> all;
    all.fill(std::numeric_limits<double>::infinity());
    return all;
  }
};

// Weighted mean of residuals within a radius; an infinite one weighs by distance alone.
struct Mean {
  const std::vector<MeasuredPoint>& points;
  double radius_squared;
  double radius;
  double weights = 0;
  double sum = 0;

  double limit() const { return radius_squared; }
  void operator()(std::size_t point, double distance) {
    if (distance >= radius_squared) return;
    const double d = std::sqrt(distance);
    const double fade = std::isinf(radius) ? 1 : 1 - d / radius;
    const double weight = fade * fade / distance;
    weights += weight;
    sum += weight * points[point].residual;
  }
};

}  // namespace

PointSet::PointSet(std::vector<MeasuredPoint> points, CoordinateList list)
    : list_(list.begin(), list.end()) {
  std::stable_sort(
      points.begin(), points.end(),
      [](const MeasuredPoint& a, const MeasuredPoint& b) { return a.shape.value < b.shape.value; });
  points.erase(std::unique(points.begin(), points.end(),
                           [](const MeasuredPoint& a, const MeasuredPoint& b) {
                             return a.shape.value == b.shape.value;
                           }),
               points.end());
  points_ = std::move(points);
  split_.resize(points_.size());
  build(0, points_.size());
  places_.reserve(points_.size() * list_.size());
  for (const MeasuredPoint& point : points_) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      places_.push_back(scaled(point.shape.value[i], list_[i].scale));
    }
  }
}

// The middle point of a range divides it along its widest coordinate; both halves likewise.
void PointSet::build(std::size_t first, std::size_t last) {
  if (last - first <= 1) return;
  std::size_t widest = 0;
  double most = -1;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::size_t p = first; p < last; ++p) {
      const double place = scaled(points_[p].shape.value[i], list_[i].scale);
      low = std::min(low, place);
      high = std::max(high, place);
    }
    if (high - low > most) most = high - low, widest = i;
  }
  const std::size_t middle = first + (last - first) / 2;
  const auto at = [this](std::size_t i) { return points_.begin() + std::ptrdiff_t(i); };
  std::nth_element(at(first), at(middle), at(last),
                   [widest](const MeasuredPoint& a, const MeasuredPoint& b) {
                     const auto key = [widest](const MeasuredPoint& p) {
                       return std::pair(p.shape.value[widest], p.shape.value);
                     };
                     return key(a) < key(b);
                   });
  split_[middle] = std::uint8_t(widest);
  build(first, middle);
  build(middle + 1, last);
}

double PointSet::distance(std::size_t point, const double* place) const {
  const double* row = &places_[point * list_.size()];
  double sum = 0;
  for (std::size_t i = 0; i < list_.size(); ++i) sum += (row[i] - place[i]) * (row[i] - place[i]);
  return sum;
}

template <class Take>
void PointSet::search(std::size_t first, std::size_t last, const double* place, Take& take) const {
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    take(middle, distance(middle, place));
    const std::size_t axis = split_[middle];
    const double offset = place[axis] - places_[middle * list_.size() + axis];
    const bool left = offset < 0;
    // The near half first; the far one only if it can still hold a point within reach.
    if (left) {
      search(first, middle, place, take);
    } else {
      search(middle + 1, last, place, take);
    }
    if (offset * offset >= take.limit()) return;
    if (left) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
}

double PointSet::residual_at(const Coordinates& shape) const {
  if (points_.empty()) return 0;
  std::array<double, kMostCoordinates> place;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    place[i] = scaled(shape.value[i], list_[i].scale);
  }
  Nearest nearest;
  search(0, points_.size(), place.data(), nearest);
  // Below rounding error a point is the point itself.
  if (nearest.closest() < 1e-20) return points_[nearest.closest_point()].residual;
  const double reach = nearest.limit() * kReach * kReach;
  Mean mean{points_, reach, std::sqrt(reach)};
  search(0, points_.size(), place.data(), mean);
  return mean.sum / mean.weights;
}

}  // namespace engine
