// Replicas that fail: every request ends, nothing is held by those that are gone, the closed form equals stepping, and as
// much of the time is lost as the mean times say.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "engine/evaluate.h"
#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

using toys::Laboratory;

// A random case whose replicas fail, in one pool or with a pool that reads prompts for it.
struct Failing {
  Laboratory lab;
  ServingSettings readers;
  bool two_pools = false;
  Journey journey;
  std::optional<PoolSetup::WayBack> way_back;

  explicit Failing(std::uint64_t number) : lab(toys::random_case(number)) {
    toys::Dice dice(44'000'000 + number);
    Scenario& scenario = lab.made.scenario;
    ServingSettings& serving = scenario.serving;
    serving.replicas = dice.whole(1, 4);
    serving.router = dice.one_of<RouterName>();
    serving.failures = {.mean_time_to_failure = Seconds{dice.between(0.1, 2)},
                        .mean_time_to_repair = Seconds{dice.between(0, 0.5)},
                        .attempts = dice.whole(1, 4),
                        .answers = dice.one_of<AfterFailure>()};
    if (dice.chance(0.3)) {
      serving.scaling = {.policy = ScalingPolicy::reactive,
                         .min_replicas = 1,
                         .target = dice.between(1, 6),
                         .interval = Seconds{dice.between(0.1, 0.5)},
                         .cold_start = Seconds{dice.between(0, 0.3)},
                         .cooldown = Seconds{dice.between(0, 0.5)}};
    }
    two_pools = dice.chance(0.5) && serving.policy != policy_named("static");
    readers = serving;
    readers.replicas = dice.whole(1, 3);
    if (dice.chance(0.3)) readers.failures = {};
    if (!two_pools) return;
    journey = {.stages = {Stage{.pool = 1, .reads = true, .writes = false},
                          Stage{.pool = 0, .reads = false, .writes = true}},
               .short_prompt = dice.chance(0.3) ? 20 : 0};
    journey.stages[1].carry = {
        .token = {.sent = dice.between(0, 3e-4), .received = dice.between(0, 3e-4)},
        .latency = dice.between(0, 1e-3),
        .last_share = dice.chance(0.5) ? 1 : 0.3,
        .tells_first_token = dice.chance(0.5)};
    Carry& carry = journey.stages[1].carry;
    carry.remakes_first_token = carry.tells_first_token && dice.chance(0.5);
    if (dice.chance(0.5)) way_back = PoolSetup::WayBack{dice.between(0, 1e-4), 1e-4};
  }
  ServingStats::Summary run(bool stepping = false) {
    lab.made.scenario.serving.stepping = readers.stepping = stepping;
    std::vector<PoolSetup> pools{lab.pool()};
    pools[0].from_host = way_back;
    if (two_pools) {
      pools.push_back({.settings = readers,
                       .context = lab.context,
                       .kv_blocks = readers.kv_blocks,
                       .replicas = readers.replicas,
                       .longest = lab.made.scenario.model.max_context,
                       .role = DeploymentRole::prefill});
    }
    return lab.run(pools, journey);
  }
  double failures() const {
    return lab.sim.failures(0).count() + (two_pools ? lab.sim.failures(1).count() : 0);
  }
};

