// When the n-th request of an open load arrives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/moment.h"
#include "engine/workload/load.h"

namespace engine {

// A rate that holds from its time on.
struct RateStep {
  double time = 0;  // seconds
  double rate = 0;  // requests a second
};

// Reads '0:2, 60:10, 120:2': numbers that hold from their second on. Nothing and a reason, which names `field` and
// the `unit` of the numbers, where the text is no such list or times do not rise from zero.
std::optional<std::vector<RateStep>> parse_timetable(std::string_view text, std::string_view field,
                                                     std::string_view unit, std::string& reason);

// A load whose rate changes.
struct RateCurve {
  std::vector<RateStep> steps;
  double end = kNever;  // no request comes from then on; kNever: the last rate holds for ever

  bool ends() const { return end < kNever; }
  double last_step() const { return steps.back().time; }
  // When all of it has been seen: its end, or when its last rate has held as long as the one before it. A single rate
  // without an end is never over: 0.
  double whole() const;
  // Requests (or sessions) that come until then, on average.
  double expected() const;
};
// The same of rates, as in '0:2, 28800:10, 86400:end'. Without an end the last rate is not zero (the load would never be over).
std::optional<RateCurve> parse_rate_curve(std::string_view text, std::string& reason);

// Gaps of an open load, one after another.
class ArrivalClock {
 public:
  // `rate` is in requests a second. The load's curve must be legal if its arrivals follow one.
  ArrivalClock(const Load& load, double rate, std::uint64_t seed);

  // Time of the next arrival, in seconds; never falls. kNever: the curve has ended.
  double next();

  // Its curve says when no more requests come, so that nobody has to count them.
  bool ends() const { return kind_ == ArrivalKind::curve && curve_.ends(); }
  // Loads whose arrivals at one rate are those at another, stretched: times in mean gaps.
  bool stretches() const { return kind_ == ArrivalKind::poisson || kind_ == ArrivalKind::gamma; }
  double mean_gap() const { return mean_gap_; }
  double units() const { return units_; }
  // Goes on as if `count` arrivals had been made, the last one `units` mean gaps after the start.
  void resume(std::uint64_t count, double units) {
    count_ = count;
    units_ = units;
  }

 private:
  double gap();  // in units of the mean gap

  ArrivalKind kind_;
  double mean_gap_;
  double shape_;  // of the gamma distribution
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
  double units_ = 0;  // mean gaps so far
  double time_ = 0;   // seconds so far, along a curve
  RateCurve curve_;
  std::size_t step_ = 0;  // of the curve
};

// The n-th gamma number with mean one (Marsaglia and Tsang's method, one lane an attempt).
double gamma_gap(double shape, std::uint64_t seed, std::uint64_t n);

}  // namespace engine
