// Measured calls of one family: how far each was from the fitted form, and a guess in between that
// returns every measured call exactly and is continuous everywhere.
#pragma once

#include <cstddef>
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
  // In the order of their coordinates, line by line.
  const std::vector<MeasuredPoint>& points() const { return points_; }

  // Residual at a shape. Points that differ in the first coordinate only lie on a line, along which
  // the residual is interpolated; lines are averaged, the weight falling with the distance of their
  // nearest point to zero at 1.5 times that of the sixth nearest line.
  double residual_at(const Coordinates& shape) const;

 private:
  struct Line {
    std::size_t first, last;  // its points
  };
  // A line as seen from a shape.
  struct View {
    double squared = 0;  // distance of its nearest point
    double residual = 0;
  };

  // Squared distance of a line's direction from a place, and the rest of the view.
  double aside(std::size_t line, const double* place) const;
  // `guess` is where on the line before its neighbours were found: sweeps measure every line at the
  // same places.
  View view(std::size_t line, double aside, double step, double place, std::size_t& guess) const;

  std::vector<Coordinate> list_;
  std::vector<MeasuredPoint> points_;
  std::vector<double> steps_;  // of the points along their line: linear in length, else in log
  std::vector<double> along_;  // their places on it, scaled
  std::vector<Line> lines_;
  std::vector<double> places_;  // scaled other coordinates, one row a line
};

}  // namespace engine
