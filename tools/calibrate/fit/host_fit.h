// Which terms of a host give the times that were measured of whole steps?
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/host/host_settings.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "tools/calibrate/fit/error_summary.h"

namespace tools {

// A point of task step, and how long it took.
struct TimedStep {
  engine::Scenario scenario;
  double seconds = 0;
};

struct FittedTerm {
  std::string field;  // "kernel_gap"
  engine::Seconds value;
  engine::Seconds low, high;  // over fits that each leave a fifth of the steps out
  bool told = false;          // whether the steps tell it; else it is as it was
};

struct HostFit {
  engine::HostSettings host;
  std::vector<FittedTerm> terms;
  ErrorSummary before, unseen;  // with the host as it was, and of steps left out of the fit
};

inline constexpr std::size_t kLeastTimedSteps = 10;

// Steps that cannot be timed (their points do not fit, say) are refused by whoever reads them: all have an outcome here.
HostFit fit_host(std::span<const TimedStep> steps, const engine::Resources& resources);

// As a file of specs/hosts says it. `from`: the host that it began with.
std::string host_fit_text(const HostFit& fit, const std::string& from);

}  // namespace tools
