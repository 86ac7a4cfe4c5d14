#include "engine/base/work_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace engine {
namespace {

// Work between two looks at whether the run is to stop: well below a millisecond.
constexpr double kWorkBetweenLooks = 1000;

constexpr std::string_view kBeforeBudget = "takes more than ";

}  // namespace

void WorkMeter::look() {
  if (!(used_ <= budget_)) throw WorkExceeded{};
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) throw WorkStopped{};
  unwatched_ = std::min(budget_, used_ + kWorkBetweenLooks);
}

std::string given_up_reason(double budget) {
  return fmt::format("{}{:g} units of work; --point-budget allows more", kBeforeBudget, budget);
}

double budget_given_up(std::string_view reason) {
  if (!reason.starts_with(kBeforeBudget)) return 0;
  double budget = 0;
  std::from_chars(reason.data() + kBeforeBudget.size(), reason.data() + reason.size(), budget);
  return budget;
}

}  // namespace engine
