#include "engine/serving/figures/run_judge.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace engine {
namespace {

// Student's t, both sides 5%, by degrees of freedom from 3 on.
constexpr std::array<double, 17> kStudent{3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                          2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                          2.131, 2.120, 2.110, 2.101, 2.093};
constexpr std::size_t kFewestBatches = 4;

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / double(values.size());
}

// How alike neighbours are: the first autocorrelation, from 0 on.
double likeness(std::span<const double> values) {
  const double mean = mean_of(values);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 0.9) : 0;
}

// Of batches that may be alike with those before them, and count as fewer then.
BatchMean correlated_mean(std::span<const double> batches) {
  BatchMean result = batch_mean(batches);
  const double alike = likeness(batches);
  result.half_width *= std::sqrt((1 + alike) / (1 - alike));
  return result;
}

// As Samples does, of a copy that may be reordered.
double percentile_of(std::span<double> values, double share) {
  const double rank = share * double(values.size() - 1);
  const auto low = values.begin() + std::ptrdiff_t(rank);
  std::nth_element(values.begin(), low, values.end());
  if (low + 1 == values.end()) return *low;
  const double next = *std::min_element(low + 1, values.end());
  const double beyond = rank - std::floor(rank);
  return beyond > 0 && next > *low ? *low + beyond * (next - *low) : *low;  // both may be infinite
}

// How many have come, and how many have gone.
struct ComeAndGone {
  double Snapshot::*come, Snapshot::*gone;
  double inside(const Snapshot& snapshot) const { return snapshot.*come - snapshot.*gone; }
};
constexpr ComeAndGone kRequestsInside{&Snapshot::arrived, &Snapshot::finished};
constexpr ComeAndGone kSessionsInside{&Snapshot::opened, &Snapshot::closed};

// What is inside, as a straight line over the measured part.
struct Growth {
  double rise = 0;     // more at the end than at the start
  double mean = 0;     // inside
  double swing = 0;    // standard deviation from that mean, the rise included
  double arrived = 0;  // over the part
  double share() const { return arrived > 0 ? rise / arrived : 0; }
  // Over a part in which fewer arrive than are inside, which is less than the time that one of them stays
  // (Little), hardly anybody is seen to come and go.
  bool seen() const { return arrived > 0 && arrived >= mean; }
  // What random arrivals alone bring to a system with room to spare.
  double calm() const { return 2 * std::sqrt(2 * mean + 1); }
  // What random arrivals and lengths bring to a system that is just full, as one standard deviation: nothing calls it back. `variance`: for
  // each that comes.
  double walk(double variance) const { return std::sqrt(variance * arrived); }
  // What is inside is called back to its mean again and again. Of a walk of n steps that nothing calls back, the variance from its mean
  // over time is n/6 on average, and has the distribution of Cramér and von Mises' statistic: in one run of a thousand it is below n/60
  // (Anderson and Darling, 1952). A queue at a load of 1 - e needs some 30/e^2 requests to show as little, 12,000 at 95%. What grows evenly
  // is all rise, however little that is: 3.5 deviations (`evenly`).
  bool comes_back(double variance) const { return swing <= 0.13 * walk(variance) && !evenly(); }
  bool evenly() const { return rise > std::max(1.0, 2 * swing); }
  // A busy system swings about its mean, which is no growth. What keeps growing comes to twice its mean, or shows at once because much
  // of what arrives stays.
  bool goes_on(double variance) const {
    const bool plain = rise > 0.8 * mean || share() > 3 * kGrowing;
    return plain && rise > std::max(calm(), 3 * walk(variance));
  }
};
Growth growth_of(std::span<const Snapshot> snapshots, const ComeAndGone& counts) {
  Growth growth;
  const double n = double(snapshots.size());
  if (snapshots.size() < 2) return growth;
  double time = 0;
  for (const Snapshot& snapshot : snapshots) {
    time += snapshot.time / n;
    growth.mean += counts.inside(snapshot) / n;
  }
  double squares = 0, products = 0, swings = 0;
  for (const Snapshot& snapshot : snapshots) {
    const double apart = snapshot.time - time, off = counts.inside(snapshot) - growth.mean;
    squares += apart * apart;
    products += apart * off;
    swings += off * off;
  }
  growth.swing = std::sqrt(swings / n);
  const double span = snapshots.back().time - snapshots.front().time;
  if (squares > 0) growth.rise = products / squares * span;
  growth.arrived = snapshots.back().*counts.come - snapshots.front().*counts.come;
  return growth;
}

