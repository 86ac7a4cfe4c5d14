#include "engine/training/data_loading.h"

#include <algorithm>

namespace engine {

Seconds loading_wait(const TrainSettings& train, std::int64_t replicas, Seconds step) {
  const double sequences = double(train.global_batch) / double(replicas);
  const Seconds takes = train.loading.sequence_time * sequences;
  // Without workers the process that trains prepares them, between its steps.
  if (train.loading.workers == 0) return takes;
  return std::max(Seconds{0}, takes / double(train.loading.workers) - step);
}

KernelRow loading_row(Seconds wait) {
  return {.phase = Phase::forward,
          .op = OpName::data_loading,
          .family = Family::host,
          .bound = Bound::host,
          .work = {.calls = 1, .time = wait, .low = wait, .high = wait}};
}

}  // namespace engine
