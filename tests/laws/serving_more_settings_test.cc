// Settings that neither a random load nor a mechanism of the list has, on random loads beside three mechanisms: nothing is lost, and the
// closed form equals stepping.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "tests/support/both_ways.h"

namespace engine {
namespace {

using toys::Dice;
using toys::Fleet;
using toys::Switched;

bool any_of(const Switched& on, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(on, [&](const toys::Mechanism* one) {
    return std::ranges::find(names, one->name) != names.end();
  });
}

void vary_host(Fleet& fleet, const Switched& on, Dice& dice) {
  HostSettings& host = fleet.lab.made.scenario.host;
  host.request_latency = Seconds{dice.chance(0.3) ? dice.between(0, 0.02) : 0};
  host.graph_sizes = dice.one_of<GraphSizes>();
  host.step_per_sequence = Seconds{dice.chance(0.3) ? dice.between(0, 1e-4) : 0};
  // Where steps may become shorter inside a stretch, when tokens are told is an estimate.
  if (!any_of(on, {"shared experts"}) && dice.chance(0.3)) {
    host.front_end_merges = false;
    host.front_end_per_message = Seconds{std::pow(10, dice.between(-5, -3))};
  }
  // Fitted kernels, in which unequal contexts may take longer.
  if (dice.chance(0.3)) fleet.lab.context.calibration = toys::shared_transfer().get();
}

// When requests are taken in, and when clients hear of answers.
void vary_intervals(Fleet& fleet, std::uint64_t number) {
  Dice dice(55'000'000 + number);
  ServingSettings& serving = fleet.main();
  fleet.lab.made.scenario.host.front_end_merges = dice.chance(0.5);
  serving.stream_interval = dice.chance(0.4) ? dice.whole(2, 20) : 1;
  serving.first_message = dice.one_of<FirstMessage>();
  serving.receive_interval = dice.chance(0.4) ? dice.whole(2, 20) : 1;
  serving.batch_wait = dice.chance(0.4) ? dice.whole(1, 20) : 0;
  serving.batch_wait_share = dice.between(0, 1);
}

void vary_load(Fleet& fleet, Dice& dice) {
  Load& load = fleet.lab.made.scenario.load;
  load.ramp = Seconds{dice.chance(0.3) ? dice.between(0, 0.5) : 0};
  load.trace_speed = dice.chance(0.3) ? dice.between(0.3, 3) : 1;
  load.adapter_skew = dice.chance(0.3) ? dice.between(0, 2) : 0;
  if (dice.chance(0.3)) load.measure = MeasureKind::whole;
  if (dice.chance(0.3)) {
    load.classes.high = {.share = 0.3, .ttft = Seconds{dice.between(0.01, 0.2)}};
    load.classes.low = {.share = 0.3, .tpot = Seconds{dice.between(0.01, 0.2)}};
  }
}

// Who is turned away, given up or sent where.
void vary_fleet(Fleet& fleet, const Switched& on, Dice& dice) {
  ServingSettings& serving = fleet.main();
  const Load& load = fleet.lab.made.scenario.load;
  const bool asks_at_once = load.arrivals == ArrivalKind::closed && load.think_time.value <= 0;
  if (!asks_at_once && dice.chance(0.3)) serving.admission.shed_late = true;
  if (dice.chance(0.2)) {
    serving.router = router_named("least_predicted");
    serving.prediction_error = dice.between(0, 2);
  }
  if (any_of(on, {"failures"}) && dice.chance(0.5)) serving.failures.attempts = dice.whole(1, 3);
  if (any_of(on, {"scaling"}) && dice.chance(0.7)) {
    serving.scaling.policy =
        dice.chance(0.5) ? ScalingPolicy::predictive : ScalingPolicy::scheduled;
    serving.scaling.min_replicas = dice.whole(1, serving.replicas);
    serving.scaling.schedule = "0:1, 0.3:2, 0.7:" + std::to_string(serving.replicas) + ", 1.5:1";
  }
  for (TierSetup& tier : fleet.below) {
    if (dice.chance(0.3)) tier.starts_per_token = dice.between(0, 1e-6);
    if (dice.chance(0.3)) tier.seconds_per_token_alone = dice.between(0, 4e-6);
  }
  if (!any_of(on, {"images"}) && dice.chance(0.3)) fleet.encode_seconds = {0.01, 0.015, 0.018};
}

// Those that read have an engine of their own.
void vary_readers(Fleet& fleet, Dice& dice) {
  const std::int64_t replicas = dice.whole(1, 3), tokens = dice.whole(4, 300);
  const PolicyName policy = dice.one_of<PolicyName>();
  const bool caches = dice.chance(0.5), another = dice.chance(0.5);
  const Ordering ordering = dice.chance(0.5) ? Ordering::fcfs : Ordering::longest_prefix;
  if (!another) return;
  fleet.change_readers = [=](ServingSettings& readers) {
    readers.scaling = {};
    readers.replicas = replicas;
    readers.max_num_batched_tokens = readers.chunk = tokens;
    if (policy != policy_named("static")) readers.policy = policy;
    readers.prefix_caching = readers.prefix_caching && caches;
    if (readers.preemption == Preemption::as_policy) readers.ordering = ordering;
  };
}

// A model of its own that reads prompts, too, and proposes as many tokens in every step.
void vary_draft(Fleet& fleet, const Switched& on, Dice& dice) {
  fleet.late_reading.again_per_token = dice.chance(0.5) ? 1e-6 : 0;
  if (!any_of(on, {"speculation", "drawn acceptance", "acceptance by class"})) return;
  if (!fleet.lengths.empty() || dice.chance(0.5)) return;
  DraftStep& draft = fleet.draft.emplace();
  draft.model.emplace(fleet.lab.context);
  draft.fixed = Seconds{dice.between(0, 1e-4)};
  draft.rounds.push_back({.queries = 1, .steps = fleet.pace.queries - 1});
  draft.reads_prompts = dice.chance(0.5);
}

enum class Intervals : std::uint8_t { of_one_step, varied };

void expect_case_alike(std::uint64_t number, Intervals intervals) {
  const Switched on = toys::drawn_mechanisms(number, 3);
  Fleet fleet(number);
  if (number % 3 == 0) fleet.keep_states();
  const std::string which = "case " + std::to_string(number) + toys::switch_on(fleet, on);
  vary_host(fleet, on, fleet.dice);
  if (intervals == Intervals::varied) vary_intervals(fleet, number);
  vary_load(fleet, fleet.dice);
  vary_fleet(fleet, on, fleet.dice);
  vary_readers(fleet, fleet.dice);
  vary_draft(fleet, on, fleet.dice);
  toys::expect_both_ways_alike(fleet, which);
}

TEST(ServingMoreSettings, NothingIsLostAndTheClosedFormEqualsStepping) {
  const std::uint64_t first = toys::asked_for("LLMSWEEP_FIRST", 70'000'000);
  for (std::uint64_t number = first; number < first + 100 * toys::cases_of_each(8); ++number) {
    expect_case_alike(number, Intervals::varied);
    ASSERT_FALSE(HasFailure());
  }
}

// KV that lands inside a stretch: its first token is told behind those of the steps before, which the front end has to hand on.
TEST(ServingMoreSettings, WhatLandsIsToldBehindWhatWasMadeBefore) {
  for (const std::uint64_t number : {70'000'251, 71'000'162, 72'000'032, 73'000'038, 74'000'213}) {
    expect_case_alike(number, Intervals::of_one_step);
  }
}

// KV that nobody has to carry lands with the last step of its reader, which ends when a step of its writer does: both began when the writer
// set blocks aside.
TEST(ServingMoreSettings, WhatLandsIsToldBeforeWhatIsMadeAtThatMoment) {
  for (const std::uint64_t number : {211'239'379, 211'332'719, 211'524'581}) {
    expect_case_alike(number, Intervals::of_one_step);
  }
}

// Clients who were answered at one moment, up to rounding, ask again in the order of their answers, however long these take to reach them.
TEST(ServingMoreSettings, WhoIsAnsweredFirstAsksFirst) {
  for (const std::uint64_t number :
       {71'002'158, 75'040'357, 75'046'425, 75'070'884, 75'078'508, 75'127'854}) {
    expect_case_alike(number, Intervals::of_one_step);
  }
}

// KV caches that share a way. Whoever starts later pays for it as many times as there are others, and in a closed loop with every round
// again: how steps were summed up must not come into it.
TEST(ServingMoreSettings, WhatSharesAWayForgetsRounding) {
  for (const std::uint64_t number : {75'108'666, 78'092'286, 78'125'210, 170'277'928, 170'621'059,
                                     170'861'434, 210'231'236, 211'038'080}) {
    expect_case_alike(number, Intervals::of_one_step);
  }
}

// A session's next request comes at the very moment at which another session begins: which of the two is read first does not hang on
// rounding.
TEST(ServingMoreSettings, WhoGoesOnComesBeforeWhoBegins) {
  expect_case_alike(210'557'595, Intervals::of_one_step);
}

// All that make way share what they hold, and leave at once: nobody begins again for ever.
TEST(ServingMoreSettings, WhoGoesOnHasWhatTheOthersShared) {
  expect_case_alike(414'001'415, Intervals::of_one_step);
}

}  // namespace
}  // namespace engine
