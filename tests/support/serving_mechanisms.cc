#include "tests/support/serving_mechanisms.h"

#include <algorithm>
#include <cstdlib>

#include "engine/speculation/acceptance.h"

namespace toys {
namespace {

void switch_on_prefill(Fleet& fleet) {
  fleet.two_pools = true;
  fleet.journey.stages = {Stage{.pool = 1, .reads = true, .writes = false},
                          Stage{.pool = 0, .reads = false, .writes = true}};
  fleet.journey.stages[1].carry = {.token = {.sent = fleet.dice.between(0, 1e-3),
                                             .received = fleet.dice.between(0, 1e-3),
                                             .fabric = fleet.dice.chance(0.5) ? 1e-3 : 0},
                                   .latency = fleet.dice.between(0, 1e-3),
                                   .last_share = fleet.dice.chance(0.5) ? 1 : 0.2,
                                   .tells_first_token = fleet.dice.chance(0.5)};
  Carry& carry = fleet.journey.stages[1].carry;
  carry.remakes_first_token = carry.tells_first_token && fleet.dice.chance(0.5);
}

void switch_on_adapters(Fleet& fleet) {
  fleet.lab.made.scenario.load.adapters = 6;
  fleet.adapters = {.slots = 3, .load_seconds = 0.01, .latency = 1e-4};
}

// Up to three positions, of which sequences of each class accept their own share.
void switch_on_own_paces(Fleet& fleet) {
  fleet.pace = {.tokens = 4, .steps = 1, .queries = 4};
  const char* acceptances[] = {"0.9", "0.5 0.4", "0.1"};
  for (std::size_t i = 0; i < kRequestClasses; ++i) {
    const Acceptance accepted = *read_acceptance(acceptances[i]), chances = reached(accepted);
    SequencePaces::OfClass& of = fleet.own_paces.classes[i];
    of.chances.assign(chances.begin(), chances.end());
    for (std::int64_t depth = 0; depth <= 3; ++depth) {
      of.means.push_back(expected_pace(expected_tokens(accepted, depth), depth));
    }
  }
  fleet.lab.made.scenario.load.classes.high.share = 0.3;
  fleet.lab.made.scenario.load.classes.low.share = 0.4;
}

}  // namespace

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all{
      Mechanism{"prefill pool", switch_on_prefill},
      Mechanism{"speculation",
                [](Fleet& fleet) {
                  constexpr Pace paces[] = {{12, 5, 4}, {2, 1, 2}, {7, 3, 3}, {3, 2, 2}};
                  fleet.pace = paces[fleet.dice.whole(0, 3)];
                }},
      Mechanism{"prefix caching", [](Fleet& fleet) { fleet.main().prefix_caching = true; }},
      Mechanism{"tiers",
                [](Fleet& fleet) {
                  fleet.main().prefix_caching = true;
                  fleet.main().tiers.write = fleet.dice.one_of<TierWrite>();
                  // In the order in which they are asked: peers, host, disk, the shared store.
                  fleet.below = {TierSetup{fleet.dice.whole(-20, 20), 5e-7, 1e-6},
                                 {fleet.dice.whole(0, 60), 1e-6, 1e-5},
                                 {fleet.dice.whole(1, 200), 2e-6, 1e-4},
                                 {fleet.dice.whole(-200, 200), 1e-6, 2e-4}};
                }},
      Mechanism{"scaling",
                [](Fleet& fleet) {
                  fleet.main().replicas = fleet.dice.whole(2, 4);
                  fleet.main().scaling = {.policy = ScalingPolicy::reactive,
                                          .min_replicas = fleet.dice.whole(0, 1),
                                          .target = fleet.dice.between(1, 6),
                                          .interval = Seconds{fleet.dice.between(0.1, 0.4)},
                                          .cold_start = Seconds{fleet.dice.between(0, 0.4)},
                                          .cooldown = Seconds{fleet.dice.between(0, 0.5)}};
                }},
      Mechanism{"failures",
                [](Fleet& fleet) {
                  fleet.main().failures = {
                      .mean_time_to_failure = Seconds{fleet.dice.between(0.3, 2)},
                      .mean_time_to_repair = Seconds{fleet.dice.between(0, 0.3)},
                      .attempts = 1000,  // nobody is given up
                      .answers = fleet.dice.one_of<AfterFailure>()};
                }},
      Mechanism{"priorities",
                [](Fleet& fleet) {
                  fleet.main().ordering = Ordering::priority;
                  fleet.main().preemption = Preemption::priority;
                  fleet.lab.made.scenario.load.classes = {.high = {.share = 0.3},
                                                          .low = {.share = 0.4}};
                }},
      Mechanism{"shedding", [](Fleet& fleet) { fleet.main().admission.max_queue = 3; }},
      Mechanism{"blocks set aside",
                [](Fleet& fleet) {
                  switch_on_prefill(fleet);
                  fleet.journey.pushes = true;
                }},
      Mechanism{"drawn acceptance",
                [](Fleet& fleet) {
                  switch_on_own_paces(fleet);
                  fleet.own_paces.drawn = true;
                },
                {"speculation"}},
      Mechanism{"acceptance by class",
                [](Fleet& fleet) {
                  switch_on_own_paces(fleet);
                  fleet.own_paces.by_class = true;
                },
                {"speculation"}},
      Mechanism{"length by load",
                [](Fleet& fleet) {
                  const bool own = fleet.own_paces.drawn || fleet.own_paces.by_class;
                  for (std::int64_t depth = 0; depth <= 3; ++depth) {
                    DraftStep draft;
                    draft.model.emplace(fleet.lab.context);
                    draft.reads_prompts = false;
                    draft.fixed = Seconds{fleet.dice.between(0, 1e-4)};
                    if (depth > 0) draft.rounds.push_back({.queries = 1, .steps = depth});
                    const double expected = 1 + 0.8 * double(depth);
                    const Pace pace =
                        own ? Pace{depth + 1, 1, depth + 1, 3} : changing_pace(expected, depth, 3);
                    fleet.lengths.push_back(
                        {.pace = pace, .expected = expected, .draft = draft, .reads_late = true});
                  }
                  fleet.pace = fleet.lengths.back().pace;
                },
                {"speculation"}},
      Mechanism{"turns",
                [](Fleet& fleet) {
                  const double period = fleet.dice.between(0.05, 0.5);
                  fleet.turns = {.period = period,
                                 .offset = fleet.dice.between(0, 0.3),
                                 .length = period * fleet.dice.between(0.2, 0.9)};
                }},
      Mechanism{"images",
                [](Fleet& fleet) {
                  fleet.lab.encoders = {.replicas = fleet.dice.whole(1, 2),
                                        .seconds = {0.01},
                                        .sending = 1e-3,
                                        .latency = 1e-4};
                  if (fleet.dice.chance(0.5)) fleet.lab.encoders.seconds = {0.01, 0.015, 0.018};
                }},
      Mechanism{"adapters", switch_on_adapters},
      Mechanism{"adapters in two pools",
                [](Fleet& fleet) {
                  switch_on_prefill(fleet);
                  switch_on_adapters(fleet);
                }},
      Mechanism{"retention",
                [](Fleet& fleet) {
                  fleet.main().prefix_caching = true;
                  fleet.main().retention = {.policy = fleet.dice.one_of<Retention>(),
                                            .ttl = Seconds{fleet.dice.between(0.01, 1)}};
                }},
      Mechanism{
          "clock",
          [](Fleet& fleet) { fleet.clock = {.lowest = 0.5, .power_exponent = 2, .limit = 0.01}; }},
      Mechanism{"shared experts",
                [](Fleet& fleet) {
                  Scenario& scenario = fleet.lab.made.scenario;
                  const std::int64_t devices = fleet.dice.chance(0.5) ? 2 : 4;
                  scenario.model = mixture();
                  scenario.parallel = {.dp = devices, .ep = devices};
                  fleet.lab.shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
                  fleet.lab.shard.lockstep = true;
                  fleet.lab.shard.two_halves = fleet.dice.chance(0.3);
                },
                {"clock"}},
      Mechanism{"several answers",
                [](Fleet& fleet) {
                  Load& load = fleet.lab.made.scenario.load;
                  load.samples = fleet.dice.whole(2, 4);
                  load.turns = load.branches = 1;
                  fleet.main().prefix_caching = true;
                }},
      Mechanism{"fair share",
                [](Fleet& fleet) {
                  fleet.main().ordering = Ordering::fair_share;
                  fleet.lab.made.scenario.load.tenants = 3;
                },
                {"priorities"}},
      Mechanism{"a neighbour", [](Fleet& fleet) { fleet.slower = fleet.dice.between(1, 2); }},
  };
  return all;
}

bool together(const Mechanism& one, const Mechanism& other) {
  return std::ranges::find(one.not_with, other.name) == one.not_with.end() &&
         std::ranges::find(other.not_with, one.name) == other.not_with.end();
}

Switched drawn_mechanisms(std::uint64_t number, std::size_t count) {
  const std::vector<Mechanism>& all = mechanisms();
  Dice dice(7'000'000 + number);
  Switched on;
  while (on.size() < count) {
    const Mechanism& drawn = all[std::size_t(dice.whole(0, std::int64_t(all.size()) - 1))];
    const bool fits = std::ranges::all_of(
        on, [&](const Mechanism* other) { return other != &drawn && together(*other, drawn); });
    if (fits) on.push_back(&drawn);
  }
  return on;
}

std::string switch_on(Fleet& fleet, Switched on) {
  std::ranges::sort(on);
  std::string names;
  for (const Mechanism* mechanism : on) {
    mechanism->switch_on(fleet);
    names += ", " + std::string(mechanism->name);
  }
  return names;
}

std::uint64_t asked_for(const char* variable, std::uint64_t usual) {
  const char* const asked = std::getenv(variable);
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : usual;
}

}  // namespace toys
