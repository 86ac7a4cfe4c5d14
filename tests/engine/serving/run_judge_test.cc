// What a run tells, from series one can make up.
#include "engine/serving/figures/run_judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/random.h"

namespace engine {
namespace {

// Forty moments of a load of `rate` requests a second over `seconds`, of which `served` are finished,
// after `inside` were there.
std::vector<Snapshot> even_run(double rate, double served, double seconds, double inside = 5) {
  std::vector<Snapshot> snapshots;
  for (int i = 0; i <= 40; ++i) {
    const double time = seconds * i / 40;
    snapshots.push_back({.time = time, .arrived = inside + rate * time, .finished = served * time});
  }
  return snapshots;
}

Saturation judged(const std::vector<Snapshot>& snapshots, bool settled = true,
                  double offered_share = 0.5, double queue_share = 0) {
  return saturation_of({.kind = RunKind::open,
                        .settled = settled,
                        .snapshots = snapshots,
                        .queue_share = queue_share,
                        .offered_share = offered_share});
}

TEST(RunJudge, NothingIsOverloadedBeforeTheFirstAreDone) {
  const std::vector<Snapshot> behind = even_run(100, 20, 50);
  LoadEvidence evidence{
      .kind = RunKind::open, .settled = false, .snapshots = behind, .offered_share = 2};
  EXPECT_EQ(saturation_of(evidence), Saturation::overloaded);
  evidence.stays = 2;
  evidence.may_go_on = true;
  EXPECT_EQ(saturation_of(evidence), Saturation::undecided);
  // Where it cannot go on, only far more than could be served is known to be too much.
  evidence.may_go_on = false;
  EXPECT_EQ(saturation_of(evidence), Saturation::overloaded);
  evidence.offered_share = 0.9;
  EXPECT_EQ(saturation_of(evidence), Saturation::undecided);
}

TEST(RunJudge, BatchMeansCoverTheMean) {
  // Twenty numbers around 10: the interval of nineteen in twenty such runs holds it.
  int covered = 0;
  for (std::uint64_t run = 0; run < 1000; ++run) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < kBatches; ++i) {
      values.push_back(10 + normal(7, Stream::sampling, run * kBatches + i));
    }
    const BatchMean mean = batch_mean(values);
    covered += std::abs(mean.mean - 10) <= mean.half_width;
  }
  EXPECT_NEAR(covered, 950, 25);
}

TEST(RunJudge, FewBatchesTellNothing) {
  EXPECT_EQ(batch_mean(std::vector<double>{1, 1, 1}).half_width, kNever);
  EXPECT_EQ(batch_mean(std::vector<double>{1, 1, 1, 1}).half_width, 0);
  EXPECT_EQ(finished_rate({}).relative(), kNever);
}

TEST(RunJudge, AnEvenRunIsPrecise) {
  const BatchMean rate = finished_rate(even_run(20, 20, 100));
  EXPECT_NEAR(rate.mean, 20, 1e-9);
  EXPECT_LT(rate.relative(), 1e-9);
}

TEST(RunJudge, AnswersTimesAndClientsAgree) {
  // Twelve clients on ten seats, answers of 10 s: ten come every 10 s, after 12 s each in the mean.
  const double seconds = 100;
  LoopSums sums{.inside = 12 * seconds, .stays = 12 * 100, .arrived = 100, .answered = 100};
  EXPECT_NEAR(little_error(sums), 0, 1e-12);
  // From early in a burst to late in one ten more come.
  sums.answered = 110;
  EXPECT_NEAR(little_error(sums), 0.1, 1e-12);
  EXPECT_EQ(little_error({}), kNever);
}

TEST(RunJudge, BatchesThatFollowOneAnotherAlikeCountAsFewer) {
  std::vector<double> independent, drifting;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    independent.push_back(1 + 0.1 * normal(7, Stream::sampling, i));
    drifting.push_back(1 + 0.1 * std::sin(double(i) / 500));
  }
  EXPECT_LT(half_width_of(independent, 0.95), 0.02);
  EXPECT_GT(half_width_of(drifting, 0.95), 0.05);
}

