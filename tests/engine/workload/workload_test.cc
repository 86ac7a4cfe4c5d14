#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/workload/arrivals.h"
#include "engine/workload/lengths.h"
#include "engine/workload/request_source.h"

namespace engine {
namespace {

constexpr double kNeverEnds = std::numeric_limits<double>::infinity();

struct Moments {
  double mean = 0, cv = 0;
};
Moments moments_of(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / double(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / double(values.size())) / mean};
}

Moments gaps_of(const Load& load, double rate) {
  ArrivalClock clock(load, rate, 11);
  std::vector<double> gaps;
  double before = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double time = clock.next();
    gaps.push_back(time - before);
    before = time;
  }
  return moments_of(gaps);
}

TEST(Arrivals, HaveTheirRateAndSpread) {
  Load load;
  EXPECT_NEAR(gaps_of(load, 4).mean, 0.25, 0.003);
  EXPECT_NEAR(gaps_of(load, 4).cv, 1, 0.01);
  load.arrivals = ArrivalKind::gamma;
  for (const double cv : {0.4, 2.0, 3.5}) {
    load.cv = cv;
    EXPECT_NEAR(gaps_of(load, 4).mean / 0.25, 1, 0.05) << cv;
    EXPECT_NEAR(gaps_of(load, 4).cv / cv, 1, 0.05) << cv;
  }
  load.arrivals = ArrivalKind::deterministic;
  EXPECT_NEAR(gaps_of(load, 4).cv, 0, 0.01);
}

TEST(Arrivals, FollowACurve) {
  Load load;
  load.arrivals = ArrivalKind::curve;
  load.curve = "0:10, 100:0, 200:40";
  ArrivalClock clock(load, 1, 3);
  int early = 0, pause = 0, late = 0;
  for (int i = 0; i < 5000; ++i) {
    const double time = clock.next();
    (time < 100 ? early : time < 200 ? pause : late) += 1;
    if (time > 300) break;
  }
  EXPECT_NEAR(early, 1000, 100);
  EXPECT_EQ(pause, 0);
  EXPECT_NEAR(late, 4000, 200);
}

// As many as its rates say, and nobody at or after its end.
TEST(Arrivals, EndWhereTheCurveDoes) {
  Load load;
  load.arrivals = ArrivalKind::curve;
  load.curve = "0:10, 100:0, 200:40, 250:end";
  ArrivalClock clock(load, 1, 3);
  ASSERT_TRUE(clock.ends());
  int count = 0;
  double last = 0;
  for (double time = clock.next(); time < kNever; time = clock.next(), ++count) last = time;
  EXPECT_NEAR(count, 3000, 200);
  EXPECT_GT(last, 249);
  EXPECT_LT(last, 250);
}

TEST(Arrivals, ABadCurveSaysWhatIsWrong) {
  std::string reason;
  EXPECT_FALSE(parse_rate_curve("0:2, 60", reason));
  EXPECT_EQ(reason, "load.curve: '60' is not a pair 'second:req/s'");
  EXPECT_FALSE(parse_rate_curve("0:2, 0:3", reason));
  EXPECT_EQ(reason, "load.curve: times must rise from 0; '0:3' does not");
  EXPECT_FALSE(parse_rate_curve("0:2, 60:0", reason));
  EXPECT_EQ(reason,
            "load.curve: the last rate must be above 0, unless the curve ends, as in '86400:end'");
  EXPECT_FALSE(parse_rate_curve("", reason));
  EXPECT_EQ(reason, "load.curve is empty; as in '0:2, 28800:10, 86400:end' (second:req/s)");
  EXPECT_FALSE(parse_rate_curve("0:2, soon:end", reason));
  EXPECT_EQ(reason, "load.curve: 'soon:end' is not a pair 'second:end'");
  EXPECT_FALSE(parse_rate_curve("0:2, 60:3, 60:end", reason));
  EXPECT_EQ(reason, "load.curve: times must rise from 0; '60:end' does not");
  EXPECT_FALSE(parse_rate_curve("0:2, 60:end, 90:3", reason));
  EXPECT_EQ(reason, "load.curve: '60:end' is not a pair 'second:req/s'");
  EXPECT_FALSE(parse_rate_curve("60:end", reason));
  EXPECT_EQ(reason, "load.curve is empty; as in '0:2, 28800:10, 86400:end' (second:req/s)");
  EXPECT_FALSE(parse_rate_curve("0:0, 60:end", reason));
  EXPECT_EQ(reason, "load.curve brings no request before it ends: a rate must be above 0");
  EXPECT_TRUE(parse_rate_curve("0:2, 60:0, 90:end", reason));
  EXPECT_TRUE(parse_rate_curve("0:2,60:10", reason));
}

