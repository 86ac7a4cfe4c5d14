// The deployments that a point may have, by name: labels of rows that say which one did the work, and what fields may ask of
// the deployment that they belong to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/counts.h"
#include "engine/base/named_table.h"
#include "engine/base/task.h"

namespace engine {

enum class DeploymentRole : std::uint8_t {
  main,
  prefill,    // reads prompts for the main one
  draft,      // proposes tokens that the main one verifies
  rollout,    // makes samples that the main one is trained on
  neighbour,  // another model on the main one's devices
  encode,     // turns images into tokens of prompts
  rerank,     // looks at passages that were found for a prompt
  tail,       // has the last stages of the pipeline
};

struct RoleTraits {
  std::string_view name;
  std::string_view called = {};   // in messages about what it does not do
  std::optional<Task> task = {};  // that it does, whatever the main deployment does
  bool has_text = true;           // tokens of text are its input or output
  bool serves_requests = true;    // rather than single steps, for who does
  bool over_time = true;          // requests come to it one after the other, and come again
  bool answers_clients = true;    // which wait for their first token
  bool generates = true;          // tokens, one after the other
  bool chooses_tokens = true;     // from logits
  bool drafts = true;             // something may propose tokens to it
  bool splits_prompts = true;     // devices may read one prompt together
  bool has_readers = true;        // another deployment may read its prompts
  bool has_devices = true;        // of its own
  bool has_engine = true;         // for inference
};

inline constexpr std::array kRoleTraits{
    RoleTraits{.name = "main"},
    RoleTraits{.name = "prefill",
               .called = "one for prompts",
               .answers_clients = false,
               .generates = false},
    RoleTraits{.name = "draft", .called = "a draft", .serves_requests = false},
    RoleTraits{.name = "rollout",
               .called = "one that makes samples",
               .task = Task::serve,
               .over_time = false,
               .answers_clients = false,
               .splits_prompts = false},
    RoleTraits{.name = "neighbour",
               .called = "a neighbour",
               .drafts = false,
               .has_readers = false,
               .has_devices = false},
    RoleTraits{.name = "encode", .called = "an encoder", .has_text = false},
    RoleTraits{
        .name = "rerank", .called = "one that ranks", .generates = false, .chooses_tokens = false},
    RoleTraits{.name = "tail", .has_engine = false},
};

constexpr auto enum_names(DeploymentRole) { return names_of(kRoleTraits); }

constexpr const RoleTraits& traits_of(DeploymentRole role) {
  return kRoleTraits[static_cast<std::size_t>(role)];
}

// "{}" in the words stands for the deployment that has not the property.
template <auto property, Text words>
inline constexpr Condition role_has{
    .words = words.view(),
    .tests = {Test{.kind = Test::Kind::role, .names = positions_with<property>(kRoleTraits)}},
    .count = 1};

inline constexpr const Condition& where_text_is =
    role_has<&RoleTraits::has_text, "the deployment reads or writes text, which {} does not">;
inline constexpr const Condition& where_requests_are =
    role_has<&RoleTraits::serves_requests, "the deployment serves requests, which {} does not">;
inline constexpr const Condition& where_clients_are =
    role_has<&RoleTraits::answers_clients, "the deployment answers clients, which {} does not">;
inline constexpr const Condition& where_tokens_are_generated =
    role_has<&RoleTraits::generates, "the deployment generates tokens, which {} does not">;
inline constexpr const Condition& where_prompts_are_split =
    role_has<&RoleTraits::splits_prompts, "the deployment reads prompts and nothing else">;
inline constexpr const Condition& where_readers_are =
    role_has<&RoleTraits::has_readers,
             "another deployment reads the prompts, which it does not for {}">;
inline constexpr const Condition& where_devices_are =
    role_has<&RoleTraits::has_devices, "the deployment has devices of its own, which {} has not">;

// Samples to train on are made on the devices that train, unless somebody says otherwise.
inline constexpr const Condition& unless_colocated =
    either<"", outside<"rollout">, is_zero<"train.rollout.colocated">>;

}  // namespace engine