TEST(ServingFailures, EveryRequestEndsAndNothingIsHeldByWhoIsGone) {
  double failures = 0, retried = 0, failed = 0, carried = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    Failing failing(number);
    const ServingStats::Summary summary = failing.run();
    const std::string which = "case " + std::to_string(number);
    EXPECT_EQ(
        summary.tokens_in + summary.tokens_out + summary.tokens_refused + summary.tokens_given_up,
        failing.lab.offered_tokens())
        << which;
    EXPECT_EQ(summary.finished + summary.refused + summary.failed, double(failing.lab.rows.size()))
        << which;
    for (const Replica& replica : failing.lab.sim.replicas()) {
      EXPECT_EQ(replica.outstanding(), 0) << which;
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
    }
    std::int64_t attempts = 0;
    const FailureSettings& settings = failing.lab.made.scenario.serving.failures;
    for (const RequestRow& row : failing.lab.rows) {
      attempts += row.attempts - 1;
      EXPECT_LE(row.attempts, settings.attempts) << which;
      if (row.end != RequestEnd::failed) continue;
      EXPECT_EQ(row.attempts, settings.attempts) << which;
    }
    EXPECT_EQ(double(attempts), summary.retried) << which;
    failures += failing.failures();
    retried += summary.retried;
    failed += summary.failed;
    carried += summary.carried_tokens;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(failures, 500);
  EXPECT_GT(retried, 1000);
  EXPECT_GT(failed, 100);
  EXPECT_GT(carried, 10'000);
}

// Up, working or idle, and under repair make up the time of every lane.
TEST(ServingFailures, TimeAddsUp) {
  for (std::uint64_t number = 300; number < 400; ++number) {
    Failing failing(number);
    failing.two_pools = false;
    failing.journey = {};
    failing.lab.made.scenario.serving.scaling = {};
    const ServingStats::Summary summary = failing.run();
    const Scenario& scenario = failing.lab.made.scenario;
    const double lanes = double(scenario.parallel.pp);
    const double makespan = failing.lab.sim.makespan();
    const double down = failing.lab.sim.failures(0).down_seconds(makespan) * lanes;
    EXPECT_NEAR((summary.busy + failing.lab.sim.idle_seconds() + down) /
                    (makespan * lanes * double(scenario.serving.replicas)),
                1, 1e-9)
        << "case " << number;
    const double on = failing.lab.sim.scaler(0).on_seconds(makespan) * lanes;
    EXPECT_NEAR((on + down) / (makespan * lanes * double(scenario.serving.replicas)), 1, 1e-9);
  }
}

TEST(ServingFailures, TheClosedFormEqualsStepping) {
  for (std::uint64_t number = 1000; number < 1200; ++number) {
    Failing failing(number);
    const ServingStats::Summary fast = failing.run();
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : failing.lab.rows) rows[row.number] = row;
    const ServingStats::Summary slow = failing.run(true);
    const std::string which = "case " + std::to_string(number);
    for (const RequestRow& row : failing.lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.replica, other.replica) << which;
      EXPECT_EQ(row.end, other.end) << which;
      EXPECT_EQ(row.attempts, other.attempts) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.first_token.value / other.first_token.value, 1, 1e-9) << which;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    EXPECT_NEAR(fast.busy, slow.busy, 1e-9 * fast.busy) << which;
    EXPECT_EQ(fast.failure_lost_tokens, slow.failure_lost_tokens) << which;
    ASSERT_FALSE(HasFailure());
  }
}

Scenario steady_load() {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.requests = 20'000;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.lengths = {.prompt = 16, .output = 10};
  scenario.serving.replicas = 4;
  scenario.serving.router = router_named("least_outstanding");
  scenario.output.requests = false;
  return scenario;
}

