// Replicas that share experts step together: what a step takes follows from the slowest of them and from the tokens of all.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "engine/point_log.h"
#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

using toys::row_of;
using toys::TraceRow;

// Four replicas of a device each, in one group, that take requests in turn. Every request gets a row.
Scenario group_of_four() {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.host = toys::no_host();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 4, .ep = 4};
  scenario.serving.router = router_named("round_robin");
  scenario.load.requests = 1'000'000;
  return scenario;
}

Outcome outcome_of(const Scenario& scenario, std::vector<TraceRow> rows) {
  Outcome outcome = evaluate(scenario, toys::trace(rows));
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

// ---- what a step takes ------------------------------------------------------------------------------

// The table of steps of a group.
struct GroupTable {
  Scenario scenario = group_of_four();
  Fabric fabric;
  ModelShard shard;
  StepTable table;

  explicit GroupTable(const Device& device, std::int64_t members = 4, bool halves = false) {
    scenario.device = device;
    scenario.parallel = {.dp = members, .ep = members};
    fabric = fabric_of(scenario.cluster, scenario.device);
    shard = shard_of(scenario.model, scenario.parallel, {});
    shard.lockstep = true;
    shard.two_halves = halves;
  }
  StepContext context() const { return {scenario.device, fabric, shard, scenario.host}; }
  // The local parts of members with these batches, and what all share.
  std::vector<MemberStep> steps;
  StepTable::SharedStep meet(const std::vector<BatchShape>& batches) {
    const StepContext here = context();
    table.reset(here);
    steps.clear();
    for (const BatchShape& batch : batches) steps.push_back(table.own_step(batch));
    StepTable::SharedStep shared;
    table.find_shared(steps, {}, shared);
    return shared;
  }
  double seconds(const std::vector<BatchShape>& batches) {
    const SharedPart shared = meet(batches).part;
    double longest = 0;
    for (const MemberStep& own : steps) longest = std::max(longest, member_seconds(own, shared));
    return longest;
  }
};

BatchShape decodes(std::int64_t sequences, std::int64_t context) {
  BatchShape batch;
  add_decode(batch, sequences, context, 0);
  batch.sampled = sequences;
  return batch;
}

BatchShape prompt(std::int64_t tokens) {
  BatchShape batch;
  add_prefill(batch, 1, tokens, 0, 0);
  batch.sampled = 1;
  return batch;
}

TEST(Lockstep, EqualBatchesTakeAsLongAsAStepOfOneWhoseNeighboursAreLikeIt) {
  for (const bool halves : {false, true}) {
    GroupTable group(toys::gpu(), 4, halves);
    for (const std::int64_t count : {1, 2, 3, 16, 37, 64, 200}) {
      // Halves of an odd number are rounded up where one step is timed, for each member of it.
      if (halves && count % 2 == 1 && count > 1) continue;
      for (const BatchShape& batch : {decodes(count, 900), prompt(count)}) {
        const Phase phase = batch.prefill_tokens > 0 ? Phase::prefill : Phase::decode;
        const double alone = step_time(batch, group.context(), phase, nullptr).total().value;
        const double together = group.seconds({batch, batch, batch, batch});
        EXPECT_NEAR(together / alone, 1, 0.01) << count << (halves ? " in halves" : "");
      }
    }
  }
}

// Decodes beside a prompt are exchanged by other kernels, which may be faster.
TEST(Lockstep, AStepIsNeverShorterForWhatOthersBring) {
  GroupTable group(toys::gpu());
  for (const auto& batches :
       {std::vector{decodes(1, 100), decodes(30, 2000), decodes(2, 50), decodes(300, 10)},
        std::vector{prompt(1), prompt(20), prompt(3000), prompt(400)}}) {
    for (const BatchShape& own : batches) {
      const double alone = group.seconds({own});
      double before = alone;
      std::vector<BatchShape> members{own};
      for (const BatchShape& other : batches) {
        if (members.size() == 4) break;
        members.push_back(other);
        const double with = group.seconds(members);
        EXPECT_GE(with, before);
        before = with;
      }
      EXPECT_GT(before, alone);
    }
  }
}

// Devices send and receive at the same time. One of eight that sends alone sends more than anybody is sent, whichever experts
// its tokens favour; eight that send alike wait for the device that is sent most.
TEST(Lockstep, AnExchangeLastsAsLongAsForWhoSendsMostOrIsSentMost) {
  const auto exchange = [](double skew, const std::vector<BatchShape>& batches) {
    GroupTable group(toys::gpu(), 8);
    group.scenario.model.moe.skew = skew;
    return group.meet(batches).part.exchange;
  };
  for (const BatchShape& batch : {prompt(4000), decodes(200, 100)}) {
    EXPECT_DOUBLE_EQ(exchange(0.5, {batch}), exchange(0, {batch}));
    const std::vector<BatchShape> all(8, batch);
    EXPECT_GT(exchange(0.5, all), exchange(0, all));
    EXPECT_GE(exchange(0, all), exchange(0, {batch}));
  }
}

TEST(Lockstep, FasterDevicesAndLinksAreNeverSlower) {
  const std::vector<std::function<void(Device&)>> faster{
      [](Device& device) { device.memory_bandwidth = device.memory_bandwidth * 2; },
      [](Device& device) { device.peak.bf16 = device.peak.bf16 * 2; },
      [](Device& device) { device.scale_up.bandwidth = device.scale_up.bandwidth * 2; },
      [](Device& device) { device.scale_out.bandwidth = device.scale_out.bandwidth * 2; }};
  for (const bool halves : {false, true}) {
    for (const std::int64_t members : {4, 16}) {
      for (const auto& improve : faster) {
        Device better = toys::gpu();
        improve(better);
        GroupTable here(toys::gpu(), members, halves), there(better, members, halves);
        for (const auto& batches : {std::vector{decodes(8, 500)},
                                    {decodes(8, 500), prompt(700)},
                                    {decodes(1, 10), decodes(100, 3000), prompt(40)}}) {
          EXPECT_LE(there.seconds(batches), here.seconds(batches) * (1 + 1e-12));
        }
      }
    }
  }
}

// ---- requests ---------------------------------------------------------------------------------------

// Every step takes 10 ms, by the host.
TEST(Lockstep, WhoeverGetsSomethingWaitsForTheStepOfTheOthers) {
  Scenario scenario = group_of_four();
  scenario.host.step_overhead = Seconds{10e-3};
  scenario.host.asynchronous = true;
  // A prompt of one step and three tokens; the next request comes to the next replica, in the middle of a step.
  const Outcome outcome = outcome_of(scenario, {{0, 8, 3}, {0.004, 8, 2}, {0.1, 8, 1}});
  EXPECT_NEAR(row_of(outcome, 0).finish.value, 0.03, 1e-9);
  EXPECT_NEAR(row_of(outcome, 1).scheduled.value, 0.01, 1e-9);
  EXPECT_NEAR(row_of(outcome, 1).first_token.value, 0.02, 1e-9);
  EXPECT_NEAR(row_of(outcome, 1).finish.value, 0.03, 1e-9);
  // Nobody has anything to do: who comes begins at once.
  EXPECT_NEAR(row_of(outcome, 2).scheduled.value, 0.1, 1e-9);
  // Four steps: one, two, two and one replica have work in them.
  EXPECT_NEAR(outcome.metrics.idle_rank_share, (3 + 2 + 2 + 3) / 16.0, 1e-9);
  EXPECT_NEAR(outcome.metrics.utilization, 0.04 / 0.11, 1e-9);
  EXPECT_EQ(outcome.metrics.steps, 6);
}

TEST(Lockstep, EveryoneBeginsAndEndsTogether) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    toys::RandomCase made = toys::random_case(5'000 + number);
    made.scenario.model = toys::mixture();
    made.scenario.parallel = {.dp = 8, .ep = 4};
    Scratch scratch;
    PointLog log{.most_steps = 100'000};
    scratch.write_down(&log);
    Outcome outcome;
    WorkMeter work;
    evaluate_into(made.scenario, made.resources, outcome, work, scratch);
    if (outcome.status != Status::ok) continue;
    // Of each group, when its steps begin and end.
    std::map<std::int32_t, std::map<double, std::set<double>>> ends;
    for (const TracedStep& step : log.steps) {
      ends[step.replica / 4][step.start.value].insert(step.end.value);
    }
    for (const auto& [group, steps] : ends) {
      double free = 0;
      for (const auto& [start, end] : steps) {
        EXPECT_GE(start, free - kSameMoment) << "case " << number;
        ASSERT_EQ(end.size(), 1U) << "case " << number;
        free = *end.begin();
      }
    }
  }
}

TEST(Lockstep, OneAloneIsFasterThanWithBusyNeighbours) {
  const Scenario scenario = group_of_four();
  const std::vector<TraceRow> one{{0, 100, 50}};
  std::vector<TraceRow> all = one;
  for (int i = 0; i < 31; ++i) all.push_back({0, 100, 50});
  const double alone = row_of(outcome_of(scenario, one), 0).finish.value;
  const double with_others = row_of(outcome_of(scenario, all), 0).finish.value;
  EXPECT_LT(alone, 0.9 * with_others);
}

TEST(Lockstep, ALongPromptOnOneDelaysTheTokensOfAll) {
  Scenario scenario = group_of_four();
  const std::vector<TraceRow> decoding{{0, 10, 100}, {0, 10, 100}, {0, 10, 100}};
  std::vector<TraceRow> read = decoding;
  read.push_back({0.01, 3000, 1});
  const Outcome before = outcome_of(scenario, decoding), after = outcome_of(scenario, read);
  const double reading = row_of(after, 3).first_token.value - row_of(after, 3).scheduled.value;
  for (std::int64_t number = 0; number < 3; ++number) {
    const double later = row_of(after, number).finish.value - row_of(before, number).finish.value;
    EXPECT_GT(later, 0.8 * reading) << number;
  }
  // Who shares no experts with it does not notice: the fourth replica of two groups is in the second.
  scenario.parallel = {.dp = 4, .ep = 2};
  const Outcome apart_before = outcome_of(scenario, decoding);
  const Outcome apart = outcome_of(scenario, read);
  EXPECT_EQ(row_of(apart, 0).finish, row_of(apart_before, 0).finish);
  EXPECT_EQ(row_of(apart, 1).finish, row_of(apart_before, 1).finish);
  EXPECT_GT(row_of(apart, 2).finish, row_of(apart_before, 2).finish);
}

// A random load that every member of a group gets alike is served as if each were alone with neighbours like it, which is
// how members are priced that do not step together.
TEST(Lockstep, EvenLoadsAreServedAsThoughEachStepsAlone) {
  int compared = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    toys::Dice dice(number);
    std::vector<TraceRow> rows;
    double time = 0;
    for (int i = 0; i < 20; ++i) {
      const TraceRow row{time, std::int32_t(dice.whole(1, 300)), std::int32_t(dice.whole(1, 60))};
      for (int member = 0; member < 4; ++member) rows.push_back(row);
      time += dice.between(0, 0.02);
    }
    toys::RandomCase made{group_of_four(), toys::trace(rows)};
    made.scenario.host = dice.chance(0.5) ? HostSettings{} : toys::no_host();
    const auto finish = [&](bool lockstep) {
      toys::Laboratory lab(made);
      lab.made.scenario.serving.replicas = 4;
      lab.shard.lockstep = lockstep;
      lab.run();
      std::map<std::int64_t, RequestRow> by_number;
      for (const RequestRow& row : lab.rows) by_number[row.number] = row;
      return by_number;
    };
    const auto together = finish(true), apart = finish(false);
    ASSERT_EQ(together.size(), apart.size());
    for (const auto& [which, row] : together) {
      const RequestRow& other = apart.at(which);
      const double stay = other.finish.value - other.arrival.value;
      EXPECT_NEAR(row.finish.value, other.finish.value, 0.01 * stay) << "case " << number;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40 * 80);
}

TEST(Lockstep, NothingIsLostAndTimeAddsUp) {
  for (std::uint64_t number = 0; number < 200; ++number) {
    toys::RandomCase made = toys::random_case(number);
    toys::Dice dice(66'000'000 + number);
    Scenario& scenario = made.scenario;
    scenario.model = toys::mixture();
    const std::int64_t tp = dice.chance(0.3) ? 2 : 1;
    scenario.parallel = {.tp = tp, .dp = 8, .ep = dice.chance(0.5) ? 4 * tp : 8 * tp};
    scenario.serving.two_batch_overlap = dice.chance(0.3);
    scenario.load.warmup = scenario.load.window = Seconds{0};
    const Outcome outcome = evaluate(scenario, made.resources);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    const Metrics& metrics = outcome.metrics;
    // The kernels table is the time of all steps, of those with nothing to do as well.
    double kernels = 0, waiting = 0;
    for (const KernelRow& row : outcome.kernels) {
      kernels += row.work.exposed().value;
      EXPECT_GE(row.work.exposed().value, 0) << name_of(row.op);
      if (row.op == OpName::lockstep) waiting += row.work.time.value;
    }
    const double replicas = 8.0 * double(scenario.serving.replicas);
    const double busy = metrics.utilization * metrics.makespan.value * replicas;
    EXPECT_NEAR(kernels / busy, 1, 1e-9) << "case " << number;
    EXPECT_GE(metrics.idle_rank_share, 0);
    EXPECT_LT(metrics.idle_rank_share, 1);
    EXPECT_LE(metrics.utilization, 1 + 1e-9);
    if (waiting > 0) {
      EXPECT_DOUBLE_EQ(metrics.lockstep_time.value, waiting);
    }
    ASSERT_FALSE(HasFailure()) << "case " << number;
  }
}

// Two replicas fail together, and one client keeps one of them busy: the other waits, idle and not down, until its step has ended.
TEST(Lockstep, WhoFailsIsBusyForNoLongerThanItIsThere) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 2, .ep = 2};
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 1;
  scenario.load.requests = 200;
  scenario.load.measure = MeasureKind::whole;
  scenario.load.lengths = {.prompt = 500, .output = 30};
  scenario.serving.failures = {
      .mean_time_to_failure = Seconds{0.1}, .mean_time_to_repair = Seconds{0.01}, .attempts = 1000};
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_GT(outcome.metrics.failures, 20);
  EXPECT_NEAR(outcome.metrics.utilization, 1, 1e-9);
}

