// Measured calls of one family: how far each was from the fitted form, and a guess in between that
// returns every measured call exactly and is continuous everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/calibration/coordinates.h"

namespace engine {

struct MeasuredPoint {
  Coordinates shape;
  double residual = 0;  // log of measured over fitted time

  bool operator==(const MeasuredPoint& other) const {
    return shape.value == other.shape.value && residual == other.residual;
  }
};

class PointSet {
 public:
  PointSet() = default;
  // Of equal shapes the first is kept.
  PointSet(std::vector<MeasuredPoint> points, CoordinateList list);

  bool empty() const { return points_.empty(); }
  // As given, in the order of the search tree.
  const std::vector<MeasuredPoint>& points() const { return points_; }

  // Residual at a shape: the measured one where it was measured, else a weighted mean of those near,
  // the weight falling with distance to zero at 1.5 times the distance of the sixth nearest.
  double residual_at(const Coordinates& shape) const;

 private:
  void build(std::size_t first, std::size_t last);
  double distance(std::size_t point, const double* place) const;
  template <class Take>
  void search(std::size_t first, std::size_t last, const double* place, Take& take) const;

  std::vector<Coordinate> list_;
  std::vector<MeasuredPoint> points_;
  std::vector<double> places_;       // scaled coordinates, one row a point
  std::vector<std::uint8_t> split_;  // the coordinate a subtree is divided by
};

}  // namespace engine
