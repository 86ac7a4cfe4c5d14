#include "engine/serving/journey.h"

#include <algorithm>
#include <functional>

namespace engine {

void Transfers::reset() {
  heap_.clear();
  started_ = 0;
}

double Transfers::next() const {
  return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().end;
}

void Transfers::start(double end, std::size_t replica, std::int32_t slot) {
  heap_.push_back({end, started_++, replica, slot});
  std::ranges::push_heap(heap_, std::greater<>{});
}

Transfers::Transfer Transfers::take() {
  std::ranges::pop_heap(heap_, std::greater<>{});
  const Transfer first = heap_.back();
  heap_.pop_back();
  return first;
}

}  // namespace engine
