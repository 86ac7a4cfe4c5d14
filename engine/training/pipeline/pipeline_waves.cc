#include "engine/training/pipeline/pipeline_waves.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace engine {
namespace {

// Loops without order over values that lie apart, which compilers turn into vector instructions.
[[gnu::always_inline]] inline void do_weights(const Wave& wave, WaveRange range) {
  double* free = wave.free;
  const double* weights = wave.weights;
#pragma GCC ivdep
  for (std::int64_t i = range.from; i < range.upto; ++i) free[i] += weights[i];
}

[[gnu::always_inline]] inline void do_passes(const Wave& wave, const WavePasses& passes,
                                             WaveRange range) {
  const auto [end, awaited, time] = passes;
  double* free = wave.free;
  const double send = wave.send;
#pragma GCC ivdep
  for (std::int64_t i = range.from; i < range.upto; ++i) {
    const double arrives = awaited[i] + send;
    free[i] = end[i] = (free[i] > arrives ? free[i] : arrives) + time[i];
  }
}

// All three of each stage.
[[gnu::always_inline]] inline void do_rounds(const Wave& wave, WaveRange range) {
  const auto [free, weights, forward, backward, send] = wave;
#pragma GCC ivdep
  for (std::int64_t i = range.from; i < range.upto; ++i) {
    const double idle = free[i] + weights[i], input = forward.awaited[i] + send;
    const double forwards = (idle > input ? idle : input) + forward.time[i];
    const double gradient = backward.awaited[i] + send;
    forward.end[i] = forwards;
    free[i] = backward.end[i] = (forwards > gradient ? forwards : gradient) + backward.time[i];
  }
}

[[gnu::always_inline]] inline void do_ranges(const Wave& wave, const WaveRanges& ranges) {
  do_weights(wave, ranges.weights);
  do_passes(wave, wave.forward, ranges.forward);
  do_passes(wave, wave.backward, ranges.backward);
}

#if defined(__SSE2__)

[[gnu::target("avx2")]] void do_rounds_by_fours(const Wave& wave, WaveRange range) {
  do_rounds(wave, range);
}
[[gnu::target("avx2")]] void do_ranges_by_fours(const Wave& wave, const WaveRanges& ranges) {
  do_ranges(wave, ranges);
}
bool takes_fours() { return __builtin_cpu_supports("avx2"); }

#else

void do_rounds_by_fours(const Wave& wave, WaveRange range) { do_rounds(wave, range); }
void do_ranges_by_fours(const Wave& wave, const WaveRanges& ranges) { do_ranges(wave, ranges); }
bool takes_fours() { return false; }

#endif

}  // namespace

void do_wave(const Wave& wave, const WaveRanges& ranges) {
  takes_fours() ? do_ranges_by_fours(wave, ranges) : do_ranges(wave, ranges);
}

void do_full_wave(const Wave& wave, WaveRange stages) {
  takes_fours() ? do_rounds_by_fours(wave, stages) : do_rounds(wave, stages);
}

void do_pairs(const Wave& wave, WaveRange stages) {
  const auto [free, weights, forward, backward, send] = wave;
#pragma GCC ivdep
  for (std::int64_t i = stages.from; i < stages.upto; ++i) {
    const double input = forward.awaited[i] + send, gradient = backward.awaited[i] + send;
    const double later = input > gradient ? input : gradient;
    free[i] = forward.end[i] = backward.end[i] =
        (free[i] > later ? free[i] : later) + forward.time[i] + backward.time[i];
  }
}

std::int64_t slowest_loop(std::span<const double> work, std::span<const double> once,
                          double both_ways) {
  if (both_ways <= 0) return 1;
  double slowest = 0;
  std::size_t stages = 1;
  for (std::size_t first = 0; first < work.size(); ++first) {
    double loop = (once.empty() ? 0 : once[first]) - both_ways;
    for (std::size_t last = first; last < work.size(); ++last) {
      loop += work[last] + both_ways;
      const double length = double(last - first + 1);
      if (loop <= slowest * length * (1 + 1e-12)) continue;
      slowest = loop / length;
      stages = last - first + 1;
    }
  }
  return std::int64_t(stages);
}

std::int64_t Repetition::left_out(std::int64_t alike, Moments moments) {
  if (steps_++ % period_ != 0) return 0;
  std::int64_t periods = 0;
  if (!before_.empty()) {
    const double passed = (*moments.begin())->front() - before_.front();
    if (stand_as_before(moments, passed)) {
      periods = alike / period_;
      for (std::vector<double>* values : moments) {
        for (double& value : *values) value += double(periods) * passed;
      }
    }
  }
  before_.clear();
  for (const std::vector<double>* values : moments) {
    before_.insert(before_.end(), values->begin(), values->end());
  }
  return periods * period_;
}

bool Repetition::stand_as_before(Moments moments, double passed) const {
  const double tolerance = 1e-12 * (*moments.begin())->front();
  const double* before = before_.data();
  for (const std::vector<double>* values : moments) {
    for (const double value : *values) {
      // Beyond the ends of a pipeline there is nothing, then as now.
      if (!(std::abs(value - *before - passed) <= tolerance) && value != *before) return false;
      ++before;
    }
  }
  return true;
}

}  // namespace engine