TEST(RunJudge, ALimitOnNothingIsNotMet) {
  const LimitCheck check{.limit = 1, .value = std::nan("")};
  EXPECT_FALSE(check.met());
  EXPECT_FALSE(check.decided());
  EXPECT_FALSE(check.precise());
  Slo slo;
  slo.ttft.p95 = Seconds{1};
  const SloVerdict verdict = judge_slo(slo, {}, [](double) { return 0.0; });
  EXPECT_FALSE(verdict.decided);
  EXPECT_FALSE(verdict.precise);
}

TEST(RunJudge, ALimitIsDecidedFarFromIt) {
  LatencySamples samples;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    samples.ttft.push_back(exponential(3, Stream::sampling, i));
  }
  Slo slo;  // the 95th percentile is 3
  slo.ttft.p95 = Seconds{6};
  EXPECT_TRUE(judge_slo(slo, samples, {}).decided);
  EXPECT_FALSE(judge_slo(slo, samples, {}).missed);
  slo.ttft.p95 = Seconds{1};
  EXPECT_TRUE(judge_slo(slo, samples, {}).missed);
  slo.ttft.p95 = Seconds{3};
  EXPECT_FALSE(judge_slo(slo, samples, {}).decided);
}

// One limit is far away, the other near a figure that is precise: of each enough is known.
TEST(RunJudge, EachLimitIsFarAwayOrItsFigureIsPrecise) {
  LatencySamples samples;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    samples.ttft.push_back(exponential(3, Stream::sampling, i));
    samples.tpot.push_back(0.01 + 1e-5 * exponential(4, Stream::sampling, i));
  }
  Slo slo;
  slo.ttft.p95 = Seconds{6};         // it is 3, give or take a tenth
  slo.tpot.mean = Seconds{0.01001};  // it is that
  const SloVerdict verdict = judge_slo(slo, samples, {});
  EXPECT_TRUE(verdict.known);
  EXPECT_FALSE(verdict.precise);
  EXPECT_FALSE(verdict.decided);
  slo.ttft.p95 = Seconds{3};
  EXPECT_FALSE(judge_slo(slo, samples, {}).known);
}

// Every `nth` is given up, and later than any limit.
LatencySamples given_up(std::uint64_t nth) {
  LatencySamples samples;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const bool shed = uniform(5, Stream::sampling, i) < 1 / double(nth);
    samples.ttft.push_back(shed ? kNever : 1 + 0.1 * uniform(6, Stream::sampling, i));
  }
  return samples;
}

TEST(RunJudge, WhoIsGivenUpDecidesLimits) {
  const auto verdict_of = [](std::uint64_t nth, Seconds LatencyLimits::*limit) {
    Slo slo;
    slo.ttft.*limit = Seconds{2};
    return judge_slo(slo, given_up(nth), {});
  };
  // One in ten: a median leaves them out, and a 99th percentile does not.
  EXPECT_TRUE(verdict_of(10, &LatencyLimits::p50).decided);
  EXPECT_FALSE(verdict_of(10, &LatencyLimits::p50).missed);
  EXPECT_TRUE(verdict_of(10, &LatencyLimits::p99).missed);
  // About as many as a percentile leaves out: nobody knows.
  EXPECT_FALSE(verdict_of(10, &LatencyLimits::p90).decided);
  EXPECT_FALSE(verdict_of(10, &LatencyLimits::p90).known);
  EXPECT_FALSE(verdict_of(100, &LatencyLimits::p99).known);
  // A mean allows none of them.
  EXPECT_TRUE(verdict_of(1000, &LatencyLimits::mean).missed);
  EXPECT_TRUE(verdict_of(1000, &LatencyLimits::p50).precise);
}

TEST(RunJudge, WhoFinishesWhatIsOfferedIsStable) {
  // From a few hundred requests on, and also where much is inside.
  for (const double seconds : {10, 20, 100, 1000}) {
    for (const double inside : {1, 20, 100}) {
      EXPECT_EQ(judged(even_run(20, 20, seconds, inside)), Saturation::stable)
          << seconds << " s, " << inside << " inside";
    }
  }
  EXPECT_EQ(judged(even_run(20, 20, 100), true, 0.5, 1.0), Saturation::backlogged);
  EXPECT_EQ(judged(even_run(20, 20, 1000), true, 0.99, 1.0), Saturation::backlogged);
}

