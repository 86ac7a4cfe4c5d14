// The closed form against the reference: 1,000 random scenarios over all policies, loads and routers
// give the same figures, kernels, request rows and timeline, to 1e-9, as simulating every step.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "tests/support/random_load.h"

namespace engine {
namespace {

constexpr double kTolerance = 1e-9;

void expect_near(double a, double b, double scale, const std::string& what) {
  if (std::isnan(a) && std::isnan(b)) return;
  EXPECT_LE(std::abs(a - b), kTolerance * std::max({std::abs(a), std::abs(b), scale}))
      << what << ": " << a << " and " << b;
}

void expect_same_metrics(const Metrics& a, const Metrics& b) {
  using Values = std::array<double, sizeof(Metrics) / sizeof(double)>;
  const auto left = std::bit_cast<Values>(a), right = std::bit_cast<Values>(b);
  std::vector<std::string> names;
  Metrics::fields(
      a, [&](std::string_view name, const auto&, std::string_view) { names.emplace_back(name); });
  ASSERT_EQ(names.size(), left.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    // A queue time of nothing is a difference of two sums: held to 1e-9 of the whole run. So is waiting for one another.
    const bool time =
        names[i].starts_with("queue") || names[i] == "host_time" || names[i] == "lockstep_time";
    expect_near(left[i], right[i], time ? a.makespan.value : 0, names[i]);
  }
}

void expect_same_kernels(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const KernelRow& left = a.kernels[i];
    const KernelRow& right = b.kernels[i];
    const std::string what =
        std::string(name_of(left.op)) + " in " + std::string(name_of(left.phase));
    EXPECT_EQ(left.op, right.op);
    EXPECT_EQ(left.phase, right.phase);
    expect_near(left.work.calls, right.work.calls, 0, what + " calls");
    // The host's part is what is left of the steps: held to 1e-9 of the whole run.
    const bool rest = left.family == Family::host;
    expect_near(left.work.time.value, right.work.time.value, rest ? a.metrics.makespan.value : 0,
                what + " time");
    expect_near(left.work.low.value, right.work.low.value, rest ? a.metrics.makespan.value : 0,
                what + " low");
    expect_near(left.work.high.value, right.work.high.value, rest ? a.metrics.makespan.value : 0,
                what + " high");
    expect_near(left.work.flops.value, right.work.flops.value, 0, what + " flops");
    expect_near(left.work.bytes.value, right.work.bytes.value, 0, what + " bytes");
  }
}

void expect_same_requests(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    const RequestRow& left = a.requests[i];
    const RequestRow& right = b.requests[i];
    EXPECT_EQ(left.number, right.number);
    EXPECT_EQ(left.replica, right.replica);
    EXPECT_EQ(left.preemptions, right.preemptions);
    EXPECT_EQ(left.cached_tokens, right.cached_tokens);
    expect_near(left.scheduled.value, right.scheduled.value, 0, "scheduled");
    expect_near(left.first_token.value, right.first_token.value, 0, "first token");
    expect_near(left.finish.value, right.finish.value, 0, "finish");
  }
  ASSERT_EQ(a.timeline.size(), b.timeline.size());
  for (std::size_t i = 0; i < a.timeline.size(); ++i) EXPECT_EQ(a.timeline[i], b.timeline[i]) << i;
}

// The outcome of the closed form, which equals that of every step taken on its own.
Outcome expect_equality(toys::RandomCase made, std::uint64_t number) {
  Outcome fast = evaluate(made.scenario, made.resources);
  made.scenario.serving.stepping = true;
  const Outcome slow = evaluate(made.scenario, made.resources);
  EXPECT_EQ(fast.status, slow.status) << fast.reason << slow.reason;
  EXPECT_EQ(fast.saturation, slow.saturation);
  expect_same_metrics(fast.metrics, slow.metrics);
  expect_same_kernels(fast, slow);
  expect_same_requests(fast, slow);
  EXPECT_FALSE(testing::Test::HasFailure())
      << "case " << number << ", policy " << name_of(made.scenario.serving.policy);
  return fast;
}

TEST(ServingLaws, TheClosedFormEqualsStepping) {
  std::array<int, enum_names(PolicyName{}).size()> seen{};
  double preemptions = 0, hits = 0;
  int measured = 0;  // in the others a stated window is empty
  for (std::uint64_t number = 0; number < 1000; ++number) {
    const toys::RandomCase made = toys::random_case(number);
    const Outcome fast = expect_equality(made, number);
    ASSERT_FALSE(HasFailure());
    measured += fast.status == Status::ok;
    ++seen[std::size_t(made.scenario.serving.policy)];
    if (fast.status != Status::ok) continue;
    preemptions += fast.metrics.preemptions;
    hits += fast.metrics.prefix_hit_rate > 0;
  }
  for (const int count : seen) EXPECT_GT(count, 100);
  EXPECT_GT(measured, 800);
  // The cases are worth something: they preempt and they hit.
  EXPECT_GT(preemptions, 500);
  EXPECT_GT(hits, 100);
}

// Tokens queue in front of clients: when they get them follows from sums over stretches.
TEST(ServingLaws, TheClosedFormEqualsSteppingWhereTokensQueue) {
  double queued = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    toys::RandomCase made = toys::random_case(number);
    toys::Dice dice(97'000'000 + number);
    const double alone = evaluate(made.scenario, made.resources).metrics.ttft.value;
    made.scenario.host.front_end_merges = false;
    made.scenario.host.front_end_per_message = Seconds{std::pow(10, dice.between(-5, -2))};
    const Outcome fast = expect_equality(made, number);
    ASSERT_FALSE(HasFailure());
    queued += fast.status == Status::ok && fast.metrics.ttft.value > 2 * alone;
  }
  EXPECT_GT(queued, 50);
}

// Where replicas step together, the time of a stretch is the sum over its steps of the longest of their times.
TEST(ServingLaws, TheClosedFormEqualsSteppingWhereReplicasStepTogether) {
  double preemptions = 0, waited = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    toys::RandomCase made = toys::random_case(number);
    toys::Dice dice(67'000'000 + number);
    Scenario& scenario = made.scenario;
    scenario.model = toys::mixture();
    if (dice.chance(0.3)) {
      scenario.model.window = dice.whole(8, 120);
      scenario.model.full_attention_every = dice.whole(0, 3);
    }
    const std::int64_t tp = dice.chance(0.3) ? 2 : 1;
    scenario.parallel = {.tp = tp, .dp = 8, .ep = dice.chance(0.5) ? 4 * tp : 8 * tp};
    scenario.serving.two_batch_overlap = dice.chance(0.3);
    const Outcome fast = expect_equality(made, number);
    ASSERT_FALSE(HasFailure());
    if (fast.status != Status::ok) continue;
    preemptions += fast.metrics.preemptions;
    waited += fast.metrics.lockstep_time.value > 0;
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(waited, 300);
}

}  // namespace
}  // namespace engine
