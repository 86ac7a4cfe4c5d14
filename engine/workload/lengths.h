// Prompt and output lengths of the n-th request.
#pragma once

#include <cstdint>

#include "engine/workload/load.h"
#include "engine/workload/trace.h"

namespace engine {

struct LengthPair {
  std::int64_t prompt = 1;
  std::int64_t output = 1;
};
struct MeanLengths {
  double prompt = 1;
  double output = 1;
};

// A function of the request's number; the trace, if any, outlives it.
class LengthSampler {
 public:
  LengthSampler(const Lengths& lengths, std::uint64_t seed, const Trace* trace);
  LengthPair operator()(std::int64_t number) const;
  // Of what is drawn, before anything is cut.
  MeanLengths mean() const;

 private:
  LengthPair cut(double prompt, double output) const;
  Lengths lengths_;
  std::uint64_t seed_;
  const Trace* trace_;
  // Lognormal: mean and deviation of the logarithm.
  double prompt_log_mean_ = 0, prompt_log_deviation_ = 0;
  double output_log_mean_ = 0, output_log_deviation_ = 0;
};

}  // namespace engine
