// The batching policies: this table is the whole registry. Adding one: write its .cc, add its line here,
// and a timeline worked out by hand to tests/engine/serving/policies_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/counts.h"
#include "engine/base/named_table.h"

namespace engine {

struct ReplicaView;
struct StepPlan;
using Plan = void(const ReplicaView& view, StepPlan& plan);

Plan plan_vllm_v1, plan_vllm_v0, plan_sarathi, plan_sglang, plan_orca, plan_no_evict, plan_static;

// Which setting bounds the prompt tokens of a step.
enum class StepBudget : std::uint8_t { max_num_batched_tokens, chunk };

// What stays in the cache of a sequence that makes way, until its blocks are needed: all whose KV was computed, or only what was read
// as a prompt, without the tokens that it has made since.
enum class LeftInCache : std::uint8_t { computed, read };

// What serving.max_num_seqs counts in a pipeline, which has as many batches in flight as stages: the sequences of all batches; those of
// all batches of which each has an equal whole share; or those of each batch.
enum class Seats : std::uint8_t { of_all_batches, in_equal_shares, of_each_batch };

struct PolicyEntry {
  std::string_view name;
  Plan* plan;
  StepBudget budget = StepBudget::max_num_batched_tokens;
  bool reserves = false;  // room for a whole answer is set aside with the prompt's
  // Further answers to a request are asked for when its prompt has been read; others stand in the queue from the start.
  bool answers_come_later = false;
  LeftInCache left_in_cache = LeftInCache::computed;
  bool limits_pieces = false;  // of one prompt in a step (serving.long_prefill_threshold)
  Seats seats = Seats::of_all_batches;
  bool mixes = false;  // prompts and decodes in one step
  // Admission leaves room for a share of the outputs to come (serving.new_token_ratio).
  bool foresees = false;
  // Room for an answer is that of serving.max_output or its own; others that set it aside take the longest sequence there can be.
  bool bounds_answers = false;

  constexpr bool takes_longest() const { return reserves && !bounds_answers; }
  constexpr bool counts_chunks() const { return budget == StepBudget::chunk; }
  // Most sequences of one batch, and of all `batches`, where serving.max_num_seqs is `most`.
  constexpr std::int64_t seats_of_batch(std::int64_t most, std::int64_t batches) const {
    return seats == Seats::in_equal_shares ? std::max<std::int64_t>(most / batches, 1) : most;
  }
  constexpr std::int64_t seats_in_all(std::int64_t most, std::int64_t batches) const {
    return seats == Seats::of_all_batches ? most : batches * seats_of_batch(most, batches);
  }
};

// Keys of points hold the position: new ones go to the end.
inline constexpr std::array kPolicies{
    PolicyEntry{.name = "vllm_v1", .plan = plan_vllm_v1, .limits_pieces = true, .mixes = true},
    PolicyEntry{"vllm_v0", plan_vllm_v0},
    PolicyEntry{
        .name = "sarathi", .plan = plan_sarathi, .budget = StepBudget::chunk, .mixes = true},
    // Scheduler.init_running_status: max(max_running_requests // pp_size, 1)
    PolicyEntry{.name = "sglang",
                .plan = plan_sglang,
                .budget = StepBudget::chunk,
                .answers_come_later = true,
                .left_in_cache = LeftInCache::read,
                .seats = Seats::in_equal_shares,
                .foresees = true},
    PolicyEntry{.name = "orca", .plan = plan_orca, .reserves = true, .mixes = true},
    // PyTorchModelEngine.get_max_num_sequences: pp_size * max_batch_size
    PolicyEntry{.name = "no_evict",
                .plan = plan_no_evict,
                .reserves = true,
                .seats = Seats::of_each_batch,
                .mixes = true,
                .bounds_answers = true},
    PolicyEntry{.name = "static", .plan = plan_static, .reserves = true, .bounds_answers = true},
};

// Position in the table.
enum class PolicyName : std::uint8_t {};

constexpr auto enum_names(PolicyName) { return names_of(kPolicies); }

consteval PolicyName policy_named(std::string_view name) {
  return position_named<PolicyName>(kPolicies, name);
}

constexpr const PolicyEntry& policy_of(PolicyName name) { return kPolicies[std::size_t(name)]; }

template <auto property>
inline constexpr Condition policy_has =
    condition_of({.kind = Test::Kind::named,
                  .path = "serving.policy",
                  .names = positions_with<property>(kPolicies)});
template <auto property>
inline constexpr Condition policy_lacks =
    condition_of({.kind = Test::Kind::not_named,
                  .path = "serving.policy",
                  .names = positions_with<property>(kPolicies)});

}  // namespace engine
