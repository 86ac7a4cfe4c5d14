#include "engine/serving/fleet/scaler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace engine {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// Holt's weights of what was seen last, in the level and in the trend.
constexpr double kNewLevel = 0.5, kNewTrend = 0.2;

double scheduled_at(const std::vector<RateStep>& schedule, double time) {
  double units = schedule.front().rate;
  for (const RateStep& step : schedule) {
    if (step.time <= time) units = step.rate;
  }
  return units;
}

}  // namespace

std::optional<std::string> scaling_problem(const ScalingSettings& settings, std::int64_t replicas) {
  if (settings.policy == ScalingPolicy::fixed) return std::nullopt;
  const bool scheduled = settings.policy == ScalingPolicy::scheduled;
  if (!scheduled && settings.min_replicas > replicas) {
    return fmt::format("serving.scaling.min_replicas ({}) exceeds serving.replicas ({})",
                       settings.min_replicas, replicas);
  }
  if (!scheduled) return std::nullopt;
  std::string reason;
  const auto steps =
      parse_timetable(settings.schedule, "serving.scaling.schedule", "replicas", reason);
  if (!steps) return reason;
  if (steps->empty()) return "serving.scaling.schedule is empty; as in '0:2, 28800:10'";
  for (const RateStep& step : *steps) {
    if (step.rate < 0 || step.rate > double(replicas) || step.rate != std::floor(step.rate)) {
      return fmt::format("serving.scaling.schedule: {:g} is no number of replicas from 0 to {}",
                         step.rate, replicas);
    }
  }
  if (steps->back().rate == 0) {
    return "serving.scaling.schedule ends with 0 replicas: whoever comes after that would wait for "
           "ever";
  }
  return std::nullopt;
}

double timetable_seconds(const ScalingSettings& settings) {
  if (settings.policy != ScalingPolicy::scheduled) return 0;
  std::string none;
  const auto steps = parse_timetable(settings.schedule, "", "", none);
  if (!steps || steps->size() < 2) return 0;
  const double last = steps->back().time, before = (*steps)[steps->size() - 2].time;
  return last + settings.cold_start.value + (last - before);
}

void Scaler::reset(const ScalingSettings& settings, std::size_t units, std::size_t unit,
                   bool filled) {
  settings_ = settings;
  unit_ = unit;
  units_.assign(units, {});
  wishes_.clear();
  schedule_.clear();
  spans_.clear();
  starts_ = now_ = level_ = trend_ = 0;
  looked_ = false;
  next_look_ = settings.interval.value;
  wanted_ = units;
  if (follows_load() && filled) {
    wishes_.push_back({0, units});
  } else if (follows_load()) {
    wanted_ = std::min<std::size_t>(units, std::size_t(settings.min_replicas));
  }
  if (settings.policy == ScalingPolicy::scheduled) {
    std::string none;
    schedule_ = parse_timetable(settings.schedule, "", "", none).value();
    wanted_ = std::size_t(scheduled_at(schedule_, 0));
    next_look_ = next_in_schedule(0);
  }
  want(wanted_, 0);
  starts_ = 0;  // those that are on from the start were not started
}

double Scaler::next() const { return follows_load() ? std::min(next_look_, next_ready_) : kNone; }

void Scaler::act(double inside, bool came) {
  now_ = next();
  if (now_ == next_look_) {
    // A timetable is looked at when it changes. A product of whole numbers of looks at a load would drift less, but nothing is
    // counted by them.
    const bool scheduled = settings_.policy == ScalingPolicy::scheduled;
    next_look_ = scheduled ? next_in_schedule(now_) : next_look_ + settings_.interval.value;
    want(wanted_for(inside, came), settings_.cold_start.value);
  } else {
    open_ready_ones();
  }
}

double Scaler::opens() const {
  if (wanted_ > 0) return next_ready_;
  for (const RateStep& step : schedule_) {
    if (step.time > now_ && step.rate > 0) return step.time + settings_.cold_start.value;
  }
  return kNone;
}

