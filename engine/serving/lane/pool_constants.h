// What all replicas of a pool have in common while a run lasts. It stands in one place to which all refer: with thousands of
// replicas each cache line has to be fetched from memory, but the few lines of this one stay in the cache.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/deployment_role.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/figures/step_log.h"
#include "engine/serving/lane/front_end.h"
#include "engine/serving/policies/batch_policy.h"
#include "engine/serving/sequences/draft_investment.h"
#include "engine/serving/sequences/sequence_paces.h"
#include "engine/serving/sequences/turns.h"
#include "engine/serving/settings/policy_table.h"
#include "engine/step/step_table.h"

namespace engine {

// How tokens fill blocks: how many blocks are full, and which place in its block the next token has.
struct BlockFilling {
  std::int64_t size = 1;
  std::int64_t mask = 0;  // size - 1 where the size is a power of two, else -1
  int shift = 0;          // its logarithm where the size is a power of two

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

// Which part of a request's way its pool serves.
enum class PartOfWay : std::uint8_t { all, reads, writes };
// What a pool does with the first token of a request, where another pool has the other part of its way.
enum class ReadToken : std::uint8_t {
  is_told,          // when it is made, as in any pool
  told_on_arrival,  // when the KV has come that goes with it
  is_remade,  // the last token of the prompt is read once more, which gives the first token that is told
  is_dropped,  // since the next pool makes it anew
};
// What other replicas see of what this one gives up of its cache, in a store that they share: nothing; everything when it happens; or
// the same, but that a prefix was used need not be told at once.
enum class GivenUp : std::uint8_t { unseen, seen, seen_and_used_later };
// What becomes of the KV of a preempted sequence (serving.preempted_to_host).
enum class PreemptedKv : std::uint8_t { given_up, kept_by_host };

// Everything referred to outlives the run.
struct PoolConstants : PolicyConstants {
  const PolicyEntry* policy = nullptr;
  Plan* plan = nullptr;  // of the policy
  StepTable* table = nullptr;
  ServingStats* stats = nullptr;
  PoolSums* sums = nullptr;
  // Shared by all replicas, since a plan is made and carried out in one turn.
  StepPlan* scratch_plan = nullptr;
  std::int64_t seats = 0;  // of a replica, over all lanes
  BlockFilling blocks;
  // Of the front end for each token of an answer after its first, and for that; 0: clients have tokens at once.
  FrontEnd::Messages message_seconds;
  std::int64_t first_message_tokens = 1;      // that an answer has when its client hears of it
  FrontEnd front_end;                         // of a replica that begins
  std::int64_t window = 0;                    // 0: no sliding window
  std::int64_t state = 0, states = 0;         // as in PoolSetup
  const SequencePaces* own_paces = nullptr;   // as in PoolSetup
  const LateReading* late_reading = nullptr;  // as in PoolSetup
  StepLog* log = nullptr;                     // where steps are written down; null: nowhere
  Turns turns;                                // as in PoolSetup
  DeploymentRole role = DeploymentRole::main;
  DraftPlace draft_place = DraftPlace::last_stage;
  PartOfWay part = PartOfWay::all;
  ReadToken first_token = ReadToken::is_told;
  GivenUp given_up = GivenUp::unseen;
  PreemptedKv preempted_kv = PreemptedKv::given_up;
  // KV held, and room that holds nothing, are summed over time for the row's figures.
  bool counts_room = true;
  bool audit = false;  // recount everything at every step

  bool streams() const { return message_seconds.further > 0; }
  // Whether KV comes from another pool, or goes to one; and whether a sequence that departs keeps its blocks until then.
  bool carries() const { return part != PartOfWay::all; }
  bool hands_over() const { return part == PartOfWay::reads; }
  bool given_up_in_sight() const { return given_up != GivenUp::unseen; }
  bool tells_late() const { return given_up == GivenUp::seen_and_used_later; }
  // Whether the number of proposed tokens is picked step by step, and whether step times depend on the longest context.
  bool picks_length() const { return table->picks(); }
  bool uneven() const { return table->uneven(); }
  // Whether steps of the same sequences are alike, as far as the pool is concerned: no acceptance is drawn, no draft reads late, no
  // other model has the devices in between, no cache grows old, and no step is written down.
  bool decodes_alike() const {
    return own_paces == nullptr && late_reading == nullptr && !turns.any() && log == nullptr &&
           settings->retention.policy != Retention::ttl;
  }
  // Prompt and output of the longest request that an empty replica can serve.
  std::int64_t most_tokens = 1;
  std::span<const double> encode_seconds = {};  // as in PoolSetup
  double encode_slower = 1;
  double ttft_limit = 0;  // for ordering by slack
  // For ordering by slack, and for telling which requests will be late.
  double seconds_per_prompt_token = 0;
  const std::array<double, kRequestClasses>* class_limits = nullptr;  // null: there are no classes
  // A prefix is loaded only where that takes less than reading it.
  double seconds_to_read_a_token = 0;
  std::uint64_t seed = 0;
};

}  // namespace engine
