#include "tools/calibrate/fit/correction_trees.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "tools/calibrate/fit/folds.h"
#include "tools/calibrate/fit/tree_fit.h"
#include "tools/calibrate/tables/predict.h"

namespace tools {
namespace {

// Times of engines repeat to a few percent, and relatives are not quite alike: slower learning from
// fuller leaves than where one device's own sweep is to be met exactly. Kernels of decode attention
// that do not split the context are 10 to 30 times slower, by rules worth knowing; experts that are so
// much slower are bad luck of a tuner.
TreeOptions tree_options(engine::Features features) {
  return {.trees = 100,
          .rate = 0.25,
          .caution = 3,
          .most_points = 16000,
          .most_residual = features == engine::Features::decode ? 3.0 : 1.0};
}

// The coordinates that a model fixes, as opposed to those a batch does.
std::vector<double> fixed_part(const engine::Coordinates& shape, engine::Features features) {
  struct Range {
    std::size_t first, last;
  };
  const auto [first, last] = [&]() -> Range {
    switch (features) {
      case engine::Features::product:
        return {1, 3};  // n, k
      case engine::Features::prefill:
        return {3, shape.count};  // heads, width, window
      case engine::Features::decode:
        return {2, shape.count};
      case engine::Features::experts:
        return {1, 6};  // all but tokens and skew
      case engine::Features::none:
        break;
    }
    return {0, 0};
  }();
  return {shape.value.begin() + std::ptrdiff_t(first), shape.value.begin() + std::ptrdiff_t(last)};
}

// Calls of one model's shape are together.
std::vector<std::size_t> folds_of(const std::vector<engine::MeasuredPoint>& points,
                                  engine::Features features) {
  std::vector<std::vector<double>> shapes;
  for (const auto& point : points) shapes.push_back(fixed_part(point.shape, features));
  return folds_by_shape(shapes);
}

}  // namespace

std::vector<Scored> add_trees(engine::Calibration& calibration,
                              const std::vector<Sample>& samples) {
  const Sample& any = samples.front();
  const engine::OwnSlot slot = engine::own_slot(calibration, any.family, any.op, *any.device);
  slot.facts->points = {};
  const engine::Features features = slot.coordinates.features;
  const double processors = double(any.device->multiprocessors);
  const TreeOptions options = tree_options(features);

  const Predictor form(*any.device, &calibration);
  std::vector<Scored> scored;
  std::vector<engine::MeasuredPoint> points;
  for (const Sample& sample : samples) {
    const double predicted = form(sample.family, sample.op).seconds;
    scored.push_back({.measured = sample.seconds, .predicted = predicted});
    points.push_back({.shape = engine::coordinates_of(sample.family, sample.op),
                      .residual = std::log(sample.seconds / predicted)});
  }
  const std::vector<std::size_t> folds = folds_of(points, features);
  for (std::size_t left = 0; left < kFolds; ++left) {
    std::vector<engine::MeasuredPoint> seen;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (folds[i] != left) seen.push_back(points[i]);
    }
    const engine::BoostedTrees trees = fit_trees(seen, features, processors, options);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (folds[i] == left) scored[i].predicted *= std::exp(trees.at(points[i].shape));
    }
  }
  slot.facts->points =
      engine::PointSet({}, slot.coordinates, fit_trees(points, features, processors, options));
  return scored;
}

}  // namespace tools