TEST(Lengths, HaveTheirMeanAndSpread) {
  Lengths lengths;
  lengths.prompt = 1000;
  lengths.output = 200;
  lengths.prompt_cv = 0.5;
  lengths.output_cv = 1.0;
  for (const LengthKind kind : {LengthKind::uniform, LengthKind::lognormal}) {
    lengths.distribution = kind;
    if (kind == LengthKind::uniform) lengths.output_cv = 0.3;
    if (kind == LengthKind::lognormal) lengths.output_cv = 1.0;
    const LengthSampler sampler(lengths, 5, nullptr);
    std::vector<double> prompts, outputs;
    for (int n = 0; n < 50'000; ++n) {
      const LengthPair pair = sampler(n);
      prompts.push_back(double(pair.prompt));
      outputs.push_back(double(pair.output));
    }
    EXPECT_NEAR(moments_of(prompts).mean / 1000, 1, 0.02);
    EXPECT_NEAR(moments_of(prompts).cv, 0.5, 0.02);
    EXPECT_NEAR(moments_of(outputs).mean / 200, 1, 0.03);
    EXPECT_NEAR(moments_of(outputs).cv, lengths.output_cv, 0.05);
  }
}

TEST(Lengths, StayWithinTheirLimits) {
  Lengths lengths;
  lengths.distribution = LengthKind::zipf;
  lengths.prompt = 10;
  lengths.prompt_max = 100;
  lengths.output_max = 50;
  lengths.output = 50;
  const LengthSampler sampler(lengths, 5, nullptr);
  int short_ones = 0;
  for (int n = 0; n < 10'000; ++n) {
    const LengthPair pair = sampler(n);
    EXPECT_GE(pair.prompt, 10);
    EXPECT_LE(pair.prompt, 100);
    EXPECT_EQ(pair.output, 50);
    short_ones += pair.prompt < 32;
  }
  // With exponent 1.2, (10^-0.2 - 31.5^-0.2) / (10^-0.2 - 100^-0.2) of them are below 31.5.
  EXPECT_NEAR(short_ones / 1e4, 0.556, 0.02);
}

std::vector<Request> all_of(RequestSource& source, double service) {
  // Everyone is answered `service` after arriving.
  std::vector<Request> requests;
  std::vector<std::pair<double, std::int64_t>> inside;
  while (true) {
    std::size_t first = 0;
    for (std::size_t i = 1; i < inside.size(); ++i) {
      if (inside[i].first < inside[first].first) first = i;
    }
    const double done = inside.empty() ? kNeverEnds : inside[first].first;
    if (source.next_arrival() == kNeverEnds && inside.empty()) return requests;
    if (done < source.next_arrival()) {
      const auto [time, client] = inside[first];
      inside.erase(inside.begin() + std::ptrdiff_t(first));
      source.answered(client, time);
      continue;
    }
    Request request;
    source.take(request);
    inside.emplace_back(request.arrival + service, request.client);
    requests.push_back(request);
  }
}

// Whatever the distribution, a class has the mean that it states.
TEST(RequestSource, ClassesHaveTheMeansTheyState) {
  for (const LengthKind kind :
       {LengthKind::fixed, LengthKind::uniform, LengthKind::lognormal, LengthKind::zipf}) {
    Load load;
    load.requests = 20'000;
    load.lengths.distribution = kind;
    load.lengths.prompt = 10;
    load.lengths.output = 20;
    load.classes.low = {.share = 0.5, .prompt = 100, .output = 300};
    RequestMemory memory;
    RequestSource source(load, nullptr, memory, {.level = {.rate = 1}, .seed = 3});
    double sum = 0, count = 0;
    Request request;
    while (source.next_arrival() < kNeverEnds) {
      source.take(request);
      if (request.service_class != RequestClass::low) continue;
      sum += double(request.output);
      ++count;
    }
    EXPECT_NEAR(sum / count, 300, 12) << name_of(kind);
  }
}

TEST(RequestSource, AClosedLoopWaitsForItsAnswers) {
  Load load;
  load.arrivals = ArrivalKind::closed;
  load.requests = 7;
  RequestMemory memory;
  RequestSource source(load, nullptr, memory, {.level = {.clients = 2}, .seed = 1});
  const std::vector<Request> requests = all_of(source, 1.0);
  ASSERT_EQ(requests.size(), 7u);
  const std::vector<double> expected{0, 0, 1, 1, 2, 2, 3};
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(requests[i].arrival, expected[i]);
    EXPECT_EQ(requests[i].number, std::int64_t(i));
  }
}

