#include "engine/calibration/place_tree.h"

#include <algorithm>
#include <numeric>

namespace engine {
namespace {

constexpr std::uint32_t kLeaf = 4;  // points that are looked at one by one

}  // namespace

PlaceTree::PlaceTree(const std::vector<double>& rows, std::size_t points, std::size_t dimensions)
    : dimensions_(dimensions), points_(points) {
  std::iota(points_.begin(), points_.end(), 0u);
  if (points > 0) build(0, std::uint32_t(points), rows);
  for (const std::uint32_t point : points_) {
    const auto row = rows.begin() + std::ptrdiff_t(point * dimensions);
    rows_.insert(rows_.end(), row, row + std::ptrdiff_t(dimensions));
  }
}

void PlaceTree::build(std::uint32_t first, std::uint32_t last, const std::vector<double>& rows) {
  const std::size_t number = nodes_.size();
  nodes_.push_back({.first = first, .last = last});
  const auto at = [&](std::uint32_t point, std::size_t axis) {
    return rows[point * dimensions_ + axis];
  };
  // The widest axis is cut at its median.
  std::size_t widest = 0;
  double width = 0;
  for (std::size_t axis = 0; axis < dimensions_; ++axis) {
    const auto [low, high] = std::minmax_element(
        points_.begin() + first, points_.begin() + last,
        [&](std::uint32_t a, std::uint32_t b) { return at(a, axis) < at(b, axis); });
    if (at(*high, axis) - at(*low, axis) > width) {
      width = at(*high, axis) - at(*low, axis);
      widest = axis;
    }
  }
  if (last - first <= kLeaf || width == 0) return;
  const std::uint32_t middle = first + (last - first) / 2;
  std::nth_element(points_.begin() + first, points_.begin() + middle, points_.begin() + last,
                   [&](std::uint32_t a, std::uint32_t b) {
                     return at(a, widest) != at(b, widest) ? at(a, widest) < at(b, widest) : a < b;
                   });
  nodes_[number].axis = std::uint32_t(widest);
  nodes_[number].at = at(points_[middle], widest);
  build(first, middle, rows);
  nodes_[number].upper = std::uint32_t(nodes_.size());
  build(middle, last, rows);
}

}  // namespace engine