TEST(ServingFailures, AvailabilityFollowsFromTheMeanTimes) {
  Scenario scenario = steady_load();
  scenario.serving.failures.mean_time_to_failure = Seconds{3};
  scenario.serving.failures.mean_time_to_repair = Seconds{1};
  const Metrics metrics = evaluate(scenario).metrics;
  // Four replicas for a thousand seconds fail and are repaired a thousand times: 3% at most.
  EXPECT_NEAR(metrics.failures, 1000, 100);
  EXPECT_NEAR(metrics.availability / 0.75, 1, 0.03);
  EXPECT_EQ(metrics.requests_finished + metrics.requests_failed, 20'000);
}

// Whoever comes at a rate of its own is answered as fast as it comes at most. What piled up while the only replica was repaired is
// worked off faster, which is no pace that can go on.
TEST(ServingFailures, NoMoreIsAnsweredThanComes) {
  int kept_up = 0;
  for (const double up : {3.0, 30.0, 300.0}) {
    for (const double repair : {1.0, 10.0, 100.0}) {
      for (const std::int64_t requests : {0, 2000}) {
        for (const std::int64_t seed : {1, 2, 3}) {
          Scenario scenario = toys::served_at(10);
          scenario.seed = seed;
          scenario.load.requests = requests;
          scenario.serving.failures.mean_time_to_failure = Seconds{up};
          scenario.serving.failures.mean_time_to_repair = Seconds{repair};
          const Outcome outcome = evaluate(scenario);
          if (outcome.status != Status::ok) continue;
          const Metrics& metrics = outcome.metrics;
          const double offered = metrics.offered.value;
          // Chance: as many more are inside at the beginning than at the end.
          const double seconds = (metrics.measured_until - metrics.measured_from).value;
          const double chance = 2 * std::sqrt(2 * offered * metrics.e2e.value + 1) / seconds;
          const auto which = testing::Message() << up << ", " << repair << ", " << requests;
          EXPECT_LE(metrics.throughput.value, offered + chance) << which;
          EXPECT_LE(metrics.output.value, 20 * (offered + 2 * chance)) << which;  // 20 tokens each
          EXPECT_LE(metrics.goodput.value, metrics.throughput.value) << which;
          if (metrics.steady == 1 && metrics.requests_failed == 0) {
            // A part may end while the replica is repaired.
            EXPECT_GT(metrics.throughput.value / offered, 0.95) << which;
            ++kept_up;
          }
        }
      }
    }
  }
  EXPECT_GT(kept_up, 10);
}

// A row without a single measured answer has a reason and no figures; one with a few has theirs.
TEST(ServingFailures, WhoIsNeverAnsweredHasNoFigures) {
  for (const double up : {1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0}) {
    for (const double repair : {0.1, 10.0, 1000.0}) {
      for (const std::int64_t requests : {0, 500}) {
        Scenario scenario = toys::served_at(10);
        scenario.load.requests = requests;
        scenario.serving.failures.mean_time_to_failure = Seconds{up};
        scenario.serving.failures.mean_time_to_repair = Seconds{repair};
        const Outcome outcome = evaluate(scenario);
        const auto which = testing::Message() << up << ", " << repair << ", " << requests;
        if (outcome.status == Status::ok) {
          EXPECT_GT(outcome.metrics.requests_measured, 0) << which;
          EXPECT_GT(outcome.metrics.e2e.value, 0) << which;
        } else {
          EXPECT_NE(outcome.reason.find("fail with their replicas"), std::string::npos) << which;
        }
      }
    }
  }
}

TEST(ServingFailures, ReplicasThatOutliveTheRunChangeNothing) {
  Scenario scenario = steady_load();
  const Metrics before = evaluate(scenario).metrics;
  EXPECT_TRUE(std::isnan(before.failures));
  scenario.serving.failures.mean_time_to_failure = Seconds{1e12};
  const Metrics after = evaluate(scenario).metrics;
  EXPECT_EQ(after.failures, 0);
  EXPECT_EQ(after.availability, 1);
  EXPECT_EQ(after.ttft_p99, before.ttft_p99);
  EXPECT_EQ(after.e2e, before.e2e);
  EXPECT_EQ(after.device_hours, before.device_hours);
}

// A fleet of fixed size is reserved, or somebody's own: what it takes to repair a replica changes who answers, not what is paid.
// One that follows the load gives back what is broken.
TEST(ServingFailures, AFixedFleetIsPaidForWhileItIsRepaired) {
  Scenario scenario = steady_load();
  scenario.device.rent = DollarsPerSecond{3};
  scenario.serving.failures.mean_time_to_failure = Seconds{3};
  scenario.serving.failures.mean_time_to_repair = Seconds{1};
  const Metrics fixed = evaluate(scenario).metrics;
  EXPECT_LT(fixed.availability, 0.8);
  EXPECT_NEAR(fixed.rent.value, 4 * 3, 1e-9);
  scenario.serving.scaling = {.policy = ScalingPolicy::scheduled,
                              .interval = Seconds{1e6},
                              .cold_start = Seconds{0},
                              .schedule = "0:4"};
  const Metrics given_back = evaluate(scenario).metrics;
  EXPECT_NEAR(given_back.rent.value / (4 * 3), given_back.availability, 0.02);
}

// By hand: 10 ms a step. The only replica fails during the third step of an answer of five tokens and is back at once.
TEST(ServingFailures, AnAnswerGoesOnAfterWhatWasWrittenOrBeginsAnew) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  const Resources resources = toys::trace({{0, 8, 5}});
  scenario.serving.failures = {.mean_time_to_repair = Seconds{0}};
  // The first time to failure of this seed, in mean times.
  scenario.serving.failures.mean_time_to_failure = Seconds{1};
  const std::uint64_t seed = mixed_seed(mixed_seed(0, 0), 0);
  const double up = exponential(seed, Stream::failures, 0, 0);
  // The second failure comes after the run.
  ASSERT_GT(exponential(seed, Stream::failures, std::uint64_t{1} << 32, 0) / up, 3);
  scenario.serving.failures.mean_time_to_failure = Seconds{0.025 / up};
  const Outcome resumed = evaluate(scenario, resources);
  // Three tokens by 30 ms; the prompt and these are read again, which gives the fourth at 40 ms.
  EXPECT_NEAR(toys::row_of(resumed, 0).finish.value, 0.05, 1e-9);
  EXPECT_NEAR(toys::row_of(resumed, 0).first_token.value, 0.01, 1e-9);
  EXPECT_EQ(resumed.metrics.lost_tokens, 10);  // the third token's KV was never made
  EXPECT_EQ(resumed.metrics.requests_retried, 1);
  scenario.serving.failures.answers = AfterFailure::restart;
  const Outcome restarted = evaluate(scenario, resources);
  EXPECT_NEAR(toys::row_of(restarted, 0).first_token.value, 0.04, 1e-9);
  EXPECT_NEAR(toys::row_of(restarted, 0).finish.value, 0.08, 1e-9);
  scenario.serving.failures.attempts = 1;
  const Outcome given_up = evaluate(scenario, resources);
  EXPECT_EQ(toys::row_of(given_up, 0).end, RequestEnd::failed);
  // Nobody is answered, so there is nothing to report but that.
  EXPECT_EQ(given_up.status, Status::infeasible);
  EXPECT_NE(given_up.reason.find("not one of the 1 requests is answered"), std::string::npos)
      << given_up.reason;
}

// Two deployments, and one seat where answers are written: who is there without a seat when that replica fails, after 45 ms,
// has told nobody of a token.
TEST(ServingFailures, WithoutASeatNothingWasTold) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.prefill.present = true;
  fill_roles(scenario);
  scenario.serving.max_num_seqs = 1;
  const double up =
      exponential(mixed_seed(mixed_seed(0, 0), 0), Stream::failures, 0, 0);  // of the first failure
  scenario.serving.failures = {.mean_time_to_failure = Seconds{0.045 / up},
                               .mean_time_to_repair = Seconds{0},
                               .attempts = 100};
  const Outcome outcome = evaluate(scenario, toys::trace({{0, 8, 12}, {0, 8, 12}}));
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_GE(outcome.metrics.requests_retried, 2);
  const std::pair<double, double> told = std::minmax(toys::row_of(outcome, 0).first_token.value,
                                                     toys::row_of(outcome, 1).first_token.value);
  EXPECT_LT(told.first, 0.02);
  EXPECT_GT(told.second, 0.045);
}

}  // namespace
}  // namespace engine