// Rounding may put the second answer first.
TEST(RequestSource, WhoIsAnsweredFirstAtOneMomentAsksFirst) {
  Load load;
  load.arrivals = ArrivalKind::closed;
  load.requests = 4;
  RequestMemory memory;
  RequestSource source(load, nullptr, memory, {.level = {.clients = 2}, .seed = 1});
  Request request;
  for (int i = 0; i < 2; ++i) source.take(request);
  source.answered(1, 0.1 + 0.2);
  source.answered(0, 0.3);
  source.take(request);
  EXPECT_EQ(request.client, 1);
  // A moment later is later.
  source.answered(1, 0.4 + 2e-9);
  source.take(request);
  EXPECT_EQ(request.client, 0);
}

// The first session is answered when the second one begins, up to rounding either way.
TEST(RequestSource, WhoGoesOnAtOneMomentComesBeforeWhoBegins) {
  for (const double off : {-3e-16, 0.0, 3e-16, 1e-10}) {
    Load load;
    load.arrivals = ArrivalKind::deterministic;
    load.requests = 4;
    load.turns = 2;
    RequestMemory memory;
    RequestSource source(load, nullptr, memory, {.level = {.rate = 1}, .seed = 1});
    Request request;
    source.take(request);
    const double begins = source.next_arrival();
    source.answered(request.client, begins + off);
    source.take(request);
    EXPECT_FALSE(request.opens) << off;
    EXPECT_EQ(request.arrival, begins + off);
    source.take(request);
    EXPECT_TRUE(request.opens) << off;
    EXPECT_EQ(request.arrival, begins);
  }
}

// However calls of a turn come together, and wherever the last one is cut.
TEST(RequestSource, ThereAreAsManyRequestsAsTheLoadStates) {
  Load load;
  load.think_time = Seconds{0.7};
  for (const ArrivalKind arrivals : {ArrivalKind::closed, ArrivalKind::poisson}) {
    load.arrivals = arrivals;
    for (load.requests = 1; load.requests < 60; load.requests += 7) {
      for (load.turns = 1; load.turns <= 3; ++load.turns) {
        for (load.branches = 1; load.branches <= 4; ++load.branches) {
          for (const std::int64_t clients : {1, 3, 7, 60}) {
            RequestMemory memory;
            RequestSource source(load, nullptr, memory,
                                 {.level = {.rate = 2, .clients = clients}, .seed = 1});
            EXPECT_EQ(all_of(source, 1.0).size(), std::size_t(load.requests))
                << name_of(arrivals) << ", " << clients << " clients, " << load.turns << " turns, "
                << load.branches << " branches";
          }
        }
      }
    }
  }
}

TEST(RequestSource, AClosedLoopDrawsByClientAndTurn) {
  // Whatever the pace of answers and the number of clients: a client's n-th request is the same, and so
  // is the pause after it.
  Load load;
  load.arrivals = ArrivalKind::closed;
  load.requests = 200;
  load.lengths.distribution = LengthKind::lognormal;
  load.think_time = Seconds{3};
  load.priorities = 4;
  load.tenants = 3;
  struct Asked {
    Request request;
    double pause;  // before it
  };
  const auto by_client = [&](std::int64_t clients, double service) {
    RequestMemory memory;
    RequestSource source(load, nullptr, memory, {.level = {.clients = clients}, .seed = 1});
    std::vector<std::vector<Asked>> asked{std::size_t(clients)};
    for (const Request& request : all_of(source, service)) {
      std::vector<Asked>& mine = asked[std::size_t(request.client)];
      EXPECT_EQ(request.number, request.client + clients * std::int64_t(mine.size()));
      const double before = mine.empty() ? 0 : mine.back().request.arrival + service;
      mine.push_back({request, request.arrival - before});
    }
    return asked;
  };
  const auto reference = by_client(4, 1.0);
  for (const auto& other : {by_client(4, 5.0), by_client(7, 0.1)}) {
    for (std::size_t client = 0; client < 4; ++client) {
      const std::size_t common = std::min(reference[client].size(), other[client].size());
      ASSERT_GT(common, 3u);
      for (std::size_t n = 0; n < common; ++n) {
        const Asked &a = reference[client][n], &b = other[client][n];
        EXPECT_EQ(a.request.prompt, b.request.prompt);
        EXPECT_EQ(a.request.output, b.request.output);
        EXPECT_EQ(a.request.priority, b.request.priority);
        EXPECT_EQ(a.request.tenant, b.request.tenant);
        EXPECT_NEAR(a.pause, b.pause, 1e-9);
      }
    }
  }
}

