// A KV cache that one deployment makes and another goes on with: whether that can be, and how long the way is.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/deploy.h"
#include "engine/scenario.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/settings/transfer_settings.h"

namespace engine {

// The two deployments must mean the same by a KV cache.
std::optional<Refusal> handover_problem(const Deployment& from, const Deployment& to);

// Whether KV takes the adapters of a node: no link is stated, and no one node holds both deployments.
bool leaves_a_node(const Scenario& scenario);

// Whether KV takes the fabric between the deployments: the adapters of a node, or a link that is stated.
bool takes_a_fabric(const Scenario& scenario);

// Deployments that stand in the main one's cluster, whose links these are, must fit into it together.
std::optional<Refusal> shared_cluster_problem(const Scenario& scenario, const Fabric& fabric);

// How KV caches of prompts with `tokens` tokens get from one deployment to the other, given the number of devices of each; or why they
// cannot.
struct HandoverWay {
  const TransferSettings& transfer;
  const Deployed& from;
  double from_devices;
  const Deployed& to;
  double to_devices;
  double tokens;

  // A draft on both sides has read the prompt where it was read, and its KV goes along.
  bool with_draft() const { return from.guest.shard != nullptr && to.guest.shard != nullptr; }
};
struct Handover {
  Carry carry;
  Tier tier = Tier::roofline;
  // Nine in ten take between `low` and `high` times as long.
  double low = 1;
  double high = 1;
};
std::optional<Refusal> carry_of(const HandoverWay& way, Handover& handover);

// What a device at either end has of what is carried of a sequence: its KV, and that of a draft.
Bytes carried_kv(const Deployed& end, const HandoverWay& way, double tokens);

// What is left to wait for of sequences' KV that have the way to themselves, when their prompts took `reading`.
struct Carried {
  double sequences = 1;
  double tokens = 0;  // of each
};
Seconds exposed_carry(const Carry& carry, const Carried& carried, Seconds reading);

}  // namespace engine
