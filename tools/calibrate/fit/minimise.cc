#include "tools/calibrate/fit/minimise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tools {
namespace {

double inward(const Unknown& unknown, double value) {
  const double bounded = std::clamp(value, unknown.low, unknown.high);
  return unknown.low > 0 ? std::log(bounded) : bounded;
}

double outward(const Unknown& unknown, double place) {
  const double value = unknown.low > 0 ? std::exp(place) : place;
  return std::clamp(value, unknown.low, unknown.high);
}

// A step of the first simplex: a ratio where the search is in logarithms, else part of the interval.
double first_step(const Unknown& unknown, double size) {
  return unknown.low > 0 ? size : size * (unknown.high - unknown.low);
}

class Simplex {
 public:
  using Function = std::function<double(std::span<const double>)>;

  Simplex(const Function& function, const std::vector<Unknown>& unknowns)
      : function_(function), unknowns_(unknowns), actual_(unknowns.size()) {}

  // Searches around `start`; `spent` counts evaluations up to `limit`.
  Minimum search(const std::vector<double>& start, double size, std::size_t limit) {
    spent_ = 0;
    begin(start, size);
    while (spent_ < limit) {
      sort();
      const double spread = corners_.back().value - corners_.front().value;
      if (spread <= 1e-9 * (1e-9 + std::abs(corners_.front().value))) break;
      step();
    }
    sort();
    Minimum best{.point = corners_.front().place, .value = corners_.front().value};
    for (std::size_t i = 0; i < best.point.size(); ++i) {
      best.point[i] = outward(unknowns_[i], best.point[i]);
    }
    return best;
  }

 private:
  struct Corner {
    std::vector<double> place;
    double value = 0;
  };

  Corner at(std::vector<double> place) {
    ++spent_;
    for (std::size_t i = 0; i < place.size(); ++i) {
      actual_[i] = outward(unknowns_[i], place[i]);
      place[i] = inward(unknowns_[i], actual_[i]);
    }
    const double value = function_(actual_);
    return {std::move(place), std::isfinite(value) ? value : 1e300};
  }

  void begin(const std::vector<double>& start, double size) {
    corners_.clear();
    std::vector<double> place(start.size());
    for (std::size_t i = 0; i < start.size(); ++i) place[i] = inward(unknowns_[i], start[i]);
    corners_.push_back(at(place));
    for (std::size_t i = 0; i < start.size(); ++i) {
      std::vector<double> moved = place;
      const double step = first_step(unknowns_[i], size);
      // Away from a bound: a step onto it would leave the simplex flat.
      const bool up = place[i] + step <= inward(unknowns_[i], unknowns_[i].high);
      moved[i] += up ? step : -step;
      corners_.push_back(at(moved));
    }
  }

  void sort() {
    std::ranges::stable_sort(corners_, {}, [](const Corner& corner) { return corner.value; });
  }

  // The point on the line from the worst corner through the middle of the others.
  Corner along(const std::vector<double>& middle, double factor) {
    std::vector<double> place(middle.size());
    for (std::size_t i = 0; i < place.size(); ++i) {
      place[i] = middle[i] + factor * (corners_.back().place[i] - middle[i]);
    }
    return at(std::move(place));
  }

  void step() {
    std::vector<double> middle(unknowns_.size(), 0);
    for (std::size_t c = 0; c + 1 < corners_.size(); ++c) {
      for (std::size_t i = 0; i < middle.size(); ++i) {
        middle[i] += corners_[c].place[i] / double(corners_.size() - 1);
      }
    }
    Corner mirrored = along(middle, -1);
    Corner& worst = corners_.back();
    if (mirrored.value < corners_.front().value) {
      Corner further = along(middle, -2);
      worst = further.value < mirrored.value ? std::move(further) : std::move(mirrored);
    } else if (mirrored.value < corners_[corners_.size() - 2].value) {
      worst = std::move(mirrored);
    } else {
      Corner nearer = along(middle, mirrored.value < worst.value ? -0.5 : 0.5);
      if (nearer.value < std::min(worst.value, mirrored.value)) {
        worst = std::move(nearer);
      } else {
        shrink();
      }
    }
  }

  void shrink() {
    for (std::size_t c = 1; c < corners_.size(); ++c) {
      std::vector<double> place = corners_[c].place;
      for (std::size_t i = 0; i < place.size(); ++i) {
        place[i] = (place[i] + corners_.front().place[i]) / 2;
      }
      corners_[c] = at(std::move(place));
    }
  }

  const Function& function_;
  const std::vector<Unknown>& unknowns_;
  std::vector<double> actual_;
  std::vector<Corner> corners_;
  std::size_t spent_ = 0;
};

// Tries a step up and down each coordinate in turn; a step that helps grows, one that does not
// shrinks.
Minimum coordinate_search(const Simplex::Function& function, const std::vector<Unknown>& unknowns,
                          std::vector<double> start, std::size_t rounds) {
  Minimum best{.point = std::move(start)};
  best.value = function(best.point);
  std::vector<double> steps;
  for (const Unknown& unknown : unknowns) steps.push_back(first_step(unknown, 0.3));
  for (std::size_t round = 0; round < rounds; ++round) {
    const double before = best.value;
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      bool better = false;
      for (const double sign : {1.0, -1.0}) {
        std::vector<double> point = best.point;
        point[i] = outward(unknowns[i], inward(unknowns[i], point[i]) + sign * steps[i]);
        const double value = function(point);
        better = value < best.value - 1e-7;
        if (better) {
          best = {std::move(point), value};
          break;
        }
      }
      steps[i] = std::max(steps[i] * (better ? 1.5 : 0.6), first_step(unknowns[i], 0.01));
    }
    if (round > 10 && before - best.value < 1e-6) break;
  }
  return best;
}

}  // namespace

Minimum minimise(const std::function<double(std::span<const double>)>& function,
                 const std::vector<Unknown>& unknowns, const MinimiseOptions& options) {
  std::vector<double> start;
  for (const Unknown& unknown : unknowns) {
    start.push_back(outward(unknown, inward(unknown, unknown.start)));
  }
  Minimum best{.point = std::move(start), .value = std::numeric_limits<double>::infinity()};
  for (std::size_t cycle = 0; cycle < options.cycles; ++cycle) {
    constexpr double size = 0.1;  // of the simplex, around a point that is good already
    Minimum near = coordinate_search(function, unknowns, best.point, options.rounds);
    Minimum found = Simplex(function, unknowns).search(near.point, size, options.evaluations);
    if (near.value < found.value) found = std::move(near);
    if (found.value > best.value * (1 - 1e-4)) break;
    best = std::move(found);
  }
  return best;
}

}  // namespace tools
