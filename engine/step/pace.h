// How many tokens a sequence makes in a decode step. All sequences of a lane keep one pace, so a count of
// the lane's tokens stands for its steps, and sums over steps stay in closed form.
#pragma once

#include <algorithm>
#include <cstdint>

namespace engine {

// After n steps of its lane a sequence has made floor(tokens * n / steps) tokens: one in each step where
// nothing is speculated; 12 in 5 steps where each is expected to accept 2.4. In no step fewer than one.
struct Pace {
  std::int64_t tokens = 1;
  std::int64_t steps = 1;  // at most as many
  std::int64_t queries =
      1;  // tokens of a sequence that a step works on: there is room for all of them,
  std::int64_t room = 0;   // and for as many beyond its last token where later steps work on more
  std::int64_t carry = 0;  // of `steps`: what steps at other paces left over of a token

  bool plain() const { return tokens == 1; }  // and then so is `steps`
  std::int64_t made_by(std::int64_t step) const {
    return plain() ? step : (tokens * step + carry) / steps;
  }
  // Tokens made in `count` steps after the first `from`.
  std::int64_t made(std::int64_t from, std::int64_t count) const {
    return plain() ? count : made_by(from % steps + count) - made_by(from % steps);
  }
  // The fewest steps after the first `from` in which as many tokens are made.
  std::int64_t steps_for(std::int64_t from, std::int64_t wanted) const {
    if (plain()) return wanted;
    const std::int64_t phase = from % steps;
    const std::int64_t until = wanted + made_by(phase);
    return (steps * until - carry + tokens - 1) / tokens - phase;
  }
  // What is left over of a token after the first `from` steps.
  std::int64_t left_over(std::int64_t from) const {
    return (tokens * (from % steps) + carry) % steps;
  }
  // Tokens of one step on average.
  double rate() const { return plain() ? 1 : double(tokens) / double(steps); }
  // The most tokens of one step.
  std::int64_t most() const { return (tokens + steps - 1) / steps; }
  // KV beyond its last token that a sequence may have room for: queries, and tokens past its end.
  std::int64_t ahead() const { return std::max(queries - 1, room); }
  std::int64_t past_end() const { return ahead() + most() - 1; }

  // Sums over `count` steps after the first `from` of the tokens made before each, and of their squares.
  double sum(std::int64_t from, std::int64_t count) const {
    const double n = double(count);
    if (plain()) return n * (n - 1) / 2;
    return powers(from, count).first;
  }
  double squares(std::int64_t from, std::int64_t count) const {
    const double n = double(count);
    if (plain()) return n * (n - 1) / 2 * (2 * n - 1) / 3;
    return powers(from, count).second;
  }

 private:
  struct Powers {
    double first = 0, second = 0;
  };
  // Steps that are a whole number of periods apart lie on a straight line, so there is one sum for each
  // step of a period. A sum of floors is not quadratic.
  Powers powers(std::int64_t from, std::int64_t count) const {
    Powers sum;
    for (std::int64_t i = 0; i < steps && i < count; ++i) {
      const double start = double(made(from, i)), rise = double(tokens);
      const double n = double((count - i + steps - 1) / steps);
      const double ones = n * (n - 1) / 2, twos = ones * (2 * n - 1) / 3;
      sum.first += n * start + rise * ones;
      sum.second += n * start * start + 2 * start * rise * ones + rise * rise * twos;
    }
    return sum;
  }
};

// A token in each step.
inline constexpr Pace kOneByOne;

}  // namespace engine
