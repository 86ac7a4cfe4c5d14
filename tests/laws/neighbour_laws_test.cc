// Two models on the same devices: what sharing must cost, whatever the models are.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/neighbours.h"
#include "engine/serving/sequences/turns.h"
#include "engine/sharing/shared_device.h"
#include "tests/support/twins.h"

namespace engine {
namespace {

using toys::figures, toys::served_twins, toys::twins;

Metrics alone(Scenario scenario) {
  scenario.neighbour.present = false;
  // With as much memory as beside the neighbour.
  const SharingSettings& sharing = scenario.sharing;
  const double memory = sharing.mode == SharingMode::mig ? sharing.share : sharing.memory;
  if (!sharing.swap) scenario.device.memory_capacity = scenario.device.memory_capacity * memory;
  if (scenario.draft.present) scenario.draft.deployment.device = scenario.device;
  return figures(scenario);
}

// Alone a model has as much memory as beside the other: what is compared batches alike.
TEST(Neighbours, AloneAModelHasAsMuchMemoryAsBesideTheOther) {
  struct Case {
    SharingMode mode;
    int evaluations;
  };
  // On multiprocessors of its own it is another machine.
  for (const Case& each : {Case{SharingMode::time_slices, 4}, Case{SharingMode::streams, 4},
                           Case{SharingMode::spatial, 6}}) {
    const Scenario scenario = served_twins(each.mode);
    for (const double memory : {0.5, 0.2, 0.1, 0.05, 0.02}) {  // some of these are too little
      Scenario other = scenario;
      other.sharing.memory = memory;
      const Outcome shared = evaluate(other);
      if (shared.status != Status::ok) continue;
      EXPECT_EQ(shared.metrics.sharing_slowdown, shared.metrics.tpot / alone(other).tpot) << memory;
    }
    int evaluations = 0;
    Outcome outcome;
    evaluate_neighbours(
        scenario, MessageLine{},
        [&](const OneOfTwo& one, const NeighbourEffect&, Outcome& made) {
          ++evaluations;
          evaluate_into(one.scenario, made);
        },
        outcome);
    EXPECT_EQ(evaluations, each.evaluations) << name_of(each.mode);
  }
}

// Whatever rounds it takes the two to agree, intervals are simulated once, of what they agreed on.
TEST(Neighbours, IntervalsAreThoseOfTheLastRound) {
  for (const bool searches : {false, true}) {
    Scenario scenario = served_twins(SharingMode::streams);
    if (searches) scenario.capacity.slo.ttft.p95 = Seconds{0.5};
    const Metrics without = figures(scenario);
    EXPECT_TRUE(std::isnan(without.tpot_low.value));
    scenario.output.intervals = true;
    const Metrics with = figures(scenario);
    EXPECT_EQ(with.tpot, without.tpot);
    EXPECT_LT(with.tpot_low, with.tpot);
    EXPECT_GT(with.tpot_high, with.tpot);
    int with_intervals = 0;
    Outcome outcome;
    evaluate_neighbours(
        scenario, MessageLine{},
        [&](const OneOfTwo& one, const NeighbourEffect&, Outcome& made) {
          if (one.scenario.output.intervals) ++with_intervals;
          evaluate_into(one.scenario, made);
        },
        outcome);
    EXPECT_EQ(with_intervals, 1);
  }
}

TEST(Neighbours, TwinsThatTakeTurnsForFreeAreTwiceAsSlow) {
  const Scenario scenario = twins(SharingMode::time_slices);
  const Metrics shared = figures(scenario);
  EXPECT_NEAR(shared.sharing_slowdown, 2, 1e-9);
  EXPECT_NEAR(shared.neighbour_slowdown, 2, 1e-9);
  const Metrics single = alone(scenario);
  EXPECT_NEAR(shared.step_time.value, 2 * single.step_time.value, 1e-12);
  EXPECT_NEAR(shared.sharing_time.value, single.step_time.value, 1e-12);
  EXPECT_NEAR(shared.output.value + shared.neighbour_output.value, single.output.value, 1e-6);
  EXPECT_EQ(shared.devices, single.devices);
}

TEST(Neighbours, ChangingTurnsTakesItsTimeFromBoth) {
  Scenario scenario = twins(SharingMode::time_slices);
  scenario.sharing.slice = Seconds{2e-3};
  scenario.sharing.switch_time = Seconds{0.5e-3};
  // Of every 5 ms each has two.
  EXPECT_NEAR(figures(scenario).sharing_slowdown, 2.5, 1e-9);
  scenario.sharing.share = 0.8;
  const Metrics uneven = figures(scenario);
  EXPECT_NEAR(uneven.sharing_slowdown, 5.0 / 4 / 0.8, 1e-9);
  EXPECT_NEAR(uneven.neighbour_slowdown, 5.0 / 4 / 0.2, 1e-9);
}

TEST(Neighbours, ALittleMoreOfTheTurnsIsALittleFaster) {
  Scenario scenario = twins(SharingMode::time_slices);
  scenario.sharing.slice = Seconds{2e-3};
  scenario.sharing.switch_time = Seconds{0.2e-3};
  scenario.host.kernel_gap = Seconds{0.5e-6};  // so that either leaves something to the other
  double before = 0;
  for (double share = 0.5; share < 0.995; share += 0.005) {
    scenario.sharing.share = share;
    const double speed = 1 / figures(scenario).sharing_slowdown;
    if (before > 0) {
      EXPECT_GE(speed, before - 1e-12) << share;
      EXPECT_LT(speed, before + 0.015) << share;
    }
    before = speed;
  }
}

TEST(Neighbours, SwappedWeightsComeOverTheHostLinkAtEveryTurn) {
  Scenario scenario = twins(SharingMode::time_slices);
  scenario.sharing.swap = true;
  scenario.sharing.slice = Seconds{10};
  const Metrics shared = figures(scenario);
  const double start = (scenario.device.launch_latency + scenario.device.host_link.latency).value;
  const double swap = shared.weights.value / 20e9 + start;
  EXPECT_NEAR(shared.swap_time.value, swap, 1e-9);
  EXPECT_NEAR(shared.sharing_slowdown, 2 * (20 + 2 * swap) / 20, 1e-9);
  // Either has the whole memory.
  EXPECT_EQ(shared.kv_capacity_tokens, alone(scenario).kv_capacity_tokens);
}

TEST(Neighbours, MemoryIsDividedUnlessWeightsAreSwapped) {
  Scenario scenario = twins(SharingMode::streams);
  scenario.sharing.memory = 0.7;
  const Metrics shared = figures(scenario);
  Scenario by_itself = scenario;
  by_itself.neighbour.present = false;
  EXPECT_LT(shared.kv_capacity_tokens, figures(by_itself).kv_capacity_tokens);
  EXPECT_LT(shared.neighbour_kv_tokens, shared.kv_capacity_tokens);
  scenario.sharing.memory = 0.01;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason_class, ReasonClass::memory) << outcome.reason;
}

TEST(Neighbours, NobodyIsFasterBesideAnotherAndTogetherTheyDoLittleMoreThanOne) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
      Scenario scenario = twins(mode);
      scenario.neighbour.step = {.phase = phase, .batch = 2, .context = 500, .prompt = 2000};
      const Metrics shared = figures(scenario);
      EXPECT_GE(shared.sharing_slowdown, 1 - 1e-9) << name_of(mode);
      EXPECT_GE(shared.neighbour_slowdown, 1 - 1e-9) << name_of(mode);
      if (mode == SharingMode::mig) continue;  // halves have their own bandwidth and cache
      EXPECT_LE(1 / shared.sharing_slowdown + 1 / shared.neighbour_slowdown, 1.22 + 1e-9)
          << name_of(mode) << " " << name_of(phase);
    }
  }
}

