#include "engine/serving/figures/group_sums.h"

#include <algorithm>

namespace engine {

void GroupSums::reset(const Load& load, std::int64_t tenants) {
  classes_ = load.classes.any();
  turns_ = load.turns > 1;
  for (ClassSums& sums : by_class_) {
    sums.requests = sums.good = 0;
    sums.ttft.clear();
    sums.tpot.clear();
  }
  tenants_.assign(std::size_t(tenants), {});
  later_turns_.clear();
  history_ = history_found_ = 0;
}

void GroupSums::add(const GroupedRequest& request) {
  if (classes_) {
    ClassSums& sums = of(request.service_class);
    sums.requests += 1;
    sums.good += request.good ? 1 : 0;
    if (request.answered) sums.ttft.add(request.ttft);
    if (request.has_tpot) sums.tpot.add(request.tpot);
  }
  if (tenants_.size() > 1) {
    TenantSums& sums = of_tenant(request.tenant);
    sums.requests += 1;
    sums.good += request.good ? 1 : 0;
    if (request.answered) {
      sums.answered += 1;
      sums.ttft_seconds += request.ttft;
    }
  }
  if (turns_ && request.answered && request.history > 0) {
    later_turns_.add(request.ttft);
    history_ += double(request.history);
    history_found_ += double(std::min(request.history, request.cached));
  }
}

}  // namespace engine
