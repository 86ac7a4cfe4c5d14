// What all replicas of a pool have in common while a run lasts. Each of them refers to it: with thousands of replicas every line
// of memory has to be fetched anew, and these few stay at hand.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/deployment_role.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/figures/step_log.h"
#include "engine/serving/policies/batch_policy.h"
#include "engine/serving/sequences/draft_investment.h"
#include "engine/serving/sequences/sequence_paces.h"
#include "engine/serving/sequences/turns.h"
#include "engine/serving/settings/policy_table.h"
#include "engine/step/step_table.h"

namespace engine {

// How tokens fill blocks: how many they fill, and the place in its block of the next one.
struct BlockFilling {
  std::int64_t size = 1;
  std::int64_t mask = 0;  // of a size that is a power of two; -1: it is not
  int shift = 0;          // likewise

  static BlockFilling of(std::int64_t size) {
    const auto bits = std::uint64_t(size);
    if (!std::has_single_bit(bits)) return {.size = size, .mask = -1};
    return {.size = size, .mask = size - 1, .shift = std::countr_zero(bits)};
  }
  std::int64_t filled(std::int64_t tokens) const {
    return mask >= 0 ? tokens >> shift : tokens / size;
  }
  std::size_t phase(std::int64_t tokens) const {
    if (mask >= 0) return std::size_t(tokens & mask);
    const std::int64_t rest = tokens % size;
    return std::size_t(rest < 0 ? rest + size : rest);
  }
};

// Everything referred to outlives the run.
struct PoolConstants : PolicyConstants {
  Plan* plan = nullptr;
  StepTable* table = nullptr;
  ServingStats* stats = nullptr;
  PoolSums* sums = nullptr;
  StepPlan* scratch_plan = nullptr;  // of all replicas: it is made and carried out in one turn
  std::int64_t lanes = 1;            // of a replica: a pipeline stage each, with a batch in flight
  BlockFilling blocks;
  double front_end_seconds = 0;               // of a token; 0: clients have tokens at once
  std::int64_t window = 0;                    // 0: no sliding window
  std::int64_t state = 0, states = 0;         // of scans, in tokens, as in PoolSetup
  const SequencePaces* own_paces = nullptr;   // as in PoolSetup
  const LateReading* late_reading = nullptr;  // likewise
  StepLog* log = nullptr;                     // where work is written down; null: nowhere
  Turns turns;                                // as in PoolSetup
  DeploymentRole role = DeploymentRole::main;
  DraftPlace draft_place = DraftPlace::last_stage;
  bool takes_turns = false;        // others have the devices in between
  bool picks_length = false;       // of proposals, step by step
  bool uneven = false;             // step times depend on the longest context
  bool carries = false;            // KV comes from another pool, or goes to one
  bool hands_over = false;         // who departs keeps its blocks until its KV is carried away
  bool tells_first_token = false;  // of sequences that come from another pool, when they come
  bool given_up_in_sight = false;  // others find what a replica gives up in a store they share
  bool tells_late =
      false;  // likewise, and tiers below need not hear at once that something was used
  bool counts_room = true;  // KV held, and room that holds nothing, over time: somebody asks for it
  bool audit = false;       // recount everything at every step
  bool answers_come_later = false;  // PolicyEntry
  // Paces are not drawn, no draft reads late, no cache grows old, nobody steps or takes turns with it, and no step is written
  // down.
  bool plain = true;
  std::int64_t most_tokens = 1;                 // of a prompt and its output, in an empty replica
  std::span<const double> encode_seconds = {};  // as in PoolSetup
  double encode_slower = 1;
  double ttft_limit = 0;                // for ordering by slack
  double seconds_per_prompt_token = 0;  // likewise, and for telling who will be late
  const std::array<double, kRequestClasses>* class_limits = nullptr;  // where there are classes
  double seconds_to_read_a_token = 0;  // what is not worth loading is read again
  std::uint64_t seed = 0;
};

}  // namespace engine
