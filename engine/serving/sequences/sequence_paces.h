// How many tokens a decode step makes of each sequence, where sequences differ in that: they draw it, or their classes
// have acceptances of their own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/step/pace.h"
#include "engine/workload/load_classes.h"

namespace engine {

struct SequencePaces {
  // What a class of requests has: chances that at least 1, 2, ... proposed positions are accepted; and, by the number of positions
  // proposed, the mean number of tokens in fixed point.
  struct OfClass {
    std::vector<double> chances;
    std::vector<Pace> means;

    // Tokens of a step that proposes `positions`, from luck between 0 and 1.
    std::int32_t drawn_tokens(std::int64_t positions, double luck) const {
      // Chances fall from one position to the next; no branch, since which way it went could not be guessed.
      std::int32_t tokens = 1;
      const double* const end = chances.data() + positions;
      for (const double* chance = chances.data(); chance != end; ++chance) {
        tokens += luck < *chance ? 1 : 0;
      }
      return tokens;
    }
    // The same at the mean pace, of a sequence that has `made` tokens: each of them comes in the step in which it is due.
    std::int64_t mean_tokens(std::int64_t positions, std::int64_t made) const {
      const Pace& pace = means[std::size_t(positions)];
      return pace.made(pace.steps_for(0, made), 1);
    }
  };
  std::array<OfClass, kRequestClasses> classes;
  bool drawn = false;     // by chance; otherwise every sequence keeps its mean pace
  bool by_class = false;  // classes differ

  const OfClass& of(RequestClass service_class) const {
    return classes[std::size_t(service_class)];
  }
};

}  // namespace engine
