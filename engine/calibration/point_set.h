// Measured calls of one family: how far each was from the fitted form, and a guess in between that
// returns every measured call exactly.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/calibration/boosted_trees.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/place_tree.h"

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
  // Of equal shapes the first is kept. What `trees` say is taken as known; the points tell the rest.
  PointSet(std::vector<MeasuredPoint> points, CoordinateList list, BoostedTrees trees = {});

  // Nothing to say anywhere. Trees without points are what relatives of a device can use of its sweep.
  bool empty() const { return points_.empty() && trees_.empty(); }
  // In the order of their coordinates, line by line.
  const std::vector<MeasuredPoint>& points() const { return points_; }
  const BoostedTrees& trees() const { return trees_; }

  // Residual at a shape: what the trees say, and what they leave over nearby. Points that differ in the
  // first coordinate only lie on a line, along which the rest is interpolated; beside lines, the
  // nearest are averaged, the weight falling with distance to zero at 1.25 times that of the fifth.
  // The rest is continuous everywhere; the trees are where their features are.
  double residual_at(const Coordinates& shape) const;

 private:
  // Its points, and what most looks at it need: where it begins and ends, and whether it has no gaps.
  struct Line {
    std::size_t first, last;
    double first_step = 0, last_step = 0;
    bool gapless = true;
  };

  // What the points say by place.
  struct Index {
    std::vector<double> steps;  // of the points along their line: linear in length, else in log
    std::vector<double> along;  // their places on it, scaled
    std::vector<double> rests;  // what the trees leave over at each
    std::vector<Line> lines;
    PlaceTree places;  // of the lines: scaled other coordinates

    explicit Index(const PointSet& set);
    // The first point of a line beyond `step`; one past its last where there is none.
    std::size_t above(const Line& line, double step) const;
    // Squared distance along the line from a place to where it was measured, one doubling being `unit`.
    double off(const Line& line, double step, double place, double unit) const;
    // What the trees leave over at a step of the line.
    double rest_on(const Line& line, double step) const;
  };
  class OnDemand;

  double rest_at(const Coordinates& shape) const;

  std::vector<Coordinate> list_;
  BoostedTrees trees_;
  std::vector<MeasuredPoint> points_;
  std::shared_ptr<OnDemand> index_;  // null where there are no points
};

}  // namespace engine
