// Numbers drawn for one load and used again, and what its lengths are on average.
#include <algorithm>
#include <cmath>

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

// Whether the mean and the spread are as stated.
bool as_stated(const Lengths& lengths) {
  const bool cut = lengths.prompt_max > 0 || lengths.output_max > 0 || lengths.total_max > 0;
  return !cut && (lengths.distribution == LengthKind::fixed ||
                  lengths.distribution == LengthKind::lognormal);
}

// Calls `each` with the lengths of the first requests.
template <class Each>
void first_draws(const DrawnLoad& from, std::int64_t draws, Each each) {
  from.memory.prepare(from.load, from.seed);
  const LengthSampler sampler(from.load.lengths, from.seed, from.trace);
  for (std::int64_t n = 0; n < draws; ++n) each(from.memory.lengths_of(n, sampler));
}

// Before classes have lengths of their own.
MeanLengths lengths_of_all(const DrawnLoad& from) {
  const Lengths& lengths = from.load.lengths;
  if (as_stated(lengths)) return {double(lengths.prompt), double(lengths.output)};
  // The first requests themselves: what the point will meet, to a few per cent.
  constexpr std::int64_t draws = 256;
  MeanLengths sum{0, 0};
  first_draws(from, draws, [&](const LengthPair& pair) {
    sum.prompt += double(pair.prompt);
    sum.output += double(pair.output);
  });
  return {sum.prompt / double(draws), sum.output / double(draws)};
}

// The same, where each request counts as often as it has output tokens.
MeanLengths lengths_by_output(const DrawnLoad& from) {
  const Lengths& lengths = from.load.lengths;
  if (as_stated(lengths)) {
    const bool spread = lengths.distribution == LengthKind::lognormal;
    const double prompt = spread ? std::log1p(lengths.prompt_cv * lengths.prompt_cv) : 0;
    const double output = spread ? std::log1p(lengths.output_cv * lengths.output_cv) : 0;
    return {double(lengths.prompt) * std::exp(lengths.correlation * std::sqrt(prompt * output)),
            double(lengths.output) * std::exp(output)};
  }
  // Squares take more of them.
  constexpr std::int64_t draws = 4096;
  MeanLengths sum{0, 0};
  double all = 0;
  first_draws(from, draws, [&](const LengthPair& pair) {
    sum.prompt += double(pair.prompt) * double(pair.output);
    sum.output += double(pair.output) * double(pair.output);
    all += double(pair.output);
  });
  return {sum.prompt / all, sum.output / all};
}

// What classes make of lengths: means of products of their factors.
struct ClassFactors {
  double prompt = 1, output = 1;
  double both = 1, output_twice = 1;
};
// Requests of a class are scaled by its mean over that of the distribution (RequestSource::assign_class).
ClassFactors class_factors(const DrawnLoad& from) {
  const LoadClasses& classes = from.load.classes;
  if (!classes.any()) return {};
  const MeanLengths drawn = LengthSampler(from.load.lengths, from.seed, from.trace).mean();
  ClassFactors mean;
  for (const LoadClass* one : {&classes.high, &classes.low}) {
    const double prompt = one->prompt > 0 ? double(one->prompt) / drawn.prompt : 1;
    const double output = one->output > 0 ? double(one->output) / drawn.output : 1;
    mean.prompt += one->share * (prompt - 1);
    mean.output += one->share * (output - 1);
    mean.both += one->share * (prompt * output - 1);
    mean.output_twice += one->share * (output * output - 1);
  }
  return mean;
}

}  // namespace

MeanLengths mean_lengths(const DrawnLoad& from) {
  const MeanLengths all = lengths_of_all(from);
  const ClassFactors classes = class_factors(from);
  return {all.prompt * classes.prompt + double(from.load.image_prompt()),
          all.output * classes.output};
}

MeanLengths lengths_inside(const DrawnLoad& from) {
  const MeanLengths all = lengths_by_output(from);
  const ClassFactors classes = class_factors(from);
  return {all.prompt * classes.both / classes.output + double(from.load.image_prompt()),
          all.output * classes.output_twice / classes.output};
}

double longest_output(const DrawnLoad& from, std::int64_t answers) {
  const double mean = mean_lengths(from).output;
  const bool alike =
      from.load.lengths.distribution == LengthKind::fixed && !from.load.classes.any();
  if (answers <= 1 || alike) return mean;
  constexpr std::int64_t draws = 4096;
  const std::int64_t together = std::min(answers, draws);
  // As many clients as requests, which all ask at once.
  Load once = from.load;
  once.arrivals = ArrivalKind::closed;
  once.turns = once.branches = 1;
  once.requests = draws / together * together;
  RequestSource source(once, from.trace, from.memory,
                       {.level = {.clients = once.requests}, .seed = from.seed});
  Request request;
  double sum = 0;
  for (std::int64_t n = 0; n < once.requests; n += together) {
    std::int64_t longest = 0;
    for (std::int64_t k = 0; k < together; ++k) {
      source.take(request);
      longest = std::max(longest, request.output);
    }
    sum += double(longest);
  }
  return sum * double(together) / double(once.requests);
}

}  // namespace engine
