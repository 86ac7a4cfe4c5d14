#include "engine/base/percentiles.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace engine {

template <int Bits>
void LogHistogram<Bits>::clear() {
  buckets_.clear();
  count_ = 0;
}

template <int Bits>
void LogHistogram<Bits>::make_room(std::int64_t bucket) {
  if (buckets_.empty()) {
    first_ = bucket;
    buckets_.assign(1, 0);
  } else if (bucket < first_) {
    buckets_.insert(buckets_.begin(), std::size_t(first_ - bucket), 0);
    first_ = bucket;
  } else {
    buckets_.resize(std::size_t(bucket - first_ + 1), 0);
  }
}

template <int Bits>
void LogHistogram<Bits>::add(const LogHistogram& other) {
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) {
    if (other.buckets_[i] > 0) add_to(other.first_ + std::int64_t(i), other.buckets_[i]);
  }
}

template <int Bits>
double LogHistogram<Bits>::percentile(double share) const {
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

template class LogHistogram<8>;
template class LogHistogram<10>;

void Samples::clear() {
  values_.clear();
  spread_ = 0;
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

void Samples::spread() {
  using Coarse = LogHistogram<6>;  // of 5,000 latencies, some tens share a bucket
  const std::size_t count = values_.size();
  buckets_.resize(count);
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max(), last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bucket = std::uint32_t(Coarse::bucket(values_[i]));
    buckets_[i] = bucket;
    first = std::min(first, bucket);
    last = std::max(last, bucket);
  }
  bucket_ends_.assign(last - first + 1, 0);
  for (const std::uint32_t bucket : buckets_) ++bucket_ends_[bucket - first];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : bucket_ends_) end = std::exchange(begin, begin + end);
  // Where each begins, until its values have come: then that is where it ends.
  scratch_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    scratch_[bucket_ends_[buckets_[i] - first]++] = values_[i];
  }
  values_.swap(scratch_);
  spread_ = values_.size();
}

double Samples::at_rank(std::size_t rank) {
  const auto end = std::upper_bound(bucket_ends_.begin(), bucket_ends_.end(), rank);
  const std::size_t begin = end == bucket_ends_.begin() ? 0 : *(end - 1);
  const auto place = values_.begin() + std::ptrdiff_t(rank);
  std::nth_element(values_.begin() + std::ptrdiff_t(begin), place, values_.begin() + *end);
  return *place;
}

double Samples::percentile(double share) {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  if (count_ > kExact) return rest_.percentile(share);
  if (spread_ != values_.size()) spread();
  const double rank = share * double(count_ - 1);
  const std::size_t low = std::size_t(rank);
  const double value = at_rank(low);
  if (low + 1 >= count_) return value;
  return value + (rank - double(low)) * (at_rank(low + 1) - value);
}

}  // namespace engine
