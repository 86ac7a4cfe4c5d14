// Points in a few dimensions, arranged so that those near a place are found without looking at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/calibration/coordinates.h"

namespace engine {

class PlaceTree {
 public:
  PlaceTree() = default;
  // `rows` holds `dimensions` numbers a point; none: all points are in one place.
  PlaceTree(const std::vector<double>& rows, std::size_t points, std::size_t dimensions);

  // visit(point, squared distance) for every point nearer than sqrt(bound), nearer regions first;
  // `bound` is read anew each time, so a visitor may lower it.
  template <class Visit>
  void visit(const double* place, const double& bound, Visit&& visit) const {
    std::array<double, kMostCoordinates> sides{};
    if (!nodes_.empty()) descend(0, place, bound, 0, sides.data(), visit);
  }

 private:
  struct Node {
    double at = 0;  // of the plane between its halves
    std::uint32_t axis = 0;
    std::uint32_t first = 0, last = 0;  // its points, where it is a leaf
    std::uint32_t upper = 0;            // its upper half; the lower is the next node; 0: a leaf
  };

  void build(std::uint32_t first, std::uint32_t last, const std::vector<double>& rows);

  double squared(std::uint32_t slot, const double* place) const {
    const double* row = rows_.data() + slot * dimensions_;
    double sum = 0;
    for (std::size_t i = 0; i < dimensions_; ++i) sum += (row[i] - place[i]) * (row[i] - place[i]);
    return sum;
  }

  // `away` is the squared distance to the node's region, the sum of squares of its `sides`.
  template <class Visit>
  void descend(std::uint32_t number, const double* place, const double& bound, double away,
               double* sides, Visit&& visit) const {
    const Node& node = nodes_[number];
    if (node.upper == 0) {
      for (std::uint32_t slot = node.first; slot < node.last; ++slot) {
        const double distance = squared(slot, place);
        if (distance < bound) visit(std::size_t(points_[slot]), distance);
      }
      return;
    }
    const double side = place[node.axis] - node.at;
    descend(side < 0 ? number + 1 : node.upper, place, bound, away, sides, visit);
    double& before = sides[node.axis];
    const double farther = away - before * before + side * side;
    constexpr double rounding = 1 - 1e-12;  // never leave out a point by the last digit of a sum
    if (farther * rounding >= bound) return;
    const double kept = std::exchange(before, side);
    descend(side < 0 ? node.upper : number + 1, place, bound, farther, sides, visit);
    before = kept;
  }

  std::size_t dimensions_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> points_;  // in the order of the leaves
  std::vector<double> rows_;           // in the same order
};

}  // namespace engine
