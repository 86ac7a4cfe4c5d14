#include "engine/base/work_meter.h"

#include <algorithm>

namespace engine {
namespace {

// Between two looks at whether somebody asked to stop: well below a millisecond.
constexpr double kWorkBetweenLooks = 1000;

}  // namespace

void WorkMeter::look() {
  if (!(used_ <= budget_)) throw WorkExceeded{};
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) throw WorkStopped{};
  unwatched_ = std::min(budget_, used_ + kWorkBetweenLooks);
}

}  // namespace engine
