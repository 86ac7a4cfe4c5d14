// Whether a load can be made, and how long it is.
#include <fmt/core.h>

#include <algorithm>

#include "engine/workload/arrivals.h"
#include "engine/workload/request_source.h"

namespace engine {
namespace {

constexpr std::int64_t kDefaultRequests = 1000;
constexpr double kMostOfACurve = 1e9;

// Requests that a curve brings until it ends, or until its last rate has held as long as the one before it.
std::int64_t requests_of_curve(const Load& load) {
  std::string reason;
  const auto curve = parse_rate_curve(load.curve, reason);
  if (!curve) return kDefaultRequests;
  const double requests = curve->expected() * double(load.calls_of_session());
  const double least = curve->ends() ? 1.0 : double(kDefaultRequests);
  return std::int64_t(std::clamp(requests, least, kMostOfACurve));
}

// A run follows a curve to its end, so a number of requests says nothing, or that less than all of it is meant.
std::optional<std::string> curve_problem(const Load& load) {
  std::string reason;
  const auto curve = parse_rate_curve(load.curve, reason);
  if (!curve) return reason;
  if (!curve->ends() || load.requests == 0) return std::nullopt;
  return fmt::format(
      "load.requests: {} is stated, and load.curve ends by itself, after {:g} s and about {:.0f} "
      "requests: state load.requests: auto, or leave the end out of the curve",
      load.requests, curve->end, curve->expected() * double(load.calls_of_session()));
}

std::optional<std::string> class_problem(const Load& load) {
  const LoadClasses& classes = load.classes;
  if (classes.high.share + classes.low.share > 1) {
    return fmt::format("load.classes: the shares of high ({:g}) and low ({:g}) exceed 1",
                       classes.high.share, classes.low.share);
  }
  if (classes.any() && load.priorities > 1) {
    return "load.classes say who comes first; load.priorities cannot be stated beside them";
  }
  const auto has_lengths = [](const LoadClass& one) {
    return one.share > 0 && one.prompt + one.output > 0;
  };
  const bool lengths = has_lengths(classes.high) || has_lengths(classes.low);
  if (lengths && load.arrivals == ArrivalKind::trace) {
    return "load.classes cannot have lengths of their own where load.arrivals is trace";
  }
  return std::nullopt;
}

}  // namespace

std::int64_t total_requests(const Load& load, const Trace* trace) {
  const bool recorded = load.arrivals == ArrivalKind::trace && trace != nullptr;
  if (!recorded && load.requests > 0) return load.requests;
  if (!recorded) {
    return load.arrivals == ArrivalKind::curve ? requests_of_curve(load) : kDefaultRequests;
  }
  const std::int64_t rows = std::int64_t(trace->size());
  return load.requests > 0 ? std::min(load.requests, rows) : rows;
}

std::optional<std::string> load_problem(const Load& load, const Trace* trace) {
  const bool recorded = load.arrivals == ArrivalKind::trace;
  const bool drawn = load.lengths.distribution == LengthKind::empirical;
  if (recorded || drawn) {
    if (load.trace.empty()) {
      return std::string(recorded ? "load.arrivals: trace"
                                  : "load.lengths.distribution: empirical") +
             " needs load.trace";
    }
    if (trace == nullptr) return "load.trace '" + load.trace + "' was not loaded";
    if (trace->size() == 0) return "load.trace '" + load.trace + "' has no rows";
  }
  if (recorded && trace->arrival.empty()) {
    return "load.trace '" + load.trace + "' has no arrival times; use it with " +
           "load.lengths.distribution: empirical";
  }
  if (auto problem = class_problem(load)) return problem;
  if (recorded && load.turns > 1) return "load.turns > 1 cannot be combined with a trace";
  if (load.samples > 1 && load.turns > 1) {
    return "load.samples > 1 cannot be combined with load.turns > 1: which answer goes on?";
  }
  return load.arrivals == ArrivalKind::curve ? curve_problem(load) : std::nullopt;
}

}  // namespace engine