// Replicas that share experts with nobody are as they were: no group, no wait.
TEST(Lockstep, WhoSharesNoExpertsStepsAlone) {
  Scenario scenario = group_of_four();
  scenario.parallel = {.tp = 2, .dp = 2, .ep = 2};
  const Outcome outcome = outcome_of(scenario, {{0, 100, 50}, {0.001, 3000, 50}});
  EXPECT_TRUE(std::isnan(outcome.metrics.idle_rank_share));
  EXPECT_TRUE(std::isnan(outcome.metrics.lockstep_time.value));
  for (const KernelRow& row : outcome.kernels) EXPECT_NE(row.op, OpName::lockstep);
}

TEST(Lockstep, DrawsNoLessThanAtRestAndNoMoreThanItsLimit) {
  Scenario scenario = group_of_four();
  scenario.device.idle_power = Watts{100};
  scenario.device.busy_power = Watts{150};
  scenario.device.tensor_power = Watts{300};
  scenario.device.memory_power = Watts{150};
  scenario.device.power_limit = Watts{900};
  for (const std::int32_t output : {1, 20, 400}) {
    const Outcome outcome = outcome_of(scenario, {{0, 500, output}, {0.02, 50, 30}, {0.5, 1, 2}});
    const Metrics& metrics = outcome.metrics;
    const double watts = metrics.energy.value / (metrics.makespan.value * metrics.devices);
    EXPECT_GE(watts, 100 * (1 - 1e-9));
    EXPECT_LE(watts, 900);
  }
}

TEST(Lockstep, WhatCannotBeCombinedSaysWhy) {
  const auto reason = [](const std::function<void(Scenario&)>& change) {
    Scenario scenario = group_of_four();
    change(scenario);
    const Outcome outcome = evaluate(scenario, toys::trace({TraceRow{0, 10, 10}}));
    EXPECT_EQ(outcome.status, Status::unsupported);
    return outcome.reason;
  };
  EXPECT_EQ(reason([](Scenario& scenario) { scenario.parallel.pp = 2; }),
            "parallel.pp > 1 (batches of several stages that wait for one another) with experts "
            "that several replicas share (parallel.ep above parallel.tp) is not modelled");
  EXPECT_EQ(reason([](Scenario& scenario) {
              scenario.serving.clock.mode = ClockMode::slo;
              scenario.slo.tpot.p95 = Seconds{1};
            }),
            "serving.clock.mode slo (one replica's clock would slow the others) with experts that "
            "several replicas share (parallel.ep above parallel.tp) is not modelled");
}

}  // namespace
}  // namespace engine