// Whatever proposes is slowed down with the model it proposes for, and has the same part of the devices.
TEST(Neighbours, DraftsAreOnTheSamePartOfTheDevices) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    for (const SpeculationMethod method :
         {SpeculationMethod::ngram, SpeculationMethod::draft_model}) {
      Scenario scenario = served_twins(mode);
      scenario.load.rate = scenario.neighbour.load.rate = RequestsPerSecond{5};
      const double plain = figures(scenario).tpot.value;
      scenario.speculation = {.method = method, .tokens = 3, .acceptance = "0.8"};
      scenario.draft.present = method == SpeculationMethod::draft_model;
      scenario.draft.deployment = scenario;
      scenario.draft.deployment.model.layers = 1;
      const Metrics shared = figures(scenario), by_itself = alone(scenario);
      EXPECT_GE(shared.sharing_slowdown, 1 - 1e-9) << name_of(mode);
      EXPECT_NEAR(shared.sharing_slowdown, shared.tpot / by_itself.tpot, 1e-9) << name_of(mode);
      EXPECT_EQ(shared.accepted_tokens_per_step, by_itself.accepted_tokens_per_step);
      EXPECT_LT(shared.tpot.value, plain) << name_of(mode);
      scenario.neighbour.load.rate = RequestsPerSecond{1e-3};
      scenario.neighbour.load.requests = 20;
      if (mode == SharingMode::time_slices || mode == SharingMode::streams) {
        EXPECT_NEAR(figures(scenario).sharing_slowdown, 1, 0.01) << name_of(mode);
      }
    }
  }
  Scenario apart = served_twins(SharingMode::streams);
  apart.speculation = {.method = SpeculationMethod::draft_model, .tokens = 3, .acceptance = "0.8"};
  apart.draft.present = true;
  apart.draft.deployment = apart;
  apart.draft.deployment.device.memory_bandwidth = apart.device.memory_bandwidth * 2;
  EXPECT_EQ(evaluate(apart).reason,
            "a draft on other devices than the two models share is not modelled");
}

