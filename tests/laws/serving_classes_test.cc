// Requests of several classes and tenants: who is urgent does not suffer from who is not, nobody is lost who is turned
// away, and a load of one class is a load without classes.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/evaluate.h"
#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

using toys::Laboratory;

// A random case with classes, priorities that preempt, and a queue that turns requests away.
Laboratory urgent(std::uint64_t number) {
  Laboratory lab(toys::random_case(number));
  toys::Dice dice(55'000'000 + number);
  Scenario& scenario = lab.made.scenario;
  ServingSettings& serving = scenario.serving;
  if (serving.policy == policy_named("static")) serving.policy = policy_named("vllm_v1");
  serving.ordering = Ordering::priority;
  serving.preemption = Preemption::priority;
  serving.admission.max_queue = dice.chance(0.5) ? dice.whole(1, 10) : 0;
  serving.admission.shed_late = dice.chance(0.5);
  scenario.load.priorities = 1;
  LoadClasses& classes = scenario.load.classes;
  classes.high = {.share = dice.between(0, 0.5), .ttft = Seconds{dice.between(0.01, 0.5)}};
  classes.low = {.share = dice.between(0, 0.5)};
  return lab;
}

TEST(ServingClasses, EveryRequestIsAnsweredRefusedOrTurnedAway) {
  double shed = 0, preemptions = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    Laboratory lab = urgent(number);
    const ServingStats::Summary summary = lab.run();
    const std::string which = "case " + std::to_string(number);
    EXPECT_EQ(summary.finished + summary.refused + summary.shed, double(lab.rows.size())) << which;
    // Sessions of which a turn is turned away go on without its answer: tokens are those of single requests.
    EXPECT_EQ(
        summary.tokens_in + summary.tokens_out + summary.tokens_refused + summary.tokens_given_up,
        lab.offered_tokens())
        << which;
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.outstanding(), 0) << which;
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
    }
    shed += summary.shed;
    preemptions += summary.preemptions;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(shed, 500);
  EXPECT_GT(preemptions, 500);
}

TEST(ServingClasses, TheClosedFormEqualsStepping) {
  for (std::uint64_t number = 1000; number < 1200; ++number) {
    Laboratory lab = urgent(number);
    const ServingStats::Summary fast = lab.run();
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : lab.rows) rows[row.number] = row;
    lab.made.scenario.serving.stepping = true;
    const ServingStats::Summary slow = lab.run();
    const std::string which = "case " + std::to_string(number);
    for (const RequestRow& row : lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.end, other.end) << which;
      EXPECT_EQ(row.preemptions, other.preemptions) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    EXPECT_NEAR(fast.busy, slow.busy, 1e-9 * fast.busy) << which;
    ASSERT_FALSE(HasFailure());
  }
}

TEST(ServingClasses, OneClassIsALoadWithoutClasses) {
  for (std::uint64_t number = 2000; number < 2100; ++number) {
    Laboratory lab = urgent(number);
    Scenario& scenario = lab.made.scenario;
    // Recorded requests have priorities of their own.
    if (scenario.load.arrivals == ArrivalKind::trace) scenario.load.arrivals = ArrivalKind::poisson;
    scenario.serving.admission = {};
    scenario.load.classes = {};
    scenario.serving.preemption = Preemption::as_policy;
    lab.run();
    const std::vector<RequestRow> plain = lab.rows;
    scenario.serving.preemption = Preemption::priority;
    scenario.load.classes.high.share = 1;
    lab.run();
    ASSERT_EQ(lab.rows.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(lab.rows[i].number, plain[i].number) << number;
      if (plain[i].end != RequestEnd::finished) continue;
      EXPECT_EQ(lab.rows[i].finish, plain[i].finish) << number;
    }
    ASSERT_FALSE(HasFailure());
  }
}

