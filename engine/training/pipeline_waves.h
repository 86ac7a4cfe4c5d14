// Passes of many stages at once, in an order in which none of them waits for another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace engine {

// A pass of each stage: it begins when the stage is free and what it waits for has been sent.
struct WavePasses {
  double* free = nullptr;
  double* end = nullptr;
  const double* awaited = nullptr;  // ends of passes that others did in the wave before
  const double* time = nullptr;
};
struct WaveRange {
  std::int64_t from = 0, upto = 0;
};

// A loop without order over values that lie apart, which compilers turn into vector instructions.
inline void do_passes(const WavePasses& passes, double send, WaveRange range) {
  double* __restrict free = passes.free;
  double* __restrict end = passes.end;
  const double* __restrict awaited = passes.awaited;
  const double* __restrict time = passes.time;
  for (std::int64_t i = range.from; i < range.upto; ++i) {
    const double arrives = awaited[i] + send;
    const double begins = free[i] > arrives ? free[i] : arrives;
    free[i] = end[i] = begins + time[i];
  }
}

// Moments of all stages: when they are free (of the first stage in front), and when passes ended.
using StageTimes = std::span<std::vector<double>* const>;

// How all stages stand: what follows depends on nothing else.
void remember(StageTimes times, std::vector<double>& state);
// Whether all stages stand as they stood then, `passed` later.
bool stands_as(const std::vector<double>& state, StageTimes times, double& passed);
void move_on(StageTimes times, double passed);

}  // namespace engine
