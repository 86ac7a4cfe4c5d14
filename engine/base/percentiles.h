// Percentiles of what a simulation produces, one sample at a time, in bounded memory.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace engine {

// Counts over buckets that divide every octave of the positive numbers evenly. A percentile is
// interpolated by rank inside its bucket, so a sample that moves across a bucket's edge by rounding
// moves the result by next to nothing.
class LogHistogram {
 public:
  // `bits`: 2^bits buckets an octave; 10 is a relative width of at most 0.1%.
  explicit LogHistogram(int bits) : bits_(bits) {}

  void clear();
  void add(double value, double weight) { add_to(bucket(value), weight); }
  void add_to(std::int64_t bucket, double weight) {
    const std::int64_t at = bucket - first_;
    if (at < 0 || at >= std::int64_t(buckets_.size())) return make_room(bucket, weight);
    buckets_[std::size_t(at)] += weight;
    count_ += weight;
  }
  // Everything another one counted, with buckets of the same width.
  void add(const LogHistogram& other);
  double count() const { return count_; }
  double percentile(double share) const;

  // The bucket of a value, and the lowest value of a bucket; the next higher one is that of the next number.
  std::int64_t bucket(double value) const { return place(value, bits_); }
  double edge(std::int64_t bucket) const {
    return std::bit_cast<double>(std::uint64_t(bucket) << (52 - bits_));
  }

  static std::int64_t place(double value, int bits) {
    // Zero and less share the lowest bucket: times are positive but for rounding.
    const double least = value > 1e-12 ? value : 1e-12;
    return std::int64_t(std::bit_cast<std::uint64_t>(least) >> (52 - bits));
  }

 private:
  void make_room(std::int64_t bucket, double weight);

  int bits_;
  std::vector<double> buckets_;
  std::int64_t first_ = 0;  // place of buckets_[0]
  double count_ = 0;
};

// Samples kept as they are up to a limit, exact percentiles; beyond it, a histogram of at most 0.1%
// relative width, so that memory does not follow the number of samples.
class Samples {
 public:
  static constexpr std::size_t kExact = 100'000;

  void clear();
  void add(double value) {
    sum_ += value;
    ++count_;
    if (count_ <= kExact) {
      values_.push_back(value);
    } else {
      spill(value);
    }
  }
  std::size_t count() const { return count_; }
  double mean() const;  // NaN of nothing
  // Linear between the two samples nearest to the rank, as numpy's default; NaN of nothing. Reorders
  // the samples, nothing else.
  double percentile(double share);

 private:
  void spill(double value);
  void spread();
  double at_rank(std::size_t rank);

  std::vector<double> values_;
  // Once a percentile was asked for, the values stand in buckets, in any order inside each: a few
  // passes without surprises to the processor, where selecting among all would be one at every value.
  std::vector<std::uint32_t> bucket_ends_;
  std::size_t spread_ = 0;              // values that do; others came since where there are more
  std::vector<std::uint32_t> buckets_;  // of values_, while they are spread
  std::vector<double> scratch_;
  LogHistogram rest_{10};
  double sum_ = 0;
  std::size_t count_ = 0;
};

}  // namespace engine