TEST(Neighbours, InASliceOfItsOwnTheOthersWorkIsNotNoticed) {
  Scenario scenario = twins(SharingMode::mig);
  const Metrics quiet = figures(scenario);
  scenario.neighbour.step.batch = 64;
  const Metrics busy = figures(scenario);
  EXPECT_EQ(quiet.step_time, busy.step_time);
  EXPECT_GT(busy.neighbour_step_time, quiet.neighbour_step_time);
}

// Kernels of two streams wait for one another: short ones suffer beside long ones.
TEST(Neighbours, InStreamsShortKernelsWaitForLongOnes) {
  Scenario scenario = twins(SharingMode::streams);
  const double beside_decode = figures(scenario).sharing_slowdown;
  scenario.neighbour.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 4000};
  const Metrics beside_prompts = figures(scenario);
  EXPECT_GT(beside_prompts.sharing_slowdown, 1.5 * beside_decode);
  EXPECT_LT(beside_prompts.neighbour_slowdown, beside_decode);
}

TEST(ServedNeighbours, AnIdleOneIsNotNoticedAndABusyOneIs) {
  Scenario scenario = served_twins(SharingMode::time_slices);
  scenario.sharing.memory = 0.5;
  double before = 1;
  for (const double rate : {0.01, 5.0, 20.0, 80.0}) {
    scenario.neighbour.load.rate = RequestsPerSecond{rate};
    const Metrics shared = figures(scenario);
    if (rate < 0.1) {
      EXPECT_NEAR(shared.sharing_slowdown, 1, 0.01);
    }
    EXPECT_GE(shared.sharing_slowdown, before - 0.01) << rate;
    EXPECT_LE(shared.sharing_slowdown, 2.2) << rate;
    EXPECT_GE(shared.neighbour_utilization, 0) << rate;
    before = shared.sharing_slowdown;
  }
  EXPECT_GT(before, 1.3);
}

// Either model keeps its step times, and what it did alone, from one evaluation to the next; that must not show in a single bit.
TEST(ServedNeighbours, DoNotShowWhatRanBefore) {
  Scratch scratch;
  WorkMeter work;
  for (const SharingMode mode : {SharingMode::time_slices, SharingMode::spatial}) {
    const Scenario scenario = served_twins(mode);
    const Outcome fresh = evaluate(scenario);
    Scenario other = scenario, in_another_way = scenario, larger = scenario;
    other.load.rate = other.load.rate * 1.5;
    other.neighbour.load.lengths.prompt += 7;
    in_another_way.sharing.share = 0.3;
    larger.neighbour.deployment.model.layers += 1;
    for (const Scenario& before : {other, in_another_way, larger, scenario}) {
      Outcome outcome;
      evaluate_into(before, {}, outcome, work, scratch);
      evaluate_into(scenario, {}, outcome, work, scratch);
      EXPECT_EQ(outcome.kernels, fresh.kernels);
      EXPECT_EQ(outcome.metrics.ttft_p99.value, fresh.metrics.ttft_p99.value);
      EXPECT_EQ(outcome.metrics.sharing_slowdown, fresh.metrics.sharing_slowdown);
      EXPECT_EQ(outcome.metrics.neighbour_tpot.value, fresh.metrics.neighbour_tpot.value);
    }
  }
}

// Of the neighbour less is counted than of the main model: what rows have of it is the same.
TEST(ServedNeighbours, TwinsHaveTheSameFigures) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    const Metrics twins = figures(served_twins(mode));
    EXPECT_EQ(twins.neighbour_ttft, twins.ttft) << name_of(mode);
    EXPECT_EQ(twins.neighbour_tpot, twins.tpot) << name_of(mode);
    EXPECT_EQ(twins.neighbour_tpot_p99, twins.tpot_p99) << name_of(mode);
    EXPECT_EQ(twins.neighbour_throughput, twins.throughput) << name_of(mode);
    EXPECT_EQ(twins.neighbour_utilization, twins.utilization) << name_of(mode);
    EXPECT_TRUE(twins.itl_p99 > twins.itl_p50 && twins.e2e_p99 > twins.ttft) << name_of(mode);
  }
}