std::span<const Snapshot> later_than(double time, std::span<const Snapshot> snapshots) {
  const auto first = std::ranges::lower_bound(snapshots, time, {}, &Snapshot::time);
  return {first, snapshots.end()};
}

// Finished in the later half of the part over those of the earlier half: far above 1 where a system
// still fills up.
double quickening(std::span<const Snapshot> snapshots) {
  const Snapshot& first = snapshots.front();
  const Snapshot& middle = snapshots[snapshots.size() / 2];
  const Snapshot& last = snapshots.back();
  const double early = (middle.finished - first.finished) / (middle.time - first.time);
  const double late = (last.finished - middle.finished) / (last.time - middle.time);
  return early > 0 ? late / early : kNever;
}

}  // namespace

BatchMean batch_mean(std::span<const double> batches) {
  const std::size_t n = batches.size();
  if (n < kFewestBatches) return {n > 0 ? mean_of(batches) : 0, kNever};
  BatchMean result{.mean = mean_of(batches)};
  double squares = 0;
  for (const double value : batches) squares += (value - result.mean) * (value - result.mean);
  const double student = kStudent[std::min(n - kFewestBatches, kStudent.size() - 1)];
  result.half_width = student * std::sqrt(squares / double(n - 1) / double(n));
  return result;
}

BatchMean finished_rate(std::span<const Snapshot> snapshots) {
  if (snapshots.size() <= kFewestBatches) return {};
  std::array<double, kBatches> rates{};
  const std::size_t intervals = snapshots.size() - 1;
  const std::size_t batches = std::min(kBatches, intervals);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < batches; ++i) {
    const std::size_t end = (i + 1) * intervals / batches;
    const Snapshot &from = snapshots[begin], &to = snapshots[end];
    // Snapshots of one moment, as a burst gives them, tell nothing of a rate.
    if (!(to.time > from.time)) return {};
    rates[i] = (to.finished - from.finished) / (to.time - from.time);
    begin = end;
  }
  return batch_mean({rates.data(), batches});
}

std::size_t batches_of_rounds(double rounds) {
  if (rounds < 2) return 0;
  return std::clamp(std::size_t(rounds), kFewestBatches, kBatches);
}

bool size_is_known(std::span<const double> sizes, double rounds) {
  if (rounds >= kFleetRounds) return true;
  if (sizes.size() < kFewestBatches) return false;
  const BatchMean mean = correlated_mean(sizes);
  return std::max(mean.half_width, 1 / rounds) <= kPrecise * mean.mean;
}

Restlessness WorkSpread::with_arrivals(double burstiness) const {
  // Too few tell nothing.
  constexpr double enough = 40;
  if (count_ < enough) return {.arrivals = burstiness};
  // Steps end for many requests at once, however alike they are.
  constexpr double least = 0.1;
  const double most = std::max({least, prompts_.spread(count_), outputs_.spread(count_)});
  const double stays = std::max(least, stays_.spread(count_));
  return {.arrivals = burstiness, .least_work = std::min(most, stays), .most_work = most};
}

double CacheReads::drift() const {
  constexpr std::size_t fewest = 5;  // prompts of a batch
  if (reads_.size() < fewest * kBatches) return 0;
  std::array<double, kBatches> shares{};
  for (std::size_t i = 0; i < kBatches; ++i) {
    Read sum{};
    for (std::size_t k = i * reads_.size() / kBatches; k < (i + 1) * reads_.size() / kBatches;
         ++k) {
      sum.prompt += reads_[k].prompt;
      sum.anew += reads_[k].anew;
    }
    shares[i] = sum.anew / sum.prompt;
  }
  constexpr std::size_t half = kBatches / 2;
  const BatchMean early = batch_mean({shares.data(), half});
  const BatchMean late = batch_mean({shares.data() + half, half});
  const double more = late.mean - early.mean, mean = (late.mean + early.mean) / 2;
  // Twice the 95% of a difference: one run in some thousands shows as much by chance.
  const bool chance = std::abs(more) <= 2 * std::hypot(early.half_width, late.half_width);
  return chance || mean <= 0 ? 0 : more / mean;
}

