// Drafts whose length follows the load, where a step is not the batch's alone: batches of a pipeline wait for one another's
// proposals, replicas that share experts for the slowest of them, and clocks are chosen after the length.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/random_load.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::expect_same_figures;
using toys::sound;
using toys::speculative;
using toys::with_draft;

// A closed loop that decodes most of its time.
Scenario busy(Scenario scenario, std::int64_t clients) {
  scenario.task = Task::serve;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = clients;
  scenario.load.requests = 4 * clients + 8;
  scenario.load.lengths = {.prompt = 8, .output = 400};
  scenario.load.measure = MeasureKind::whole;
  scenario.serving.max_num_seqs = 4096;
  scenario.serving.kv_blocks = 1 << 16;
  return scenario;
}

Scenario dynamic(Scenario scenario) {
  scenario.speculation.dynamic = true;
  return scenario;
}

Scenario in_stages(Scenario scenario, std::int64_t stages) {
  scenario.parallel.pp = stages;
  return scenario;
}

// Four replicas of a device each that share experts.
Scenario in_lockstep(Scenario scenario) {
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 4, .ep = 4};
  scenario.draft.deployment.parallel = scenario.parallel;
  scenario.draft.deployment.parallel.ep = 1;
  return scenario;
}

// Steps of a second, whatever is verified in them.
Scenario slow_host(std::int64_t tokens, const std::string& acceptance, double lookup) {
  Scenario scenario = speculative(SpeculationMethod::ngram, tokens, acceptance);
  scenario.host = toys::no_host();
  scenario.host.step_overhead = Seconds{1};
  scenario.speculation.lookup_time = Seconds{lookup};
  return scenario;
}

void expect_same_run(const Scenario& one, const Scenario& other) {
  const Metrics a = sound(one).metrics, b = sound(other).metrics;
  EXPECT_NEAR(a.makespan.value, b.makespan.value, 1e-9 * a.makespan.value);
  EXPECT_NEAR(a.e2e.value, b.e2e.value, 1e-9 * a.e2e.value);
  EXPECT_NEAR(a.accepted_tokens_per_step, b.accepted_tokens_per_step, 1e-9);
}

TEST(LengthByLoad, ThatIsAlwaysTheLongestIsAFixedOne) {
  for (const std::int64_t clients : {1, 2, 7}) {
    const Scenario fixed = busy(slow_host(3, "1", 0), clients);
    for (const std::int64_t stages : {1, 2, 5}) {
      expect_same_run(in_stages(fixed, stages), dynamic(in_stages(fixed, stages)));
    }
    expect_same_run(in_lockstep(fixed), dynamic(in_lockstep(fixed)));
  }
}

TEST(LengthByLoad, WithoutHopeIsPlainDecoding) {
  for (const std::int64_t clients : {1, 6}) {
    const Scenario hopeless = busy(slow_host(3, "0", 0.1), clients);
    for (const Scenario& scenario : {in_stages(hopeless, 3), in_lockstep(hopeless)}) {
      Scenario off = scenario;
      off.speculation.tokens = 0;
      const Metrics plain = sound(off).metrics, chosen = sound(dynamic(scenario)).metrics;
      EXPECT_EQ(chosen.proposed_tokens_per_step, 0);
      EXPECT_NEAR(chosen.makespan.value, plain.makespan.value, 1e-9 * plain.makespan.value);
    }
  }
}

// A token that holds every other time, and a lookup of a fifth of a step: alone in its pipeline a batch makes 1.5 tokens in
// 1.2 s. Four of them wait for one another's lookups, so it would make 1.5 tokens in 1.8 s, and one in one without.
TEST(LengthByLoad, InAPipelineCountsTheBatchesThatItHoldsUp) {
  const auto proposed = [](std::int64_t clients) {
    Scenario scenario = in_stages(slow_host(1, "0.5", 0.2), 4);
    scenario = dynamic(busy(scenario, clients));
    scenario.load.requests = clients;
    return sound(scenario).metrics.proposed_tokens_per_step;
  };
  EXPECT_GT(proposed(1), 0.99);
  EXPECT_LT(proposed(4), 0.05);
}