// The highest rate is one at which both were slow together: who asks for that rate is told the same.
TEST(ServedNeighbours, AtItsCapacityARunSaysWhatTheSearchSaid) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::spatial, SharingMode::streams}) {
    Scenario scenario = served_twins(mode);
    scenario.load.requests = 2000;
    scenario.capacity.slo.tpot.p95 = Seconds{5 * alone(scenario).tpot.value};
    scenario.capacity.slo.ttft.p95 = Seconds{2};
    const Metrics found = figures(scenario);
    scenario.load.rate = found.capacity;
    scenario.capacity = {};
    const Metrics there = figures(scenario);
    EXPECT_NEAR(there.tpot_p95.value, found.tpot_p95.value, 0.06 * found.tpot_p95.value);
    EXPECT_NEAR(there.sharing_slowdown, found.sharing_slowdown, 0.06 * found.sharing_slowdown);
    EXPECT_GT(found.sharing_slowdown, 1);
  }
}

TEST(ServedNeighbours, StepsAndWaitingAddUpToTheTimeThatWasBusy) {
  const Outcome outcome = evaluate(served_twins(SharingMode::time_slices));
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const Metrics& figures = outcome.metrics;
  double main = 0, theirs = 0;
  for (const KernelRow& row : outcome.kernels) {
    (row.role == DeploymentRole::neighbour ? theirs : main) += row.work.exposed().value;
  }
  EXPECT_NEAR(main, (figures.utilization * figures.makespan).value, 0.05 * main);
  EXPECT_GT(theirs, 0);
  EXPECT_GT(figures.sharing_time.value, 0);
  EXPECT_LT(figures.sharing_time.value, main / 2);
}

// One request at a time, which arrives at any moment of a period: in its turn it runs as if it were alone, otherwise it waits
// for the turn.
TEST(SwappedNeighbours, RequestsWaitForTheirTurn) {
  Scenario scenario = served_twins(SharingMode::time_slices);
  scenario.load.rate = RequestsPerSecond{0.05};
  scenario.load.requests = 300;
  scenario.load.lengths = {.prompt = 10, .output = 2};
  scenario.sharing.swap = true;
  scenario.sharing.slice = Seconds{1};
  fill_roles(scenario);
  const Metrics shared = figures(scenario), single = alone(scenario);
  const double swap = shared.swap_time.value, period = 2 + 2 * swap, away = 1 + 2 * swap;
  // Of a period it waits on average half of the time it is away for, and that as often as it comes then.
  const double wait = away * away / 2 / period;
  EXPECT_NEAR(shared.ttft.value - single.ttft.value, wait, 0.15 * wait);
  EXPECT_LT(shared.ttft_p99.value, single.ttft_p99.value + away + 0.01);
  EXPECT_NEAR(shared.ttft.value, shared.neighbour_ttft.value, 0.3 * wait);
  // KV caches stay and have what the larger model leaves.
  EXPECT_LT(shared.kv_capacity_tokens, single.kv_capacity_tokens);
}

// Long turns wait long, short ones are spent on swapping; a wider link to the host helps.
TEST(SwappedNeighbours, CarryLessTheShorterTheirTurnsAre) {
  const auto throughput = [](double slice, double link) {
    Scenario scenario = served_twins(SharingMode::time_slices);
    scenario.device.host_link.bandwidth = BytesPerSecond{link};
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 32;
    scenario.load.requests = 600;
    scenario.sharing.swap = true;
    scenario.sharing.slice = Seconds{slice};
    fill_roles(scenario);
    return figures(scenario).output.value;
  };
  const double often = throughput(0.1, 20e9), seldom = throughput(1, 20e9);
  EXPECT_LT(often, seldom);
  EXPECT_LT(often, throughput(0.1, 200e9));
  EXPECT_LT(seldom, throughput(1, 200e9));
}

TEST(Turns, ThatAreNeverOverChangeNothing) {
  const Turns always{.period = 2, .length = 2}, halves{.period = 2, .offset = 0.5, .length = 1};
  for (const double now : {0.0, 0.3, 1.999, 2.0, 7.5, 12345.678}) {
    EXPECT_EQ(always.begins(now), now) << now;
  }
  EXPECT_DOUBLE_EQ(halves.begins(0.2), 0.5);
  EXPECT_DOUBLE_EQ(halves.begins(0.7), 0.7);
  EXPECT_DOUBLE_EQ(halves.begins(1.5), 2.5);
  EXPECT_DOUBLE_EQ(halves.begins(4.5), 4.5);
  EXPECT_DOUBLE_EQ(halves.ends(0.7), 1.5);
  EXPECT_EQ(halves.share(), 0.5);
}

TEST(Neighbours, WhatIsNotModelledIsSaid) {
  Scenario streams = twins(SharingMode::streams);
  streams.sharing.swap = true;
  EXPECT_EQ(evaluate(streams).reason,
            "sharing.swap needs models that take turns (sharing.mode: time_slices); under streams "
            "both are in memory");
  Scenario large = twins(SharingMode::time_slices);
  large.neighbour.deployment.model.layers = 800;
  const Outcome outcome = evaluate(large);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_TRUE(outcome.reason.starts_with("neighbour: the model does not fit")) << outcome.reason;
}

}  // namespace
}  // namespace engine