// Recorded requests, urgent ones and others, which may share most of their prompts; steps of 10 ms whatever is in them. Without the
// others, the urgent ones are as late as with them but for the step that runs when they come, and one in which somebody makes way for
// those who run already: it lets nobody in.
TEST(ServingClasses, WhoIsUrgentDoesNotSufferFromWhoIsNot) {
  constexpr double step = 0.01;
  double preemptions = 0;
  for (std::uint64_t number = 0; number < 80; ++number) {
    toys::Dice dice(66'000'000 + number);
    const bool others_share = number % 2 == 1;
    auto all = std::make_shared<Trace>(), urgent = std::make_shared<Trace>();
    double time = 0;
    for (int i = 0; i < 60; ++i) {
      time += dice.between(0, 0.04);
      const bool low = dice.chance(0.7);
      const auto prompt = std::int32_t(dice.whole(1, low ? 200 : 40));
      const auto output = std::int32_t(dice.whole(1, 40));
      for (Trace* trace : {all.get(), urgent.get()}) {
        if (low && trace == urgent.get()) continue;
        trace->arrival.push_back(time);
        trace->prompt.push_back(prompt);
        trace->output.push_back(output);
        trace->priority.push_back(low ? 1 : 0);
        trace->block_tokens = 4;
        trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
        for (int block = 0; block < (prompt + 3) / 4; ++block) {
          const bool common = low && block < prompt / 4 && block < 45;
          trace->blocks.push_back(std::uint64_t(1000 * (common ? i % 2 : i + 2) + block));
        }
      }
    }
    for (Trace* trace : {all.get(), urgent.get()}) {
      trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
    }
    // Times of a trace count from its first row.
    const double shift = urgent->arrival[0] - all->arrival[0];
    Scenario scenario = toys::served(policy_named("vllm_v1"));
    scenario.serving.ordering = Ordering::priority;
    scenario.serving.preemption = Preemption::priority;
    scenario.serving.prefix_caching = others_share;
    scenario.serving.max_num_seqs = dice.whole(2, 8);
    // Room for all urgent ones that may run, not for the others.
    const std::int64_t urgent_blocks = 20 * scenario.serving.max_num_seqs;
    scenario.serving.kv_blocks =
        others_share ? std::max<std::int64_t>(61, urgent_blocks) : 60 + urgent_blocks;
    Resources resources;
    resources.traces["toy"] = urgent;
    const Outcome alone = evaluate(scenario, resources);
    resources.traces["toy"] = all;
    const Outcome together = evaluate(scenario, resources);
    ASSERT_EQ(together.status, Status::ok) << together.reason;
    std::size_t next = 0;
    for (const RequestRow& row : together.requests) {
      if (row.priority > 0) continue;
      const RequestRow& same = alone.requests[next++];
      const double steps = others_share ? 2 : 1;
      EXPECT_LE(row.finish.value, same.finish.value + shift + steps * step + 1e-9)
          << "case " << number << ", request " << row.number;
    }
    EXPECT_EQ(next, alone.requests.size());
    preemptions += together.metrics.preemptions;
  }
  EXPECT_GT(preemptions, 100);
}

// Twice as much as the system can do.
Scenario overloaded() {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.requests = 4000;
  scenario.load.lengths = {.prompt = 16, .output = 20};
  scenario.serving.max_num_seqs = 8;  // 8 answers every 200 ms
  scenario.load.rate = RequestsPerSecond{80};
  scenario.output.requests = false;
  return scenario;
}

TEST(ServingClasses, AQueueIsNoLongerThanItMayBe) {
  Scenario scenario = overloaded();
  scenario.serving.admission.max_queue = 5;
  scenario.output.requests = true;
  scenario.output.timeline = Seconds{0.02};
  const Outcome outcome = evaluate(scenario);
  std::int64_t longest = 0;
  for (const TimelineRow& row : outcome.timeline) longest = std::max(longest, row.waiting);
  EXPECT_EQ(longest, 5);
  EXPECT_EQ(outcome.metrics.requests_finished + outcome.metrics.requests_shed, 4000);
  // Half of it is too much.
  EXPECT_NEAR(outcome.metrics.requests_shed / 4000, 0.5, 0.03);
}