TEST(RunJudge, WhoFinishesLessThanIsOfferedIsOverloaded) {
  // The queue may be short: decodes that starve are inside, too.
  EXPECT_EQ(judged(even_run(30, 13, 67), false, 0.8), Saturation::overloaded);
  EXPECT_EQ(judged(even_run(30, 24, 100), true, 0.8), Saturation::overloaded);
  EXPECT_EQ(judged(even_run(30, 28, 1000), true, 0.8), Saturation::overloaded);
  // A sixth of what arrives stays, on top of many that were inside before.
  EXPECT_EQ(judged(even_run(67, 55, 13.4, 300), true, 0.9, 0.9), Saturation::overloaded);
  // Before it fills up, where the estimate says the same.
  EXPECT_EQ(judged(even_run(30, 0, 10), false, 2.0), Saturation::overloaded);
}

TEST(RunJudge, AShortRunAtTheLimitIsUndecided) {
  EXPECT_EQ(judged(even_run(30, 28.5, 30), true, 1.0), Saturation::undecided);
  // One that is still filling up finishes more and more.
  std::vector<Snapshot> filling;
  for (int i = 0; i <= 20; ++i) {
    filling.push_back(
        {.time = double(i), .arrived = 100 + 20.0 * i, .finished = 0.3 * double(i) * double(i)});
  }
  EXPECT_EQ(judged(filling, false, 0.7), Saturation::undecided);
  EXPECT_EQ(judged({}, false), Saturation::undecided);
}

// Whatever it looks like: of those inside hardly anybody is seen to come and go.
TEST(RunJudge, LessThanARequestsStayTellsNothing) {
  for (const double inside : {20, 100, 300}) {
    const double stay = inside / 20;
    EXPECT_EQ(judged(even_run(20, 20, 0.9 * stay, inside)), Saturation::undecided) << inside;
    EXPECT_EQ(judged(even_run(20, 20, 1.1 * stay, inside)), Saturation::stable) << inside;
    // Half of what arrives is finished.
    EXPECT_NE(judged(even_run(20, 10, 0.2 * stay, inside)), Saturation::stable) << inside;
  }
  // Nor do one moment, and two of which nobody arrived between.
  const Snapshot moment{.time = 1, .arrived = 300, .finished = 200};
  EXPECT_EQ(judged({}), Saturation::undecided);
  EXPECT_EQ(judged({moment}), Saturation::undecided);
  EXPECT_EQ(judged({moment, {.time = 2, .arrived = 300, .finished = 220}}), Saturation::undecided);
}

// What is inside while `rate` times as many come as can be served, at random and one by one, as forty moments of so many arrivals.
std::vector<Snapshot> random_run(double rate, std::int64_t arrivals, std::uint64_t seed) {
  std::vector<Snapshot> snapshots;
  double time = 0, arrived = 0, finished = 0;
  for (std::uint64_t n = 0; arrived < double(arrivals); ++n) {
    time += exponential(seed, Stream::arrivals, n) / (rate + 1);
    if (uniform(seed, Stream::sampling, n) < rate / (rate + 1)) {
      arrived += 1;
      if (std::int64_t(arrived) % (arrivals / 40) == 0)
        snapshots.push_back({.time = time, .arrived = arrived, .finished = finished});
    } else if (finished < arrived) {
      finished += 1;
    }
  }
  return snapshots;
}

