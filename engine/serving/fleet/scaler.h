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

// Settings that cannot be followed.
std::optional<std::string> scaling_problem(const ScalingSettings& settings, std::int64_t replicas);

// Replicas are numbered; the first so many that are not under repair are wanted. One that is asked for is paid for at once
// and takes requests when it is warm; one that is given up takes no more, and is paid for until it has nothing left to do. Numbers
// follow the advice of Kubernetes' horizontal autoscaler: up at once, down to the most that was wanted during the
// cooldown. Predictions are Holt's: a level and a trend, each smoothed.
class Scaler {
 public:
  // Units of `unit` replicas each that are only on together. `filled`: all are on at first, as if they had been for as long as
  // it takes to give them up.
  void reset(const ScalingSettings& settings, std::size_t units, std::size_t unit,
             bool filled = false);

  bool follows_load() const { return settings_.policy != ScalingPolicy::fixed; }
  // When there is something to do: a look at the load, a timetable's next number, or a replica that is warm.
  double next() const;
  // Whether that is a look.
  bool looks() const { return next_look_ <= next_ready_; }
  // Does it, with so many requests inside the pool; `came`: some came to it since the last look.
  void act(double inside, bool came = false);
  // A request finds that nobody is on, nor on its way: one is started. False where somebody is, or where a timetable says who.
  bool wake(double now);
  // Replicas that take requests, in the order of their numbers.
  std::span<const std::int32_t> takers() const { return takers_; }
  std::size_t open() const { return takers_.size(); }
  // When the next replica that is started, or that a timetable will ask for, takes requests; infinite: nobody can tell.
  double opens() const;
  bool takes(std::size_t replica) const { return units_[replica / unit_].open; }
  std::size_t unit() const { return unit_; }
  bool is_on(std::size_t replica) const { return units_[replica / unit_].on_since >= 0; }
  // Whether a replica is on that is no longer wanted: it goes off when it is empty.
  bool unwanted(std::size_t replica) const {
    return !units_[replica / unit_].wanted && is_on(replica);
  }
  void switch_off(std::size_t replica, double now);

  // A replica's unit fails: others are wanted instead, where there are some. Repaired, it is warm.
  void fail(std::size_t replica, double now);
  void repair(std::size_t replica, double now);

  // Over all replicas, from the start until `until`, or between two moments.
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
  // Wants the first so many units that have not failed; one that was off is ready after `warming`.
  void want(std::size_t units, double warming);
  void open_ready_ones();

  ScalingSettings settings_;
  std::size_t unit_ = 1;
  std::vector<Unit> units_;
  std::vector<std::int32_t> takers_;
  std::size_t wanted_ = 1;  // units, as far as there are so many that have not failed
  double now_ = 0, next_look_ = 0;
  double next_ready_ = 0;         // when the next of those wanted is warm
  double level_ = 0, trend_ = 0;  // of the requests inside; the trend is per look
  bool looked_ = false;
  struct Wish {
    double time;
    std::size_t units;
  };
  std::deque<Wish> wishes_;  // of the cooldown
  std::vector<RateStep> schedule_;
  struct Span {
    double since, until;
  };
  std::vector<Span> spans_;  // of units that are off again
  double starts_ = 0;
};

}  // namespace engine