TEST(ServingClasses, SheddingWhoWouldBeLateKeepsTheOthersInTime) {
  Scenario scenario = overloaded();
  scenario.load.lengths.distribution = LengthKind::lognormal;  // not all of a batch end together
  scenario.slo.ttft.p99 = Seconds{0.3};
  const Metrics without = evaluate(scenario).metrics;
  EXPECT_LT(without.slo_attainment, 0.2);
  scenario.serving.admission.shed_late = true;
  const Metrics with = evaluate(scenario).metrics;
  // Those at the margin are as often late as not: a prediction is right in the mean.
  EXPECT_GT(with.goodput.value, 0.5 * 40);
  EXPECT_GT(with.slo_attainment, 2 * without.slo_attainment);
  EXPECT_EQ(with.slo_met, 0);  // half of them were turned away
}

// Who is overtaken by more urgent ones waits longer than those before it take: it is told so when it comes.
TEST(ServingClasses, SheddingWhoWouldBeLateKnowsWhoIsOvertaken) {
  for (const double urgent : {0.2, 0.4}) {
    for (const double limit : {1.0, 3.0}) {
      Scenario scenario = overloaded();
      scenario.load.lengths.distribution = LengthKind::lognormal;
      scenario.serving.ordering = Ordering::priority;
      scenario.serving.admission.shed_late = true;
      scenario.load.classes.high = {.share = urgent, .ttft = Seconds{limit}};
      scenario.load.classes.low = {.share = 1 - urgent, .ttft = Seconds{limit}};
      const Metrics metrics = evaluate(scenario).metrics;
      EXPECT_GT(metrics.slo_attainment_high, 0.95) << urgent << ", " << limit;
      // 40 of 80 can be served; what the urgent ones leave goes to the others, most of it in time.
      const double left = (40 - 80 * urgent) / (80 * (1 - urgent));
      EXPECT_GT(metrics.slo_attainment_low, 0.6 * left) << urgent << ", " << limit;
      EXPECT_LT(metrics.ttft_p95_low.value, 2 * limit) << urgent << ", " << limit;
      // Nobody is turned away for whom there is room.
      EXPECT_GT(metrics.throughput.value, 36) << urgent << ", " << limit;
    }
  }
}

TEST(ServingClasses, TenantsShareFairlyWhereTheQueueDoes) {
  Scenario scenario = overloaded();
  scenario.load.tenants = 4;
  scenario.load.tenant_skew = 1;
  const Metrics first_come = evaluate(scenario).metrics;
  scenario.serving.ordering = Ordering::fair_share;
  const Metrics fair = evaluate(scenario).metrics;
  // Shares of 1, 1/2, 1/3 and 1/4 of the load; the last asks for 0.24 of what can be done, so three quarters of a fair share
  // at least.
  EXPECT_NEAR(first_come.tenant_fairness, 0.76, 0.03);
  EXPECT_GT(fair.tenant_fairness, 0.98);
  EXPECT_LT(fair.tenant_fairness, 1.0 + 1e-12);
}

TEST(ServingClasses, APerfectPredictionIsTheRealLength) {
  Scenario scenario = overloaded();
  scenario.serving.replicas = 4;
  scenario.load.rate = RequestsPerSecond{140};
  scenario.load.lengths = {.distribution = LengthKind::lognormal, .prompt = 16, .output = 20};
  scenario.serving.router = router_named("least_tokens");
  const Metrics real = evaluate(scenario).metrics;
  scenario.serving.router = router_named("least_predicted");
  const Metrics predicted = evaluate(scenario).metrics;
  EXPECT_EQ(predicted.e2e_p99, real.e2e_p99);
  scenario.serving.prediction_error = 1;
  EXPECT_NE(evaluate(scenario).metrics.e2e_p99, real.e2e_p99);
}