double Scaler::next_in_schedule(double now) const {
  for (const RateStep& step : schedule_) {
    if (step.time > now) return step.time;
  }
  return kNone;
}

bool Scaler::wake(double now) {
  const bool by_load = follows_load() && settings_.policy != ScalingPolicy::scheduled;
  if (wanted_ > 0 || !by_load) return false;
  now_ = now;
  want(after_cooldown(1), settings_.cold_start.value);
  return true;
}

std::size_t Scaler::wanted_for(double inside, bool came) {
  if (settings_.policy == ScalingPolicy::scheduled) {
    return std::size_t(scheduled_at(schedule_, now_));
  }
  const double before = std::exchange(
      level_, looked_ ? kNewLevel * inside + (1 - kNewLevel) * (level_ + trend_) : inside);
  if (std::exchange(looked_, true)) {
    trend_ = kNewTrend * (level_ - before) + (1 - kNewTrend) * trend_;
  }
  double expected = inside;
  if (settings_.policy == ScalingPolicy::predictive) {
    const double looks_ahead = 1 + settings_.cold_start / settings_.interval;
    expected = std::max(inside, level_ + trend_ * looks_ahead);
  }
  const double units = std::ceil(expected / (settings_.target * double(unit_)));
  const double most = double(units_.size());
  std::size_t now =
      std::size_t(std::clamp(units, std::min(double(settings_.min_replicas), most), most));
  if (settings_.min_replicas == 0) {
    // A forecast alone keeps no replica on, since a smoothed level never quite falls to zero.
    now = inside > 0 || came ? std::max<std::size_t>(now, 1) : 0;
  }
  return after_cooldown(now);
}

// What is wanted now, and as long as more was wanted within the cooldown, that.
std::size_t Scaler::after_cooldown(std::size_t now) {
  while (!wishes_.empty() && wishes_.front().time < now_ - settings_.cooldown.value) {
    wishes_.pop_front();
  }
  // Only the greatest counts: lesser ones before it never will.
  while (!wishes_.empty() && wishes_.back().units <= now) wishes_.pop_back();
  wishes_.push_back({now_, now});
  return now >= wanted_ ? now : std::min(wanted_, wishes_.front().units);
}

void Scaler::want(std::size_t units, double warming) {
  wanted_ = units;
  std::size_t found = 0;
  for (Unit& unit : units_) {
    unit.wanted = !unit.failed && found < units;
    if (!unit.wanted) continue;
    ++found;
    if (unit.on_since >= 0) continue;  // perhaps given up, but still there
    unit.on_since = now_;
    unit.ready = now_ + warming;
    starts_ += 1;
  }
  open_ready_ones();
}

void Scaler::open_ready_ones() {
  takers_.clear();
  next_ready_ = kNone;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    Unit& unit = units_[i];
    unit.open = unit.wanted && unit.ready <= now_;
    if (unit.wanted && !unit.open) next_ready_ = std::min(next_ready_, unit.ready);
    if (!unit.open) continue;
    for (std::size_t k = 0; k < unit_; ++k) takers_.push_back(std::int32_t(i * unit_ + k));
  }
}

void Scaler::fail(std::size_t replica, double now) {
  now_ = now;
  units_[replica / unit_].failed = true;
  want(wanted_, settings_.cold_start.value);
}

void Scaler::repair(std::size_t replica, double now) {
  now_ = now;
  units_[replica / unit_].failed = false;
  // Only it can be off and wanted: the others were looked at when it failed, or since.
  want(wanted_, 0);
}

void Scaler::switch_off(std::size_t replica, double now) {
  Unit& unit = units_[replica / unit_];
  spans_.push_back({unit.on_since, now});
  unit.on_since = -1;
}

double Scaler::on_seconds(double from, double until) const {
  double seconds = 0;
  const auto add = [&](double since, double to) {
    seconds += std::max(0.0, std::min(to, until) - std::max(since, from));
  };
  for (const Span& span : spans_) add(span.since, span.until);
  for (const Unit& unit : units_) {
    if (unit.on_since >= 0) add(unit.on_since, until);
  }
  return double(unit_) * seconds;
}

}  // namespace engine
