// What a run tells: whether the system keeps up with its load, how precise the figures are, and whether
// limits on latency are met beyond doubt. Pure functions of what was seen.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "engine/serving/figures/measurement.h"
#include "engine/serving/figures/saturation.h"
#include "engine/serving/settings/slo.h"

namespace engine {

// A mean and how far it may be off: the true one lies within `half_width` of it with 95%.
struct BatchMean {
  double mean = 0;
  double half_width = kNever;

  double relative() const { return mean > 0 ? half_width / mean : kNever; }
};
// Of equally long batches of a run, whose means are nearly independent. Fewer than four tell nothing.
BatchMean batch_mean(std::span<const double> batches);
constexpr std::size_t kBatches = 20;
// A twentieth is seen as growth: 5% more load than can be served, or than caches have to read.
constexpr double kGrowing = 0.05;
// 2% are as good as the figure itself.
constexpr double kPrecise = 0.02;

// Requests finished a second, between snapshots.
BatchMean finished_rate(std::span<const Snapshot> snapshots);

// Sums over the measured part of a closed loop. Clients that wait for seats finish in bursts of as many as there are seats. A part that
// begins early in one burst and ends late in another has too many answers for its time, and batches of whole rounds are all wrong alike.
struct LoopSums {
  double inside = 0;    // seconds that requests spent in the system during the part
  double stays = 0;     // seconds from arrival to answer, of requests that arrived in it
  double arrived = 0;   // in it
  double answered = 0;  // in it
};
// How far answers, times and clients are from Little's law, over what the law says: answers a second times a stay are those inside.
double little_error(const LoopSums& sums);

// How many replicas a fleet has on average depends on how it follows the ups and downs of its load, each for as long as it takes to
// follow them (a round). A part of ten rounds knows that number to some percent, and a shorter one may know it as well: by the means of
// its batches, half a round long at least, and by one replica more or fewer for a round that it has not seen.
constexpr double kFleetRounds = 10;
// `sizes`: replicas that were on, in equally long batches of a part of so many rounds.
bool size_is_known(std::span<const double> sizes, double rounds);
// Batches of a part of so many rounds; 0: it is too short.
std::size_t batches_of_rounds(double rounds);

// A percentile (or with `kMeanShare` the mean) of samples in the order of time: how far it may be off.
// Batches that follow one another alike count as fewer. Samples may be infinite (LatencySamples): then 0 where the figure is infinite
// beyond doubt, and kNever where it is so in some batches only.
double half_width_of(std::span<const double> samples, double share);

// A limit on latency beside what was seen of it.
struct LimitCheck {
  double limit = 0;
  double value = 0;  // NaN where nothing was seen
  double half_width = kNever;
  double seen = 1;  // share of what was measured that `value` was found from, the later part of it

  bool met() const { return value <= limit; }  // not so where nothing was seen
  // Beyond doubt: at one and a half times the 95%, because a run is looked at again and again.
  bool decided() const {
    return value + 1.5 * half_width <= limit || value - 1.5 * half_width > limit;
  }
  // Of the figure of all that was measured.
  bool precise() const {
    return half_width < kNever && half_width * std::sqrt(seen) <= kPrecise * value;
  }
};

// Latencies of the measured requests, in the order of their answers. Those that were given up (refused, shed or failed) are later than any
// limit: infinitely late.
struct LatencySamples {
  std::vector<double> ttft, tpot, e2e;
  double seen = 1;  // share of the measured requests that these are: of a long run the later ones
};
struct SloVerdict {
  bool precise = true;   // every figure that has a limit
  bool decided = false;  // all limits are met, or one is missed, beyond doubt
  bool missed = false;   // the latter
  bool known =
      false;  // each limit is met beyond doubt or its figure is precise, or one is missed beyond doubt
};
// Gaps between tokens are kept as counts, without order: `gap(share)` is a percentile of them, and as
// precise as the same percentile of the requests' times per token.
SloVerdict judge_slo(const Slo& slo, const LatencySamples& samples,
                     const std::function<double(double share)>& gap);

// By how much the number of requests inside moves by chance where nothing calls it back, as variance for each that comes: that of how
// many come and that of the work that each brings, over the squares of their means. The work lies between two bounds.
struct Restlessness {
  double arrivals = 1;
  double least_work = 1, most_work = 1;
};
// Work that grows with new tokens of prompts and with tokens of answers varies no more than the one of the two that varies more. It varies
// no less than the times in service, because requests that share steps take equally long in them.
class WorkSpread {
 public:
  void add(double prompt, double output, double stay) {
    count_ += 1;
    prompts_.add(prompt), outputs_.add(output), stays_.add(stay);
  }
  Restlessness with_arrivals(double burstiness) const;

 private:
  struct Moments {
    double sum = 0, squares = 0;
    void add(double value) { sum += value, squares += value * value; }
    // Variance over the square of the mean.
    double spread(double count) const {
      return sum > 0 ? std::max(0.0, count * squares / (sum * sum) - 1) : 0;
    }
  };
  double count_ = 0;
  Moments prompts_, outputs_, stays_;
};

// Whether caches have come to have what they will have: prompts in the order of time, and what had to be read of each.
class CacheReads {
 public:
  void add(double prompt, double cached) { reads_.push_back({prompt, prompt - cached}); }
  // By how much the share that is read is higher in the second half than in the first, over its mean; 0 where that may be chance.
  double drift() const;

 private:
  struct Read {
    double prompt, anew;
  };
  std::vector<Read> reads_;
};

struct LoadEvidence {
  RunKind kind = RunKind::open;
  bool settled = false;
  std::span<const Snapshot> snapshots;  // of the measured part
  double queue_share = 0;               // mean time in the queue over the mean time in service
  double offered_share = 0;             // rate of arrivals over the estimated capacity; 0: unknown
  // Time since the first arrival over the mean time in service of those finished.
  double stays = kNever;
  // Length of the measured part over the same, where a warm-up or a window is stated.
  double stays_of_part = kNever;
  // Of whole runs: seconds that the requests of a session are in service, one after another, and the moment at which a system that keeps up
  // has filled up. Its longest answers may come in later.
  double unit_stay = 0, filled = 0;
  // A run that can go on had better, before it is called overloaded.
  bool may_go_on = false;
  Restlessness restless;
  double requests_of_session = 1;
  // Replicas fail, and too seldom in this run to tell how much is served in the end.
  bool failures_unknown = false;
};
Saturation saturation_of(const LoadEvidence& evidence);

}  // namespace engine
