#include "engine/step/stand_ins.h"

#include <cmath>
#include <cstddef>

namespace engine {
namespace {

// So few steps are timed one by one.
constexpr std::int64_t kFewSteps = 8;
// A part that is longer than a few stairs is checked at one place more: stairs look smooth where all places happen to be as high on theirs.
constexpr std::int64_t kManySteps = 64;

class PartedRun {
 public:
  PartedRun(const Pace& pace, const std::function<double(std::int64_t)>& seconds_of)
      : pace_(pace), seconds_of_(seconds_of) {}

  std::vector<StandIn> of(std::int64_t steps) && {
    if (steps <= kFewSteps) {
      for (std::int64_t step = 0; step < steps; ++step) list_[timed(step)].stands_for = 1;
      return std::move(list_);
    }
    const std::size_t first = timed(0), last = timed(steps - 1);
    cover(first, timed(inside(first, last, kNearMiddle)), last);
    list_[last].stands_for += 1;
    return std::move(list_);
  }

 private:
  // Not the middle itself: places must not lie at even distances, as stairs do.
  static constexpr double kNearMiddle = 0.47;
  static constexpr double kFarOut = 0.86;

  std::size_t timed(std::int64_t step) {
    list_.push_back({.step = step, .seconds = seconds_of_(step)});
    return list_.size() - 1;
  }

  std::int64_t inside(std::size_t from, std::size_t to, double share) const {
    const std::int64_t first = list_[from].step, last = list_[to].step;
    return first + std::int64_t(std::ceil(double(last - first) * share));
  }

  double made_between(std::size_t from, std::size_t to) const {
    return double(pace_.made(list_[from].step, list_[to].step - list_[from].step));
  }

  // Sees to all steps of a part but its last.
  void cover(std::size_t from, std::size_t middle, std::size_t to) {
    const std::int64_t steps = list_[to].step - list_[from].step;
    if (steps <= kFewSteps) return one_by_one(from, middle, to);
    const std::size_t early = timed(inside(from, middle, kNearMiddle));
    const std::size_t late = timed(inside(middle, to, kNearMiddle));
    const Part part{from, middle, to};
    bool smooth = tells(part, early) && tells(part, late);
    if (smooth && steps > kManySteps) smooth = tells(part, timed(inside(from, to, kFarOut)));
    if (smooth) {
      share({from, early, middle});
      share({middle, late, to});
    } else {
      cover(from, early, middle);
      cover(middle, late, to);
    }
  }

  void one_by_one(std::size_t from, std::size_t middle, std::size_t to) {
    list_[from].stands_for += 1;
    for (std::int64_t step = list_[from].step + 1; step < list_[to].step; ++step) {
      const std::size_t at = step == list_[middle].step ? middle : timed(step);
      list_[at].stands_for += 1;
    }
  }

  struct Part {
    std::size_t from, middle, to;
  };

  bool tells(const Part& part, std::size_t at) const {
    const double m = made_between(part.from, part.middle), b = made_between(part.from, part.to);
    const double x = made_between(part.from, at);
    const double told = list_[part.from].seconds * (x - m) * (x - b) / (m * b) +
                        list_[part.middle].seconds * x * (x - b) / (m * (m - b)) +
                        list_[part.to].seconds * x * (x - m) / (b * (b - m));
    return std::abs(told - list_[at].seconds) <= kStandInTolerance * list_[at].seconds;
  }

  // The steps of a part but its last, among the three that its parabola goes through.
  void share(const Part& part) {
    const double m = made_between(part.from, part.middle), b = made_between(part.from, part.to);
    const std::int64_t first = list_[part.from].step, count = list_[part.to].step - first;
    const double ones = pace_.sum(first, count), twos = pace_.squares(first, count);
    list_[part.from].stands_for += (twos - (m + b) * ones + m * b * double(count)) / (m * b);
    list_[part.middle].stands_for += (twos - b * ones) / (m * (m - b));
    list_[part.to].stands_for += (twos - m * ones) / (b * (b - m));
  }

  const Pace& pace_;
  const std::function<double(std::int64_t)>& seconds_of_;
  std::vector<StandIn> list_;
};

}  // namespace

std::vector<StandIn> stand_ins(const Pace& pace, std::int64_t steps,
                               const std::function<double(std::int64_t)>& seconds_of) {
  return PartedRun(pace, seconds_of).of(steps);
}

}  // namespace engine
