// How many replicas of a pool are on, and which take requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/serving/settings/scaling_settings.h"
#include "engine/workload/arrivals.h"

namespace engine {

// What is wrong with settings that cannot be followed.
std::optional<std::string> scaling_problem(const ScalingSettings& settings, std::int64_t replicas);

// Seconds until the last number of a timetable has held as long as the one before it; 0: there is none, or it never changes.
double timetable_seconds(const ScalingSettings& settings);

// Replicas are numbered, and the first ones that are not under repair are wanted. A replica that is switched on is paid for at once and
// takes requests when it is warm. One that is given up takes no more requests, and is paid for until it is empty. Numbers follow the
// rules of Kubernetes' horizontal autoscaler: up at once, down only to the most that was wanted during the cooldown. Predictions are
// Holt's: a level and a trend, each smoothed.
class Scaler {
 public:
  // `units` units of `unit` replicas each, which are switched on and off together. `filled`: all are on at first, and have been for so
  // long that those that are not needed are given up at the first look.
  void reset(const ScalingSettings& settings, std::size_t units, std::size_t unit,
             bool filled = false);

  bool follows_load() const { return settings_.policy != ScalingPolicy::fixed; }
  // When there is something to do: a look at the load, a timetable's next number, or a replica that is warm.
  double next() const;
  // Whether that is a look.
  bool looks() const { return next_look_ <= next_ready_; }
  // Does that, with `inside` requests in the pool. `came`: requests came to the pool since the last look.
  void act(double inside, bool came = false);
  // Starts a unit for a request that finds none on or starting. False where there is one, or where a timetable decides.
  bool wake(double now);
  // Replicas that take requests, in the order of their numbers.
  std::span<const std::int32_t> takers() const { return takers_; }
  std::size_t open() const { return takers_.size(); }
  // When the next replica takes requests that is starting or that a timetable will start; infinite: that is not known.
  double opens() const;
  bool takes(std::size_t replica) const { return units_[replica / unit_].open; }
  std::size_t unit() const { return unit_; }
  bool is_on(std::size_t replica) const { return units_[replica / unit_].on_since >= 0; }
  // Whether a replica is on that is no longer wanted: it goes off when it is empty.
  bool unwanted(std::size_t replica) const {
    return !units_[replica / unit_].wanted && is_on(replica);
  }
  void switch_off(std::size_t replica, double now);

  // A replica's unit fails, and another one is wanted instead where there is one. After its repair it is warm.
  void fail(std::size_t replica, double now);
  void repair(std::size_t replica, double now);

  // Seconds for which replicas were on, summed over all of them, from the start until `until` or between two moments.
  double on_seconds(double until) const { return on_seconds(0, until); }
  double on_seconds(double from, double until) const;
  double starts() const { return starts_; }

 private:
  struct Unit {
    double on_since = -1;  // -1: off
    double ready = 0;
    bool wanted = false, open = false;
    bool failed = false;
  };
  std::size_t wanted_for(double inside, bool came);
  // When the timetable has its next number.
  double next_in_schedule(double now) const;
  std::size_t after_cooldown(std::size_t units);
  // Makes the first `units` units that have not failed the wanted ones. One that was off is ready after `warming` seconds.
  void want(std::size_t units, double warming);
  void open_ready_ones();

  ScalingSettings settings_;
  std::size_t unit_ = 1;
  std::vector<Unit> units_;
  std::vector<std::int32_t> takers_;
  std::size_t wanted_ = 1;  // units that are wanted, some of which may have failed
  double now_ = 0, next_look_ = 0;
  double next_ready_ = 0;         // when the next wanted unit is warm
  double level_ = 0, trend_ = 0;  // of the requests inside, the trend per look
  bool looked_ = false;
  struct Wish {
    double time;
    std::size_t units;
  };
  std::deque<Wish> wishes_;  // numbers wanted during the cooldown
  std::vector<RateStep> schedule_;
  struct Span {
    double since, until;
  };
  std::vector<Span> spans_;  // when units were on that are off again
  double starts_ = 0;
};

}  // namespace engine
