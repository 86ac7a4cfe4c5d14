// A mechanism that has nothing to do changes nothing, whatever else is on: random fleets with three other mechanisms serve every
// request at the same moments with it and without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/same_rows.h"
#include "tests/support/serving_mechanisms.h"

namespace engine {
namespace {

using toys::Fleet;
using toys::Switched;

struct Neutral {
  std::string_view name;
  void (*switch_on)(Fleet& fleet);
  // Mechanisms that it would take the place of, or that see it.
  std::vector<std::string_view> not_with = {};
};

const std::function<void(const ServingSim&)> kLooksOn = [](const ServingSim&) {};

// Steps propose nothing: each sequence has a pace of its own, of one token.
void switch_on_own_paces(Fleet& fleet) {
  for (SequencePaces::OfClass& of : fleet.own_paces.classes) of.means = {Pace{}};
}

const std::vector<Neutral>& neutrals() {
  static const std::vector<Neutral> all{
      {"replicas that outlive the run",
       [](Fleet& fleet) {
         fleet.main().failures = {.mean_time_to_failure = Seconds{1e15},
                                  .mean_time_to_repair = Seconds{1},
                                  .attempts = 1000};
       },
       {"failures"}},
      {"a timetable of all replicas",
       [](Fleet& fleet) {
         fleet.main().scaling = {.policy = ScalingPolicy::scheduled,
                                 .schedule = "0:" + std::to_string(fleet.main().replicas)};
       },
       {"scaling"}},
      {"tiers that are too slow",
       [](Fleet& fleet) {
         for (TierSetup& tier : fleet.below) tier = {100, 1e6, 1e6};
       },
       {"tiers"}},
      {"cache that never grows old",
       [](Fleet& fleet) {
         fleet.main().retention = {.policy = Retention::ttl, .ttl = Seconds{1e12}};
       },
       {"retention"}},
      {"a queue of any length",
       [](Fleet& fleet) { fleet.main().admission.max_queue = 1'000'000'000; },
       {"shedding"}},
      {"figures that nobody asks for",
       [](Fleet& fleet) { fleet.lab.purpose = RunPurpose::few_figures; }},
      {"turns without others",
       [](Fleet& fleet) { fleet.turns = {.period = 0.37, .offset = 0.1, .length = 0.37}; },
       {"turns"}},
      {"encoders of no time",
       [](Fleet& fleet) { fleet.lab.encoders = {.replicas = 1, .seconds = {0}}; },
       // Who passes them joins the queue within the same moment, not at the same time: KV may leave a moment later.
       {"images", "shedding", "prefill pool", "blocks set aside", "adapters in two pools"}},
      {"one length of proposals",
       [](Fleet& fleet) {
         DraftStep draft;
         draft.model.emplace(fleet.lab.context);
         draft.reads_prompts = false;
         fleet.lengths.push_back({.pace = {}, .expected = 1, .draft = draft});
       },
       {"speculation", "drawn acceptance", "acceptance by class", "length by load"}},
      {"draws of one token",
       [](Fleet& fleet) {
         switch_on_own_paces(fleet);
         fleet.own_paces.drawn = true;
       },
       {"speculation", "drawn acceptance", "acceptance by class", "length by load"}},
      {"classes of one token",
       [](Fleet& fleet) {
         switch_on_own_paces(fleet);
         fleet.own_paces.by_class = true;
       },
       {"speculation", "drawn acceptance", "acceptance by class", "length by load"}},
      {"a timeline",
       [](Fleet& fleet) {
         Seconds& timeline = fleet.lab.made.scenario.output.timeline;
         timeline = timeline.value > 0 ? Seconds{0} : Seconds{0.0123};
       }},
      {"somebody who looks on", [](Fleet& fleet) { fleet.lab.before_event = &kLooksOn; }},
      {"another router of one replica",
       [](Fleet& fleet) {
         if (fleet.main().replicas > 1 || fleet.lab.shard.lockstep) return;
         const auto routers = std::int64_t(enum_names(RouterName{}).size());
         fleet.main().router = RouterName((std::int64_t(fleet.main().router) + 1) % routers);
       }},
  };
  return all;
}

bool goes_with(const Neutral& neutral, const Switched& on) {
  return std::ranges::none_of(on, [&](const toys::Mechanism* mechanism) {
    return std::ranges::find(neutral.not_with, mechanism->name) != neutral.not_with.end();
  });
}

TEST(ServingNeutral, WhatHasNothingToDoChangesNothing) {
  const std::uint64_t first = toys::asked_for("LLMSWEEP_FIRST", 3'000'000);
  const std::uint64_t cases = toys::cases_of_each(3) * 100;
  std::int64_t compared = 0;
  for (std::uint64_t number = first; number < first + cases; ++number) {
    const Switched on = toys::drawn_mechanisms(number, 3);
    const auto rows_with = [&](const Neutral* neutral) {
      Fleet fleet(number);
      if (number % 3 == 0) fleet.keep_states();
      toys::switch_on(fleet, on);
      if (neutral != nullptr) neutral->switch_on(fleet);
      fleet.run(false);
      return fleet.lab.rows;
    };
    const std::vector<RequestRow> without = rows_with(nullptr);
    for (const Neutral& neutral : neutrals()) {
      if (!goes_with(neutral, on)) continue;
      std::string which = "case " + std::to_string(number) + " with " + std::string(neutral.name);
      for (const toys::Mechanism* mechanism : on) which += ", " + std::string(mechanism->name);
      toys::expect_same(without, rows_with(&neutral), which);
      ++compared;
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace engine
