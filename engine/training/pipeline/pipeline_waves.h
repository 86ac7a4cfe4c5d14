// Passes of many stages at once, in an order in which none of them waits for another.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace engine {

// Passes of one kind, one of each stage: a pass begins when the stage is free and what it waits for has been sent.
struct WavePasses {
  double* end = nullptr;
  const double* awaited = nullptr;  // ends of passes that others did in the wave before
  const double* time = nullptr;
};
// What a stage does in a wave, in this order: gradients of weights that were put off, a forward pass, a backward pass.
struct Wave {
  double* free = nullptr;  // when a stage has done what it began
  const double* weights = nullptr;
  WavePasses forward, backward;
  double send = 0;
};

struct WaveRange {
  std::int64_t from = 0, upto = 0;
};
// Which stages do so. Near the ends of a batch some have nothing to do yet, or any more.
struct WaveRanges {
  WaveRange weights, forward, backward;
};

void do_wave(const Wave& wave, const WaveRanges& ranges);
// Where they all do all three.
void do_full_wave(const Wave& wave, WaveRange stages);

// Where the forward pass goes on beside the backward pass: a pair begins when both can, and ends both.
void do_pairs(const Wave& wave, WaveRange stages);

// A stage waits for later ones, which wait for it: in a stretch of n neighbouring stages a micro-batch goes down and its
// gradient comes up, and the first stage has begun n more by then. So a round of the steady state takes at least as long as
// the slowest such loop for each of its micro-batches; and in as many rounds as that loop has stages everything repeats. `work` is that
// of each stage in a round, `once` what the first stage of a loop does besides (empty: nothing).
std::int64_t slowest_loop(std::span<const double> work, std::span<const double> once,
                          double both_ways);

// Leaves out what is repeated. Every `period` steps it looks whether all stages stand as they stood a period ago, only
// later: what follows depends on nothing else, so that all periods to come take as long.
class Repetition {
 public:
  explicit Repetition(std::int64_t period) : period_(period) {}

  // How many of the next `alike` steps are left out at this one. Moments (when stages are free, of the first in front, and
  // when passes ended) are then those after them.
  using Moments = std::initializer_list<std::vector<double>*>;
  std::int64_t left_out(std::int64_t alike, Moments moments);

 private:
  bool stand_as_before(Moments moments, double passed) const;

  std::int64_t period_, steps_ = 0;
  std::vector<double> before_;
};

}  // namespace engine