// An overload of e shows in some 18 / e^2 requests, a load that falls short of the whole by e in some 30 / e^2. Until then nothing is known,
// and nothing is said.
TEST(RunJudge, SmallOverloadsAreToldOnceTheyCanBe) {
  const auto verdicts = [](double rate, std::int64_t arrivals) {
    int overloaded = 0, bounded = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const Saturation found = judged(random_run(rate, arrivals, seed), true, rate, 1.0);
      overloaded += found == Saturation::overloaded;
      bounded += found == Saturation::backlogged;
    }
    return std::pair(overloaded, bounded);
  };
  for (const double more : {0.015, 0.04}) {
    // A moment at which too little was seen, and one at which enough was.
    EXPECT_LE(verdicts(1 + more, std::int64_t(2 / (more * more))).second, 2) << more;
    const auto [overloaded, bounded] = verdicts(1 + more, std::int64_t(60 / (more * more)));
    EXPECT_GE(overloaded, 36) << more;
    EXPECT_EQ(bounded, 0) << more;
  }
  for (const double less : {0.05, 0.1}) {
    const auto [overloaded, bounded] = verdicts(1 - less, std::int64_t(120 / (less * less)));
    EXPECT_EQ(overloaded, 0) << less;
    EXPECT_GE(bounded, 36) << less;
  }
  EXPECT_LE(verdicts(1, 20'000).second, 4);
}

// One percent too many, without any chance: what grows evenly is seen although it is little.
TEST(RunJudge, WhatGrowsEvenlyDoesNotComeBack) {
  for (const double seconds : {50, 200, 1000}) {
    EXPECT_EQ(judged(even_run(20.2, 20, seconds, 100), true, 1.0, 1.0), Saturation::undecided)
        << seconds;
  }
}

// Of sessions of ten requests a tenth too many come. Each request waits for the one before it, so hardly any requests pile up: two of a
// hundred stay, and nine sessions.
TEST(RunJudge, SessionsPileUpWhereRequestsDoNot) {
  const auto verdict = [](double sessions_ended) {
    std::vector<Snapshot> snapshots = even_run(110, 108, 700, 300);
    for (Snapshot& snapshot : snapshots) {
      snapshot.opened = 300 + 11 * snapshot.time;
      snapshot.closed = sessions_ended * snapshot.time;
    }
    return saturation_of({.kind = RunKind::open,
                          .settled = true,
                          .snapshots = snapshots,
                          .restless = {.arrivals = 10},
                          .requests_of_session = 10});
  };
  EXPECT_EQ(verdict(10), Saturation::overloaded);
  EXPECT_EQ(verdict(11), Saturation::undecided);
}

// The later twentieth of a run says less of its figure than all of it does.
TEST(RunJudge, LongRunsKnowMoreThanTheirLaterPart) {
  LatencySamples samples;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    samples.ttft.push_back(exponential(3, Stream::sampling, i));
  }
  Slo slo;
  slo.ttft.p95 = Seconds{3};
  EXPECT_FALSE(judge_slo(slo, samples, {}).precise);
  samples.seen = 0.05;
  EXPECT_TRUE(judge_slo(slo, samples, {}).precise);
  EXPECT_FALSE(judge_slo(slo, samples, {}).decided);
}

// Prompts of 100 and 300 tokens by turns: a quarter of the square of their mean.
TEST(RunJudge, ChanceIsWhatComesAndHowLongItIs) {
  WorkSpread alike, prompts;
  for (int i = 0; i < 1000; ++i) {
    alike.add(200, 50, 1);
    prompts.add(i % 2 == 0 ? 100 : 300, 50, i % 2 == 0 ? 1 : 1.5);
  }
  EXPECT_NEAR(prompts.with_arrivals(1).most_work, 0.25, 1e-9);
  EXPECT_NEAR(prompts.with_arrivals(1).least_work, 0.1, 1e-9);  // stays: 0.04
  EXPECT_NEAR(alike.with_arrivals(1).most_work, 0.1, 1e-9);
  EXPECT_EQ(alike.with_arrivals(9).arrivals, 9);
  // Too few tell nothing.
  EXPECT_EQ(WorkSpread{}.with_arrivals(1).most_work, 1);
}

// One replica more or fewer, for a round that was not seen, is 2% of fifty, and much of four.
TEST(RunJudge, LargeFleetsThatStayAreSoonKnown) {
  const auto known = [](double replicas, double change, double rounds) {
    std::vector<double> sizes(batches_of_rounds(rounds), replicas);
    for (std::size_t i = 0; i < sizes.size(); i += 2) sizes[i] += change;
    return size_is_known(sizes, rounds);
  };
  EXPECT_FALSE(known(50, 0, 0.9));
  EXPECT_TRUE(known(50, 0, 2));
  EXPECT_FALSE(known(50, 10, 5));
  EXPECT_FALSE(known(4, 0, 5));
  EXPECT_TRUE(known(4, 2, 10));
}

