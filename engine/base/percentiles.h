// Percentiles of what a simulation produces, one sample at a time, in bounded memory.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace engine {

// Counts over buckets that divide every octave of the positive numbers evenly, in 2^Bits of them: with 10 that is a relative
// width of at most 0.1%. A percentile is interpolated by rank inside its bucket, so a sample that moves across a bucket's edge by
// rounding moves the result by next to nothing.
template <int Bits>
class LogHistogram {
 public:
  void clear();
  void add(double value, double weight) { add_to(bucket(value), weight); }
  void add_to(std::int64_t bucket, double weight) {
    if (!has(bucket)) make_room(bucket);
    buckets_[std::size_t(bucket - first_)] += weight;
    count_ += weight;
  }
  // The same of several buckets that lie between two, until something else is added.
  struct Between {
    double* counts;
    std::int64_t first;
    double& count;
    void add_to(std::int64_t bucket, double weight) const {
      counts[bucket - first] += weight;
      count += weight;
    }
  };
  Between between(std::int64_t one, std::int64_t other) {
    if (!has(one)) make_room(one);
    if (!has(other)) make_room(other);
    return {buckets_.data(), first_, count_};
  }
  // Everything another one counted.
  void add(const LogHistogram& other);
  double count() const { return count_; }
  double percentile(double share) const;

  // The bucket of a value, and the lowest value of a bucket; the next higher one is that of the next number.
  static std::int64_t bucket(double value) {
    // Zero and less share the lowest bucket: times are positive but for rounding.
    const double least = value > 1e-12 ? value : 1e-12;
    return std::int64_t(std::bit_cast<std::uint64_t>(least) >> (52 - Bits));
  }
  static double edge(std::int64_t bucket) {
    return std::bit_cast<double>(std::uint64_t(bucket) << (52 - Bits));
  }

 private:
  bool has(std::int64_t bucket) const {
    return std::uint64_t(bucket - first_) < std::uint64_t(buckets_.size());
  }
  void make_room(std::int64_t bucket);

  std::vector<double> buckets_;
  std::int64_t first_ = 0;  // place of buckets_[0]
  double count_ = 0;
};
extern template class LogHistogram<8>;
extern template class LogHistogram<10>;

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
  LogHistogram<10> rest_;
  double sum_ = 0;
  std::size_t count_ = 0;
};

}  // namespace engine
