// Points in a few dimensions, arranged so that those near a place are found without looking at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
    if (!nodes_.empty()) descend(0, place, bound, visit);
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

  template <class Visit>
  void descend(std::uint32_t number, const double* place, const double& bound,
               Visit&& visit) const {
    const Node& node = nodes_[number];
    if (node.upper == 0) {
      for (std::uint32_t slot = node.first; slot < node.last; ++slot) {
        const double distance = squared(slot, place);
        if (distance < bound) visit(std::size_t(points_[slot]), distance);
      }
      return;
    }
    const double away = place[node.axis] - node.at;
    descend(away < 0 ? number + 1 : node.upper, place, bound, visit);
    if (away * away < bound) descend(away < 0 ? node.upper : number + 1, place, bound, visit);
  }

  std::size_t dimensions_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> points_;  // in the order of the leaves
  std::vector<double> rows_;           // in the same order
};

}  // namespace engine