// Prompts of which a quarter is found on average, at random, and a share that changes by `more` over the run.
double drift_of(std::size_t prompts, double more, std::uint64_t seed) {
  CacheReads reads;
  for (std::size_t i = 0; i < prompts; ++i) {
    const double found = 0.2 + 0.6 * uniform(seed, Stream::sampling, i);
    reads.add(100, 100 * (found + more * (double(i) / double(prompts) - 0.5)) / 2);
  }
  return reads.drift();
}

TEST(RunJudge, CachesThatFillUpAreToldFromChance) {
  // Three quarters are read anew on average. Half of the change lies between the means of the halves, and half of that is found.
  EXPECT_NEAR(drift_of(4000, 0.4, 1), -0.1 / 0.75, 0.02);
  EXPECT_NEAR(drift_of(4000, -0.4, 1), 0.1 / 0.75, 0.02);
  int by_chance = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    by_chance += drift_of(400, 0, seed) != 0 ? 1 : 0;
  EXPECT_LE(by_chance, 3);
  EXPECT_EQ(drift_of(99, 0.4, 1), 0);  // too few tell nothing
}

// A system with room for everybody, each of whom stays ten seconds: what is inside grows until it has filled up, and never again.
std::vector<Snapshot> filling_run(double rate, double seconds) {
  std::vector<Snapshot> snapshots;
  for (int i = 0; i <= 40; ++i) {
    const double time = seconds * i / 40;
    snapshots.push_back(
        {.time = time, .arrived = rate * time, .finished = rate * std::max(0.0, time - 10)});
  }
  return snapshots;
}

// Filling up is no overload of a run that is measured whole, however short it is.
TEST(RunJudge, WholeRunsFillUpWithoutAnOverload) {
  for (const double seconds : {5, 10, 15, 30, 60, 100, 1000}) {
    const std::vector<Snapshot> snapshots = filling_run(20, seconds);
    const Saturation found = saturation_of({.kind = RunKind::whole,
                                            .snapshots = snapshots,
                                            .offered_share = 0.5,
                                            .unit_stay = 10,
                                            .filled = 20});
    EXPECT_NE(found, Saturation::overloaded) << seconds;
    if (seconds >= 60) {
      EXPECT_EQ(found, Saturation::stable) << seconds;
    }
    if (seconds <= 10) {
      EXPECT_EQ(found, Saturation::undecided) << seconds;
    }
  }
}

// What piles up on and on is one, once the run has lasted for several stays; before that where requests queue and
// far more of them come than could be served.
TEST(RunJudge, WholeRunsThatLagBehindAreOverloaded) {
  const auto verdict = [](double seconds, double offered_share, double queue_share = 0.5) {
    const std::vector<Snapshot> snapshots = even_run(30, 20, seconds, 0);
    return saturation_of({.kind = RunKind::whole,
                          .snapshots = snapshots,
                          .queue_share = queue_share,
                          .offered_share = offered_share,
                          .unit_stay = 10,
                          .filled = 20});
  };
  EXPECT_EQ(verdict(70, 1.2), Saturation::overloaded);
  EXPECT_EQ(verdict(1000, 1.2), Saturation::overloaded);
  EXPECT_EQ(verdict(50, 1.2), Saturation::undecided);
  EXPECT_EQ(verdict(50, 3), Saturation::overloaded);
  EXPECT_EQ(verdict(50, 3, 0.1), Saturation::undecided);
}

// Of a stated part that is shorter than a request stays nothing is known, whatever kind of run it is part of.
TEST(RunJudge, AStatedPartIsLongerThanAStay) {
  const std::vector<Snapshot> snapshots = even_run(20, 20, 100);
  for (const RunKind kind : {RunKind::open, RunKind::closed, RunKind::whole}) {
    LoadEvidence evidence{.kind = kind, .settled = true, .snapshots = snapshots};
    evidence.stays_of_part = 0.9;
    EXPECT_EQ(saturation_of(evidence), Saturation::undecided);
    evidence.stays_of_part = 1.1;
    EXPECT_EQ(saturation_of(evidence), Saturation::stable);
  }
}

}  // namespace
}  // namespace engine
