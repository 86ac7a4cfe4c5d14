// Every two mechanisms of a fleet together, on random loads: nothing is lost, requests inside are as many as arrive in the
// time they stay, and the closed form equals stepping.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/both_ways.h"

namespace engine {
namespace {

using toys::asked_for;
using toys::cases_of_each;
using toys::expect_both_ways_alike;
using toys::Fleet;
using toys::Mechanism;
using toys::mechanisms;
using toys::Switched;
using toys::together;

void expect_both_ways_alike(std::uint64_t number, const Switched& on) {
  Fleet fleet(number);
  expect_both_ways_alike(fleet, on, std::to_string(number));
}

TEST(ServingPairs, NothingIsLostAndTheClosedFormEqualsStepping) {
  const std::uint64_t cases = cases_of_each(8);
  const std::vector<Mechanism>& all = mechanisms();
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      if (!together(all[i], all[j])) continue;
      for (std::uint64_t n = 0; n < cases; ++n) {
        expect_both_ways_alike(number++, i == j ? Switched{&all[i]} : Switched{&all[i], &all[j]});
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(number, 1000);
}

const Mechanism& mechanism_named(std::string_view name) {
  return *std::ranges::find(mechanisms(), name, &Mechanism::name);
}

// KV that comes or goes inside a stretch finds the cache as the steps before it have left it: what those needed is gone.
TEST(ServingPairs, StepsTakeFromTheCacheBeforeWhatComesAfterThem) {
  for (const std::uint64_t number : {2526, 2527, 2528, 2529}) {
    expect_both_ways_alike(
        number, {&mechanism_named("prefix caching"), &mechanism_named("blocks set aside")});
  }
}

// Sequences with blocks do not wait for adapters of others that wait for blocks.
TEST(ServingPairs, AdaptersComeBeforeBlocks) {
  for (const std::uint64_t number : {6310, 6311, 6312, 6313}) {
    expect_both_ways_alike(
        number, {&mechanism_named("speculation"), &mechanism_named("adapters in two pools")});
  }
}

// The same of models with scans, whose sequences have states and leave some in the cache.
TEST(ServingPairs, StatesGoWithEveryMechanism) {
  const std::uint64_t cases = cases_of_each(16);
  std::uint64_t number = 500'000;
  double found = 0;
  for (const Mechanism& mechanism : mechanisms()) {
    for (std::uint64_t n = 0; n < cases; ++n) {
      Fleet fleet(number++);
      fleet.keep_states();
      expect_both_ways_alike(fleet, {&mechanism}, std::to_string(number - 1));
      for (const RequestRow& row : fleet.lab.rows) found += double(row.cached_tokens);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(found, 10'000);
}

void expect_case_alike(std::uint64_t number, std::size_t together_at_once) {
  Fleet fleet(number);
  if (number % 3 == 0) fleet.keep_states();
  expect_both_ways_alike(fleet, toys::drawn_mechanisms(number, together_at_once),
                         std::to_string(number));
}

// Equal requests end, arrive and are encoded at the same moments on several replicas, up to rounding, which differs between the two
// ways: whoever comes first does so by rule.
TEST(ServingPairs, WhatHappensAtOneMomentHasOneOrder) {
  for (const std::uint64_t number : {1'019'904, 1'037'226, 1'046'730}) expect_case_alike(number, 4);
  // After a failure as well: who arrived at one moment goes on by number.
  expect_case_alike(2'018'283, 5);
}

// Whoever hands a request over plans after who goes on with it, in whose long stretch this moment is no event yet: the request may come
// back at once, where nobody has kept blocks for it.
TEST(ServingPairs, WhoHandsOverPlansAfterWhoGoesOn) { expect_case_alike(2'037'472, 5); }

// Who made way for those that run does not come in before they have gone on: it would be put back for ever.
TEST(ServingPairs, WhoMadeWayComesInAfterThoseThatRun) { expect_case_alike(2'052'892, 5); }

// KV caches of equal requests leave at one moment and share a fabric: a head start of a rounding error would grow.
TEST(ServingPairs, AHeadStartOfARoundingErrorDoesNotGrow) { expect_case_alike(1'031'294, 4); }

// Nor does one in the time for which a prompt was read while others shared the way; and that leaves idle time before it to others.
TEST(ServingPairs, ReadingForARoundingErrorLessIsNothing) {
  for (const std::uint64_t number : {8'044'348, 8'204'379}) expect_case_alike(number, 6);
  expect_case_alike(10'103'431, 7);
}

// Where everyone made way, nobody who waits keeps blocks for what was loaded from below.
TEST(ServingPairs, WhatWasLoadedIsLetGoWhereEveryoneMadeWay) {
  for (const std::uint64_t number : {13'409'807, 14'213'189}) expect_case_alike(number, 4);
  expect_case_alike(14'822'271, 5);
}

// Nor do they where the only one that runs lacks blocks: it would be put back, let in again after the next load, and so on for ever.
TEST(ServingPairs, WhoRunsDoesNotMakeWayForWhatWasLoaded) {
  expect_case_alike(91'120'326, 4);
  for (const std::uint64_t number : {91'120'326, 91'160'976}) expect_case_alike(number, 5);
}

// Who waited for room to load, and has it now, no longer keeps others from landing.
TEST(ServingPairs, WhoLoadsKeepsNobodyFromLanding) { expect_case_alike(130'473'668, 4); }

// What has come free is there to load into from the next step on.
TEST(ServingPairs, WhatWasLetGoIsRoomToLoadInto) { expect_case_alike(95'024'449, 4); }

// Everyone made way for somebody who waits for room to load: that is looked for again, and whoever has landed takes a seat. Nobody would
// wake the replica.
TEST(ServingPairs, WhereEveryoneMadeWayRoomIsLookedForAgain) { expect_case_alike(91'161'333, 4); }

// A failure has taken its answer, but a store still has KV of it, under the key that the next turn asks for: it is no part of the prompt
// that is read again.
TEST(ServingPairs, ALostAnswerIsNoPartOfItsPrompt) { expect_case_alike(91'362'145, 5); }

// Where somebody makes way there is a seat, which whoever has landed takes at the next step.
TEST(ServingPairs, WhoHasLandedTakesTheSeatOfWhoMadeWay) { expect_case_alike(1'038'608, 4); }

// The clock of a step follows from what it attends to, not from where the stretch began that it is part of.
TEST(ServingPairs, AStepHasOneClockWhereverItsStretchBegan) {
  for (const std::uint64_t number : {5'000'143, 5'083'651, 5'177'375}) expect_case_alike(number, 5);
}

// Replicas that share a store find there what others have given up since, in the order in which they did.
TEST(ServingPairs, WhatIsGivenUpIsSeenFromThenOn) {
  for (const std::uint64_t number : {2'129'451, 5'197'760}) expect_case_alike(number, 5);
}

// So do those whose steps are shared, of what was given up because of its age.
TEST(ServingPairs, WhatExpiresIsSeenFromThenOn) {
  const std::uint64_t first = asked_for("LLMSWEEP_FIRST", 40'000'000);
  for (std::uint64_t number = first; number < first + 50 * cases_of_each(8); ++number) {
    Fleet fleet(number);
    fleet.main().prefix_caching = true;
    fleet.main().tiers.write = TierWrite::eviction;
    fleet.below[std::size_t(TierName::store)] = {1000, 1e-7, 1e-5};
    fleet.main().retention = {.policy = Retention::ttl,
                              .ttl = Seconds{fleet.dice.between(0.001, 0.2)}};
    expect_both_ways_alike(fleet, {&mechanism_named("shared experts")}, std::to_string(number));
    ASSERT_FALSE(HasFailure());
  }
}

// They do so inside long stretches, beside whatever else is on.
TEST(ServingPairs, AStoreHasWhatEveryStepGaveUp) {
  const auto share_a_store = [](Fleet& fleet) {
    fleet.main().prefix_caching = true;
    fleet.main().replicas = fleet.dice.whole(2, 3);
    fleet.main().tiers.write = TierWrite::eviction;
    fleet.below[std::size_t(TierName::store)] = {fleet.dice.whole(20, 200), 1e-6, 1e-5};
  };
  std::uint64_t number = 600'000;
  double found = 0;
  for (const Mechanism& mechanism : mechanisms()) {
    if (mechanism.name == "tiers") continue;
    for (std::uint64_t n = 0; n < cases_of_each(16); ++n, ++number) {
      Fleet fleet(number);
      share_a_store(fleet);
      expect_both_ways_alike(fleet, {&mechanism}, std::to_string(number));
      found += fleet.lab.sim.stats().summary().tier_tokens[std::size_t(TierName::store)];
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(found, 1000);
}

// A state that goes with the blocks before it makes room for the next step.
TEST(ServingPairs, AStateThatGoesWithItsBlocksIsRoom) { expect_case_alike(130'326'846, 5); }

// Somebody was put back after the length of proposals was picked: the next step picks one for those that are left.
TEST(ServingPairs, LengthsArePickedForThoseThatDecode) {
  for (const std::uint64_t number : {5'263'400, 5'468'762}) expect_case_alike(number, 5);
}

// With longer proposals a step may not have tokens for all that decode.
TEST(ServingPairs, AnotherLengthIsPlannedFor) { expect_case_alike(6'126'421, 5); }

// Its only token was made before the failure. It is read again for the other answers, and has no more tokens than were asked for.
TEST(ServingPairs, ACompleteAnswerThatIsReadAgainMakesNoMoreTokens) {
  for (const std::uint64_t number : {5'118'783, 6'020'760}) expect_case_alike(number, 5);
}

// Who never has a turn stays inside, and the run says so.
TEST(ServingPairs, WhoeverNeverGoesOnIsCounted) {
  Fleet fleet(1);
  fleet.turns = {.period = std::numeric_limits<double>::infinity()};
  EXPECT_EQ(fleet.run(false).finished, 0);
  EXPECT_GT(fleet.lab.sim.stuck(), 0);
}

// Blocks are held for KV that comes from below, beside three other mechanisms that hold some or take them away: all requests are answered.
TEST(ServingPairs, LoadsFromBelowHoldNobodyUp) {
  const std::uint64_t first = asked_for("LLMSWEEP_FIRST", 50'000'000);
  for (std::uint64_t number = first; number < first + 50 * cases_of_each(8); ++number) {
    Switched on = toys::drawn_mechanisms(number, 3);
    const Mechanism* const tiers = &mechanism_named("tiers");
    if (std::ranges::find(on, tiers) == on.end()) on.push_back(tiers);
    Fleet fleet(number);
    if (number % 3 == 0) fleet.keep_states();
    if (number % 4 == 0) fleet.main().ordering = Ordering::longest_prefix;
    expect_both_ways_alike(fleet, on, std::to_string(number));
    ASSERT_FALSE(HasFailure());
  }
}

// What no mechanism of the list switches on: other orders of the queue, static batches, short prompts that are read where they are
// answered, several calls in a turn, readers with little room.
void vary_settings(Fleet& fleet, const Switched& on) {
  const auto any_of = [&on](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(on, [&](const Mechanism* one) {
      return std::ranges::find(names, one->name) != names.end();
    });
  };
  toys::Dice& dice = fleet.dice;
  constexpr Ordering orderings[] = {Ordering::fcfs, Ordering::longest_prefix, Ordering::slo};
  fleet.main().ordering = orderings[dice.whole(0, 2)];
  if (dice.chance(0.3)) fleet.journey.short_prompt = dice.whole(1, 100);
  Load& load = fleet.lab.made.scenario.load;
  if (load.turns > 1 && dice.chance(0.5)) load.branches = 2;
  if (dice.chance(0.3)) fleet.readers_blocks = 220 / fleet.main().block_size + dice.whole(1, 10);
  if (dice.chance(0.3)) fleet.readers_seats = dice.whole(1, 4);
  // Refused with the others.
  const bool in_batches =
      !any_of({"priorities", "prefill pool", "blocks set aside", "adapters in two pools"});
  if (in_batches && dice.chance(0.3)) fleet.main().policy = policy_named("static");
}

void expect_varied_case_alike(std::uint64_t number) {
  const Switched on = toys::drawn_mechanisms(number, 4);
  Fleet fleet(number);
  if (number % 3 == 0) fleet.keep_states();
  vary_settings(fleet, on);
  expect_both_ways_alike(fleet, on, std::to_string(number));
}

TEST(ServingPairs, OtherSettingsBesideMechanisms) {
  const std::uint64_t first = asked_for("LLMSWEEP_FIRST", 60'000'000);
  for (std::uint64_t number = first; number < first + 50 * cases_of_each(8); ++number) {
    expect_varied_case_alike(number);
    ASSERT_FALSE(HasFailure());
  }
}

// Whoever is first by what the cache has now loads first, however long ago anybody planned.
TEST(ServingPairs, LoadsFollowTheOrderOfNow) { expect_varied_case_alike(97'015'483); }

// Of those that came at one moment and are found alike in the cache the first by number comes in, however often the queue was ordered.
TEST(ServingPairs, WhoIsFoundAlikeComesInByNumber) { expect_varied_case_alike(130'260'654); }

// After a failure a prompt is read again with the answer that was begun, which readers may have no room for.
TEST(ServingPairs, WhatNoReaderHasRoomForIsReadWhereItIsWritten) {
  expect_varied_case_alike(60'002'812);
}

// A state goes with the blocks before it, also where a request that shares less has used it since.
TEST(ServingPairs, NoStateOutlivesTheBlocksBeforeIt) { expect_varied_case_alike(98'029'416); }

// So many mechanisms drawn at random, a third of the cases with states. Others: LLMSWEEP_FIRST=1200000.
void expect_drawn_alike(std::size_t together_at_once, std::uint64_t usual_first) {
  const std::uint64_t first = asked_for("LLMSWEEP_FIRST", usual_first);
  const std::uint64_t cases = cases_of_each(8) * 100;
  for (std::uint64_t number = first; number < first + cases; ++number) {
    expect_case_alike(number, together_at_once);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(ServingPairs, ThreeAtATime) { expect_drawn_alike(3, 3'000'000); }
TEST(ServingPairs, FourAtATime) { expect_drawn_alike(4, 1'000'000); }
TEST(ServingPairs, FiveAtATime) { expect_drawn_alike(5, 2'000'000); }
TEST(ServingPairs, SixAtATime) { expect_drawn_alike(6, 8'000'000); }

}  // namespace
}  // namespace engine