TEST(LengthByLoad, IsNeverMuchWorseThanAnyFixedOne) {
  for (const std::int64_t clients : {2, 32, 512}) {
    for (const char* acceptance : {"0.9", "0.4"}) {
      const auto drafted = [&](std::int64_t tokens) {
        return busy(with_draft(speculative(SpeculationMethod::draft_model, tokens, acceptance)),
                    clients);
      };
      const auto stages = [](const Scenario& scenario) { return in_stages(scenario, 2); };
      const auto group = [](const Scenario& scenario) { return in_lockstep(scenario); };
      const auto compare = [&](const auto& place, double loss, const char* where) {
        const double chosen = sound(dynamic(place(drafted(3)))).metrics.output.value;
        for (const std::int64_t tokens : {0, 1, 3}) {
          const double fixed = sound(place(drafted(tokens))).metrics.output.value;
          EXPECT_GE(chosen, fixed * (1 - loss))
              << where << " " << clients << " " << acceptance << " " << tokens;
        }
      };
      compare(stages, 0.03, "stages");
      compare(group, 0.04, "group");
    }
  }
}

// Every method, with lengths that replicas of a group choose for themselves: steps one by one are the closed form, and all
// time of all replicas is in some row.
TEST(LengthByLoad, InAGroupEqualsSteppingAndAddsUp) {
  int served = 0;
  for (std::uint64_t number = 0; number < 120; ++number) {
    toys::RandomCase made = toys::random_case(number);
    toys::Dice dice(77'000'000 + number);
    Scenario& scenario = made.scenario;
    scenario.speculation.method = SpeculationMethod(dice.whole(1, 5));
    scenario.speculation.tokens = dice.whole(1, 4);
    scenario.speculation.acceptance = std::to_string(dice.unit());
    if (dice.chance(0.3)) scenario.speculation.draws = AcceptanceDraws::drawn;
    scenario = with_draft(in_lockstep(dynamic(scenario)));
    scenario.draft.deployment.parallel.ep = 1;
    scenario.speculation.draft_window =
        scenario.speculation.method == SpeculationMethod::self ? 50 : 0;
    scenario.serving.two_batch_overlap = dice.chance(0.3);
    scenario.load.warmup = scenario.load.window = Seconds{0};
    const Outcome fast = evaluate(scenario, made.resources);
    scenario.serving.stepping = true;
    const Outcome slow = evaluate(scenario, made.resources);
    ASSERT_EQ(fast.status, slow.status) << fast.reason << slow.reason;
    if (fast.status != Status::ok) continue;
    ++served;
    expect_same_figures(fast, slow, 1e-9);
    double rows = 0;
    for (const KernelRow& row : fast.kernels) {
      EXPECT_GE(row.work.exposed().value, 0) << name_of(row.op);
      rows += row.work.exposed().value;
    }
    const double replicas = 4.0 * double(scenario.serving.replicas);
    const double time = fast.metrics.utilization * fast.metrics.makespan.value * replicas;
    EXPECT_NEAR(rows / time, 1, 1e-9);
    ASSERT_FALSE(HasFailure()) << "case " << number << ", method "
                               << name_of(scenario.speculation.method);
  }
  EXPECT_GT(served, 100);
}

Scenario promised(Scenario scenario, Seconds limit) {
  scenario.serving.clock.mode = ClockMode::slo;
  scenario.slo.tpot.p95 = limit;
  return scenario;
}

// With no time to spare the clock is the device's; with much of it the same tokens are proposed at the lowest one.
TEST(LengthByLoad, IsChosenBeforeTheClock) {
  Scenario fast = dynamic(busy(speculative(SpeculationMethod::ngram, 3, "0.7"), 8));
  fast.host = toys::no_host();
  fast.device.idle_power = Watts{100};
  fast.device.busy_power = Watts{150};
  fast.device.tensor_power = Watts{300};
  fast.device.memory_power = Watts{150};
  fast.device.power_limit = Watts{900};
  const Outcome full = sound(fast), kept = sound(promised(fast, Seconds{1e-9}));
  EXPECT_EQ(kept.metrics.clock_mean, 1);
  EXPECT_NEAR(kept.metrics.e2e.value, full.metrics.e2e.value, 1e-9 * full.metrics.e2e.value);
  const Outcome slow = sound(promised(fast, Seconds{10}));
  EXPECT_LT(slow.metrics.clock_mean, 0.6);
  EXPECT_GE(slow.metrics.e2e, full.metrics.e2e);
  EXPECT_NEAR(slow.metrics.proposed_tokens_per_step, full.metrics.proposed_tokens_per_step, 0.05);
  // One clock is no choice.
  Scenario one = promised(fast, Seconds{10});
  one.serving.clock.lowest = 1;
  EXPECT_EQ(sound(one).metrics.e2e, full.metrics.e2e);
}

}  // namespace
}  // namespace engine
