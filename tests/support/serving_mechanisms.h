// Mechanisms of a fleet, each to be switched on in random cases of one pool or of two.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/serving_laboratory.h"

namespace toys {

// A random case of one pool, or of two, with nothing switched on.
struct Fleet {
  Laboratory lab;
  Dice dice;
  ServingSettings readers;
  bool two_pools = false;
  Journey journey;
  Pace pace;
  TierSetups below{};
  SequencePaces own_paces;
  std::vector<DraftLength> lengths;
  LateReading late_reading = {.least = 1e-4, .per_token = 1e-6, .prompt = 50, .output = 50};
  Turns turns;
  double slower = 1;
  AdapterCache::Setup adapters{.slots = 0};
  ClockChoice clock;
  std::int64_t state = 0;  // blocks of a state of scans
  // Of those that read for others; 0: as many as the others have.
  std::int64_t readers_blocks = 0, readers_seats = 0;
  std::function<void(ServingSettings&)> change_readers;  // what else they have of their own
  std::vector<double> encode_seconds;  // where those that read prompts encode images themselves
  std::optional<DraftStep> draft;      // where its length is not picked

  explicit Fleet(std::uint64_t number) : lab(random_case(number)), dice(88'000'000 + number) {
    ServingSettings& serving = lab.made.scenario.serving;
    serving.prefix_caching = false;
    serving.replicas = dice.whole(1, 3);
    serving.ordering = Ordering::fcfs;
    if (serving.policy == policy_named("static")) serving.policy = policy_named("sarathi");
    lab.made.scenario.load.priorities = 1;
  }
  ServingSettings& main() { return lab.made.scenario.serving; }
  // A model with scans, whose prefixes are cached.
  void keep_states() {
    main().prefix_caching = true;
    state = dice.whole(1, 4);
  }
  std::int64_t state_tokens() { return state * main().block_size; }
  // Everybody has room for a state besides.
  Pace beside_state(Pace one) {
    if (state > 0) one.room = one.ahead() + state_tokens();
    return one;
  }

  ServingStats::Summary run(bool stepping) {
    main().stepping = stepping;
    readers = main();
    if (readers_blocks > 0) readers.kv_blocks = readers_blocks;
    if (readers_seats > 0) readers.max_num_seqs = readers_seats;
    if (change_readers) change_readers(readers);
    PoolSetup writing = lab.pool();
    writing.pace = beside_state(pace);
    writing.state = writing.states = state_tokens();
    writing.tiers = below;
    writing.turns = turns;
    writing.slower = slower;
    writing.adapters = adapters;
    writing.clock = clock;
    if (own_paces.drawn || own_paces.by_class) writing.own_paces = &own_paces;
    std::vector<DraftLength> longer = lengths;
    for (DraftLength& length : longer) length.pace = beside_state(length.pace);
    if (draft) writing.draft = &*draft;
    if (!lengths.empty()) {
      writing.lengths = longer;
      writing.draft = &lengths.back().draft;
      writing.late_reading = &late_reading;
    }
    // Replicas that share experts come together.
    const std::int64_t unit = lab.shard.lockstep ? lab.shard.expert_replicas : 1;
    writing.unit = unit;
    writing.replicas *= unit;
    std::vector<PoolSetup> pools{writing};
    if (two_pools) {
      if (state > 0) journey.stages[1].carry.state = {.sent = 1e-3, .received = 5e-4};
      pools.push_back({.settings = readers,
                       .context = lab.context,
                       .kv_blocks = readers.kv_blocks,
                       .replicas = readers.replicas * unit,
                       .unit = unit,
                       .tiers = readers.prefix_caching ? below : TierSetups{},
                       .adapters = adapters,
                       .longest = lab.made.scenario.model.max_context,
                       .pace = beside_state({}),
                       .state = state_tokens(),
                       .states = state_tokens(),
                       .role = DeploymentRole::prefill});
    }
    pools.back().encode_seconds = encode_seconds;
    return lab.run(pools, journey);
  }
};

struct Mechanism {
  std::string_view name;
  void (*switch_on)(Fleet& fleet);
  // What it is refused with: see the refusals of task serve.
  std::vector<std::string_view> not_with = {};
};

const std::vector<Mechanism>& mechanisms();
bool together(const Mechanism& one, const Mechanism& other);

// In any order.
using Switched = std::vector<const Mechanism*>;
// So many, drawn at random, that go together.
Switched drawn_mechanisms(std::uint64_t number, std::size_t count);
// Switches them on in the order of their list, in which those come later that look at what is on. Returns their names.
std::string switch_on(Fleet& fleet, Switched on);

// What the environment says of a variable, or else the usual.
std::uint64_t asked_for(const char* variable, std::uint64_t usual);
// With more cases: LLMSWEEP_CASES=200 llmsweep_tests --gtest_filter='ServingPairs.*'
inline std::uint64_t cases_of_each(std::uint64_t usual) {
  return asked_for("LLMSWEEP_CASES", usual);
}

}  // namespace toys