double little_error(const LoopSums& sums) {
  if (!(sums.inside > 0) || !(sums.arrived > 0)) return kNever;
  return std::abs(sums.answered * sums.stays / sums.arrived / sums.inside - 1);
}

double half_width_of(std::span<const double> samples, double share) {
  // A percentile of a batch needs a few samples beyond it.
  const double beyond = share == kMeanShare ? 1 : 1 - share;
  if (samples.size() < 2 * kBatches || double(samples.size()) * beyond < 5) return kNever;
  std::array<double, kBatches> values{};
  std::vector<double> batch;
  for (std::size_t i = 0; i < kBatches; ++i) {
    const std::size_t begin = i * samples.size() / kBatches;
    const std::size_t end = (i + 1) * samples.size() / kBatches;
    batch.assign(samples.begin() + std::ptrdiff_t(begin), samples.begin() + std::ptrdiff_t(end));
    values[i] = share == kMeanShare ? mean_of(batch) : percentile_of(batch, share);
  }
  const auto endless = std::size_t(std::ranges::count(values, kNever));
  // One of them makes a mean infinite, whatever else comes.
  if (endless == kBatches || (endless > 0 && share == kMeanShare)) return 0;
  if (endless > 0) return kNever;
  return correlated_mean(values).half_width;
}

SloVerdict judge_slo(const Slo& slo, const LatencySamples& samples,
                     const std::function<double(double share)>& gap) {
  SloVerdict verdict;
  bool all_decided = true, all_known = true;
  std::vector<double> copy;
  const auto add = [&](const LimitCheck& check) {
    verdict.precise = verdict.precise && check.precise();
    verdict.missed = verdict.missed || (check.decided() && !check.met());
    all_decided = all_decided && check.decided();
    all_known = all_known && (check.precise() || check.decided());
  };
  const auto check_of = [&](const std::vector<double>& values, double share, double limit) {
    LimitCheck check{.limit = limit, .value = std::nan(""), .seen = samples.seen};
    if (values.empty()) return check;
    copy = values;
    check.value = share == kMeanShare ? mean_of(copy) : percentile_of(copy, share);
    check.half_width = half_width_of(values, share);
    return check;
  };
  const auto add_all = [&](const LatencyLimits& limits, const std::vector<double>& values) {
    limits.each([&](double share, double limit) { add(check_of(values, share, limit)); });
  };
  add_all(slo.ttft, samples.ttft);
  add_all(slo.tpot, samples.tpot);
  add_all(slo.e2e, samples.e2e);
  slo.itl.each([&](double share, double limit) {
    LimitCheck check = check_of(samples.tpot, share, limit);
    if (check.value < kNever) {
      const double width = check.half_width / check.value;
      check.value = gap(share);
      check.half_width = width * check.value;
    }
    add(check);
  });
  verdict.decided = verdict.missed || all_decided;
  verdict.known = verdict.missed || all_known;
  return verdict;
}

namespace {

// What is inside of a run that is measured whole, or of a part of it.
struct WholeGrowth {
  Growth requests, sessions;

