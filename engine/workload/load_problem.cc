// Whether a load can be made, and how long it is.
#include <fmt/core.h>

#include <algorithm>

#include "engine/workload/request_source.h"

namespace engine {
namespace {

constexpr std::int64_t kDefaultRequests = 1000;

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
  if (!recorded) return load.requests > 0 ? load.requests : kDefaultRequests;
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
  if (load.arrivals == ArrivalKind::curve) {
    std::string reason;
    if (!parse_rate_curve(load.curve, reason)) return reason;
  }
  return std::nullopt;
}

}  // namespace engine
