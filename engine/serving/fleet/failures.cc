#include "engine/serving/fleet/failures.h"

#include "engine/base/random.h"

namespace engine {
namespace {

// Times to failure and times to repair of a pool, so that they do not share numbers.
std::uint32_t lane_of(std::uint32_t pool, bool repair) { return 2 * pool + (repair ? 1 : 0); }

std::uint64_t draw_of(std::size_t unit, std::uint64_t drawn) {
  return std::uint64_t(unit) + (drawn << 32);
}

}  // namespace

void Failures::reset(const Setup& setup) {
  setup_ = setup;
  count_ = down_ = 0;
  if (!any()) return;
  units_.assign(setup.units, {});
  events_.reset(setup.units, kNever, kNever);
  for (std::size_t unit = 0; unit < setup.units; ++unit) start(unit, 0);
}

void Failures::start(std::size_t unit, double now) {
  const double up = exponential(setup_.seed, Stream::failures, draw_of(unit, units_[unit].drawn++),
                                lane_of(setup_.pool, false));
  events_.set(unit, now + setup_.settings.mean_time_to_failure.value * up);
}

void Failures::fail(std::size_t unit) {
  count_ += 1;
  events_.set(unit, kNever);
}

void Failures::went_down(std::size_t unit, double now) {
  units_[unit].down_since = now;
  const double repair =
      exponential(setup_.seed, Stream::failures, draw_of(unit, units_[unit].drawn - 1),
                  lane_of(setup_.pool, true));
  events_.set(unit, now + setup_.settings.mean_time_to_repair.value * repair);
}

void Failures::repaired(std::size_t unit, double now) {
  down_ += now - units_[unit].down_since;
  units_[unit].down_since = -1;
  start(unit, now);
}

double Failures::down_seconds(double until) const {
  double seconds = down_;
  if (!any()) return 0;
  for (const Unit& unit : units_) {
    if (unit.down_since >= 0) seconds += until - unit.down_since;
  }
  return seconds;
}

}  // namespace engine