TEST(RequestSource, ASessionSharesWhatItsFirstPromptShares) {
  Load load;
  load.arrivals = ArrivalKind::deterministic;
  load.requests = 3;
  load.turns = 3;
  load.lengths.prompt = 100;
  load.lengths.output = 10;
  load.shared_prefix = 150;  // longer than the first prompt, shorter than the second
  RequestMemory memory;
  RequestSource source(load, nullptr, memory,
                       {.level = {.rate = 0.01}, .seed = 1, .prefixes = true});
  for (const Request& request : all_of(source, 1.0)) {
    EXPECT_EQ(request.prefix[0].end, 99);
    EXPECT_EQ(request.prefix[1].end, 109);
  }
}

TEST(RequestSource, SessionsOpenAndClose) {
  Load load;
  load.arrivals = ArrivalKind::deterministic;
  load.requests = 5;
  load.turns = 3;
  RequestMemory memory;
  RequestSource source(load, nullptr, memory, {.level = {.rate = 0.01}, .seed = 1});
  std::vector<bool> opens, closes;
  for (const Request& request : all_of(source, 1.0)) {
    opens.push_back(request.opens);
    closes.push_back(request.closes);
  }
  // The second session is cut short by the number of requests.
  EXPECT_EQ(opens, (std::vector<bool>{true, false, false, true, false}));
  EXPECT_EQ(closes, (std::vector<bool>{false, false, true, false, true}));
}

TEST(RequestSource, ASessionSendsItsHistoryAgain) {
  Load load;
  load.arrivals = ArrivalKind::deterministic;
  load.requests = 5;
  load.turns = 3;
  load.lengths.prompt = 100;
  load.lengths.output = 10;
  load.shared_prefix = 40;
  RequestMemory memory;
  RequestSource source(load, nullptr, memory,
                       {.level = {.rate = 0.01}, .seed = 1, .prefixes = true});
  const std::vector<Request> requests = all_of(source, 1.0);
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_EQ(requests[0].prompt, 100);
  EXPECT_EQ(requests[1].prompt, 210);
  EXPECT_EQ(requests[2].prompt, 320);
  EXPECT_EQ(requests[2].session, requests[0].session);
  EXPECT_EQ(requests[3].prompt, 100);
  EXPECT_NE(requests[3].session, requests[0].session);
  // Shared part, first turn without its last token, second turn likewise, and its own.
  ASSERT_EQ(requests[2].prefix.size(), 4u);
  EXPECT_EQ(requests[2].prefix[0].end, 40);
  EXPECT_EQ(requests[2].prefix[1].end, 109);
  EXPECT_EQ(requests[2].prefix[2].end, 219);
  EXPECT_EQ(requests[2].prefix[1].key, requests[0].prefix[1].key);
  EXPECT_EQ(requests[3].prefix[0].key, requests[0].prefix[0].key);
  EXPECT_NE(requests[3].prefix[1].key, requests[0].prefix[1].key);
}

TEST(RequestSource, WhatIsRememberedOfOtherAnswersIsWhatWouldBeDrawn) {
  RequestMemory kept;
  constexpr int loads[][3] = {{4, 1, 200}, {4, 1, 200}, {3, 1, 200},
                              {3, 2, 200}, {4, 2, 100}, {4, 1, 200}};
  for (const auto& [samples, seed, output] : loads) {
    Load load;
    load.requests = 50;
    load.samples = samples;
    load.lengths.distribution = LengthKind::lognormal;
    load.lengths.output = output;
    load.lengths.output_cv = 1;
    RequestMemory fresh;
    const RequestSource::Options options{.level = {.rate = 1}, .seed = std::uint64_t(seed)};
    const RequestSource source(load, nullptr, kept, options), anew(load, nullptr, fresh, options);
    for (std::int64_t number : {0, 49, 7, 7, 40'000'000}) {
      for (std::int64_t sample = 1; sample < samples; ++sample) {
        EXPECT_EQ(source.output_of(number, sample, 10), anew.output_of(number, sample, 10));
      }
    }
  }
}

TEST(RequestSource, ABadLoadSaysWhatIsMissing) {
  Load load;
  load.arrivals = ArrivalKind::trace;
  EXPECT_EQ(*load_problem(load, nullptr), "load.arrivals: trace needs load.trace");
  load.trace = "t.csv";
  EXPECT_EQ(*load_problem(load, nullptr), "load.trace 't.csv' was not loaded");
  Trace trace;
  trace.prompt = trace.output = {1};
  EXPECT_EQ(*load_problem(load, &trace),
            "load.trace 't.csv' has no arrival times; use it with load.lengths.distribution: "
            "empirical");
}

}  // namespace
}  // namespace engine