  // In excess of chance and of a twentieth of what arrives.
  bool piles_up(const Restlessness& restless, double calls) const {
    const auto& [arrivals, least_work, most_work] = restless;
    return (requests.goes_on(arrivals + most_work) && requests.share() > kGrowing) ||
           (sessions.goes_on(arrivals / calls + most_work) && sessions.share() > kGrowing);
  }
  bool grows() const {
    const auto is_growth = [](const Growth& growth) {
      return growth.rise > growth.calm() && growth.share() > kGrowing;
    };
    return is_growth(requests) || is_growth(sessions);
  }
};
WholeGrowth whole_growth(std::span<const Snapshot> snapshots, double calls) {
  const Growth requests = growth_of(snapshots, kRequestsInside);
  return {requests, calls > 1 ? growth_of(snapshots, kSessionsInside) : requests};
}

// More than could be served, whatever is seen of it.
bool far_beyond(const LoadEvidence& evidence) { return evidence.offered_share > 1.5; }

// While it fills up any system finishes less than arrives. So what has piled up is an overload only where it goes on doing so afterwards, for
// several stays; or where requests queue, and far more of them come than could be served.
Saturation saturation_of_whole(const LoadEvidence& evidence, Saturation bounded,
                               Saturation beyond) {
  constexpr double several = 4;
  const double calls = evidence.requests_of_session;
  if (!whole_growth(evidence.snapshots, calls).piles_up(evidence.restless, calls)) return bounded;
  const std::span<const Snapshot> later = later_than(evidence.filled, evidence.snapshots);
  if (later.empty() || later.back().time < evidence.filled + several * evidence.unit_stay) {
    const bool queues = bounded == Saturation::backlogged;
    return queues && far_beyond(evidence) ? beyond : Saturation::undecided;
  }
  const WholeGrowth growth = whole_growth(later, calls);
  if (growth.piles_up(evidence.restless, calls)) return beyond;
  return growth.grows() ? Saturation::undecided : bounded;
}

}  // namespace

Saturation saturation_of(const LoadEvidence& evidence) {
  // Queues of less than a fifth of the time in service are the ordinary waiting for a step to end.
  constexpr double noticeable = 0.2;
  const Saturation bounded =
      evidence.queue_share > noticeable ? Saturation::backlogged : Saturation::stable;
  const Growth growth = growth_of(evidence.snapshots, kRequestsInside);
  const double calm = growth.calm();
  const auto& [arrivals, least_work, most_work] = evidence.restless;
  // What piles up while a replica is under repair may be worked off, unless all replicas could not serve it.
  const bool one_outage = evidence.failures_unknown && evidence.offered_share < 1.1;
  const Saturation beyond = one_outage ? Saturation::undecided : Saturation::overloaded;
  if (evidence.stays_of_part < 1) return Saturation::undecided;
  if (evidence.kind == RunKind::whole) return saturation_of_whole(evidence, bounded, beyond);
  if (evidence.kind == RunKind::closed) {
    return evidence.settled ? bounded : Saturation::undecided;
  }
  // Where each request of a session waits for the one before it, sessions pile up, and hardly any requests. So what a walk brings in
  // requests may be as little as in sessions: one request for each session, however many it brings in the end.
  const double calls = evidence.requests_of_session;
  const Growth sessions = calls > 1 ? growth_of(evidence.snapshots, kSessionsInside) : growth;
  const bool requests_grow = growth.goes_on(arrivals + most_work);
  const bool sessions_grow = sessions.goes_on(arrivals / calls + most_work);
  if (!evidence.settled) {
    // Still filling up, or never able to: then as much is finished early as late.
    if (evidence.snapshots.size() < kFewestBatches) return Saturation::undecided;
    // Before those that came first are done, short ones apart, any system looks as if it never would be.
    const bool too_soon = evidence.stays < 4;
    if (too_soon && evidence.may_go_on) return Saturation::undecided;
    const bool flat = !too_soon && quickening(evidence.snapshots) < 1.1;
    // Bursts bring more by chance than requests that come one by one.
    const double chance = calm * std::sqrt(std::max(1.0, arrivals));
    const bool behind = growth.share() > kGrowing && growth.rise > chance;
    return behind && (flat || far_beyond(evidence)) ? beyond : Saturation::undecided;
  }
  // The longest answers come in long after the others, and what is inside grows until they end.
  if (requests_grow || sessions_grow) {
    const bool may_end = evidence.may_go_on && evidence.stays < 30;
    return may_end ? Saturation::undecided : beyond;
  }
  if (!growth.seen() || !sessions.seen()) return Saturation::undecided;
  const double of_session = (arrivals + least_work) / calls;
  if (growth.comes_back(of_session / calls)) return bounded;
  if (sessions.comes_back(of_session) && !growth.evenly()) return bounded;
  // A run that is too short to show that: what is inside did not grow by more than chance, and the estimate has room.
  const bool room = evidence.offered_share > 0 && evidence.offered_share < 0.9;
  const bool by_chance = growth.rise <= calm && sessions.rise <= sessions.calm();
  return room && by_chance ? bounded : Saturation::undecided;
}

}  // namespace engine