TEST(ServingClasses, ClassesHaveReplicasOfTheirOwn) {
  Scenario scenario = overloaded();
  scenario.output.requests = true;
  scenario.load.requests = 500;
  scenario.serving.replicas = 5;
  scenario.serving.router = router_named("by_class");
  scenario.load.classes = {.high = {.share = 0.2}, .low = {.share = 0.4}};
  const Outcome outcome = evaluate(scenario);
  std::map<RequestClass, std::set<std::int64_t>> replicas;
  for (const RequestRow& row : outcome.requests) replicas[row.service_class].insert(row.replica);
  EXPECT_EQ(replicas[RequestClass::high], (std::set<std::int64_t>{0}));
  EXPECT_EQ(replicas[RequestClass::normal], (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(replicas[RequestClass::low], (std::set<std::int64_t>{3, 4}));
}

// 2.4, 3.2 and 2.4 of eight: what is left goes to the largest remainder, and of equal ones to the more urgent.
TEST(ServingClasses, NoClassGetsWhatRoundingTakesFromAnother) {
  Scenario scenario = overloaded();
  scenario.output.requests = true;
  scenario.load.requests = 2000;
  scenario.serving.replicas = 8;
  scenario.serving.router = router_named("by_class");
  const auto replicas = [&](double high, double low) {
    scenario.load.classes = {.high = {.share = high}, .low = {.share = low}};
    std::map<RequestClass, std::set<std::int64_t>> seen;
    for (const RequestRow& row : evaluate(scenario).requests) {
      seen[row.service_class].insert(row.replica);
    }
    return std::array{seen[RequestClass::high].size(), seen[RequestClass::normal].size(),
                      seen[RequestClass::low].size()};
  };
  EXPECT_EQ(replicas(0.3, 0.3), (std::array<std::size_t, 3>{3, 3, 2}));
  EXPECT_EQ(replicas(0.02, 0.02), (std::array<std::size_t, 3>{1, 6, 1}));
  EXPECT_EQ(replicas(0.5, 0.5), (std::array<std::size_t, 3>{4, 0, 4}));
  EXPECT_EQ(replicas(0.95, 0.05), (std::array<std::size_t, 3>{7, 0, 1}));
}

TEST(ServingClasses, SaysWhatWouldNeverEnd) {
  Scenario scenario = overloaded();
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.serving.admission.max_queue = 2;
  EXPECT_EQ(evaluate(scenario).reason,
            "serving.admission turns clients of a closed loop away who ask again at once: state "
            "load.think_time");
  scenario.load.think_time = Seconds{0.1};
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
  scenario.serving.failures = {.mean_time_to_failure = Seconds{1e-9},
                               .mean_time_to_repair = Seconds{0}};
  EXPECT_EQ(evaluate(scenario).reason,
            "serving.failures: replicas that fail more than a thousand times a second serve "
            "nobody; state longer mean times");
}

TEST(ServingClasses, SaysWhatCannotBe) {
  Scenario scenario = overloaded();
  scenario.load.classes = {.high = {.share = 0.7}, .low = {.share = 0.6}};
  EXPECT_EQ(evaluate(scenario).reason,
            "load.classes: the shares of high (0.7) and low (0.6) exceed 1");
  scenario.load.classes.low.share = 0;
  scenario.load.priorities = 2;
  EXPECT_EQ(evaluate(scenario).reason,
            "load.classes say who comes first; load.priorities cannot be stated beside them");
  scenario.load.priorities = 1;
  scenario.serving.admission.shed_late = true;
  EXPECT_EQ(evaluate(scenario).reason,
            "serving.admission.shed_late needs a limit: slo.ttft_p99 (or another percentile), or "
            "ttft of a class in load.classes");
}

}  // namespace
}  // namespace engine
