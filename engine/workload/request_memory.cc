// Numbers drawn for one load and used again, and what its lengths are on average.
#include "engine/workload/request_source.h"

namespace engine {

void RequestMemory::prepare(const Load& load, std::uint64_t seed) {
  // Rows drawn from a trace are quick to look up, and belong to the trace.
  const bool same = load.arrivals == kind_ && load.cv == cv_ && load.lengths == drawn_ &&
                    seed == seed_ && load.lengths.distribution != LengthKind::empirical;
  if (!same || load.samples != samples_) answers_.clear();
  samples_ = load.samples;
  if (same) return;
  kind_ = load.arrivals;
  cv_ = load.cv;
  drawn_ = load.lengths;
  seed_ = seed;
  arrivals_.clear();
  lengths_.clear();
}

LengthPair RequestMemory::draw_lengths(std::size_t n, const LengthSampler& sampler) {
  const LengthPair pair = sampler(std::int64_t(n));
  if (n >= kMost) return pair;
  // Requests of sessions come in another order than that of their numbers.
  if (n >= lengths_.size()) lengths_.resize(n + 1, LengthPair{0, 0});
  lengths_[n] = pair;
  return pair;
}

std::int64_t RequestMemory::keep_answer(std::size_t place, std::int64_t tokens) {
  if (place >= kMost) return tokens;
  if (place >= answers_.size()) answers_.resize(place + 1, 0);
  return answers_[place] = tokens;
}

double RequestMemory::draw_arrival(std::size_t n, ArrivalClock& clock) {
  if (n == arrivals_.size() && n > 0) clock.resume(n, arrivals_.back());
  const double time = clock.next();
  if (n == arrivals_.size() && n < kMost) arrivals_.push_back(clock.units());
  return time;
}

namespace {

// Before classes have lengths of their own.
MeanLengths lengths_of_all(const Load& load, const Trace* trace, std::uint64_t seed,
                           RequestMemory& memory) {
  const Lengths& lengths = load.lengths;
  const bool cut = lengths.prompt_max > 0 || lengths.output_max > 0 || lengths.total_max > 0;
  const bool exact = !cut && (lengths.distribution == LengthKind::fixed ||
                              lengths.distribution == LengthKind::lognormal);
  if (exact) return {double(lengths.prompt), double(lengths.output)};
  // The first requests themselves: what the point will meet, to a few per cent.
  constexpr std::int64_t draws = 256;
  memory.prepare(load, seed);
  const LengthSampler sampler(lengths, seed, trace);
  MeanLengths sum{0, 0};
  for (std::int64_t n = 0; n < draws; ++n) {
    const LengthPair pair = memory.lengths_of(n, sampler);
    sum.prompt += double(pair.prompt);
    sum.output += double(pair.output);
  }
  return {sum.prompt / double(draws), sum.output / double(draws)};
}

}  // namespace

MeanLengths mean_lengths(const Load& load, const Trace* trace, std::uint64_t seed,
                         RequestMemory& memory) {
  MeanLengths mean = lengths_of_all(load, trace, seed, memory);
  const LoadClasses& classes = load.classes;
  const auto factor = [](double share, std::int64_t own, std::int64_t of) {
    return own > 0 ? share * (double(own) / double(of) - 1) : 0;
  };
  mean.prompt *= 1 + factor(classes.high.share, classes.high.prompt, load.lengths.prompt) +
                 factor(classes.low.share, classes.low.prompt, load.lengths.prompt);
  mean.output *= 1 + factor(classes.high.share, classes.high.output, load.lengths.output) +
                 factor(classes.low.share, classes.low.output, load.lengths.output);
  mean.prompt += double(load.image_prompt());
  return mean;
}

}  // namespace engine
