#include "engine/base/percentiles.h"

#include <algorithm>
#include <limits>

namespace engine {

void LogHistogram::clear() {
  buckets_.clear();
  count_ = 0;
}

void LogHistogram::make_room(double value, double weight) {
  const std::int64_t at = place(value);
  const std::int64_t last = first_ + std::int64_t(buckets_.size());
  if (buckets_.empty()) {
    first_ = at;
    buckets_.assign(1, 0);
  } else if (at < first_) {
    buckets_.insert(buckets_.begin(), std::size_t(first_ - at), 0);
    first_ = at;
  } else if (at >= last) {
    buckets_.resize(std::size_t(at - first_ + 1), 0);
  }
  buckets_[std::size_t(at - first_)] += weight;
  count_ += weight;
}

double LogHistogram::percentile(double share) const {
  if (count_ <= 0) return std::numeric_limits<double>::quiet_NaN();
  const double rank = share * count_;
  double below = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] <= 0) continue;
    last = i;
    if (below + buckets_[i] >= rank) break;
    below += buckets_[i];
  }
  const double inside = std::clamp((rank - below) / buckets_[last], 0.0, 1.0);
  const double low = edge(first_ + std::int64_t(last));
  return low + inside * (edge(first_ + std::int64_t(last) + 1) - low);
}

void Samples::clear() {
  values_.clear();
  partition_ = 0;
  rest_.clear();
  sum_ = 0;
  count_ = 0;
}

double Samples::mean() const {
  return count_ > 0 ? sum_ / double(count_) : std::numeric_limits<double>::quiet_NaN();
}

void Samples::spill(double value) {
  if (count_ == kExact + 1) {
    for (const double kept : values_) rest_.add(kept, 1);
    values_.clear();
  }
  rest_.add(value, 1);
}

double Samples::percentile(double share) {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  if (count_ > kExact) return rest_.percentile(share);
  const double rank = share * double(count_ - 1);
  const std::size_t low = std::size_t(rank);
  const auto middle = values_.begin() + std::ptrdiff_t(low);
  const std::size_t from = low >= partition_ ? partition_ : 0;
  std::nth_element(values_.begin() + std::ptrdiff_t(from), middle, values_.end());
  partition_ = low;
  if (low + 1 >= count_) return *middle;
  const double next = *std::min_element(middle + 1, values_.end());
  return *middle + (rank - double(low)) * (next - *middle);
}

}  // namespace engine
