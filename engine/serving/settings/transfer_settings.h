// How KV gets from the deployment that reads prompts to the one that writes answers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/hardware/link.h"

namespace engine {

enum class TransferMode : std::uint8_t {
  whole,   // it leaves when the prompt has been read
  layers,  // each layer leaves when it has been computed, behind the layers after it
};
constexpr std::array<std::string_view, 2> enum_names(TransferMode) { return {"whole", "layers"}; }

// Which deployment makes the first token that the client gets, and tells it.
enum class FirstToken : std::uint8_t {
  automatic,  // as its engine does
  decode,   // it comes with the KV, and the deployment that goes on tells it: SGLang, TensorRT-LLM
  prefill,  // the deployment that read the prompt tells it, at once
  remade,   // the deployment that goes on makes it anew, from the prompt's last token: vLLM
};
constexpr std::array<std::string_view, 4> enum_names(FirstToken) {
  return {"auto", "decode", "prefill", "remade"};
}

// When the deployment that goes on gives blocks to a KV cache.
enum class TransferInitiative : std::uint8_t {
  automatic,  // as its engine does
  pull,       // it fetches KV when the prompt has been read and it has room
  push,       // it sets blocks aside before the prompt is read, and KV is sent there at once
};
constexpr std::array<std::string_view, 3> enum_names(TransferInitiative) {
  return {"auto", "pull", "push"};
}

// Whom KV caches share the adapters of their replicas with.
enum class TransferContention : std::uint8_t {
  transfers,    // other KV caches
  collectives,  // also collectives of either deployment that leave its nodes
};
constexpr std::array<std::string_view, 2> enum_names(TransferContention) {
  return {"transfers", "collectives"};
}

inline constexpr const Condition& with_reader =
    said<"there is a prefill deployment", is_set<"prefill.present">>;
inline constexpr const Condition& with_shared_adapters =
    said<"KV caches share adapters with collectives (transfer.link states no link of their own)",
         is_zero<"transfer.link.bandwidth">>;
inline constexpr const Condition& with_fabric =
    said<"KV caches leave a node or take transfer.link (the two deployments do not share a node)",
         holds<Fact::kv_takes_a_fabric>>;
inline constexpr const Condition& with_adapters_of_a_node = said<
    "KV caches leave a node over its adapters (transfer.link states no other link, and the "
    "two deployments do not share a node)",
    holds<Fact::kv_leaves_a_node>>;

struct TransferSettings {
  Link link;
  TransferMode mode = TransferMode::whole;
  TransferInitiative initiative = TransferInitiative::automatic;
  TransferContention contention = TransferContention::transfers;
  FirstToken first_token = FirstToken::automatic;
  std::int64_t local_prompt = 0;
  double oversubscription = 1;
  std::int64_t rails = 0;

  bool pushes(bool engine_pushes) const {
    return initiative == TransferInitiative::automatic ? engine_pushes
                                                       : initiative == TransferInitiative::push;
  }
  // Never automatic.
  FirstToken first_token_of(bool engine_remakes) const {
    if (first_token != FirstToken::automatic) return first_token;
    return engine_remakes ? FirstToken::remade : FirstToken::decode;
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("link", self.link,
          "link that carries KV caches, at every device of both deployments; none: the links that "
          "leave the nodes, or those inside one where one node holds everything; of its bandwidth "
          "sends reach the measured share",
          any_value);
    visit("mode", self.mode,
          "whole: a KV cache leaves when its prompt has been read; layers: each layer leaves while "
          "later ones are computed",
          any_value);
    visit("initiative", self.initiative,
          "task serve: pull: the main deployment fetches a KV cache when its prompt has been read "
          "and there is room; push: it sets blocks aside before the prompt is read, which waits "
          "for that, and the KV cache is sent there at once; auto: as serving.pushes_kv says of "
          "the main deployment's engine",
          any_value.where(while_serving));
    visit("contention", self.contention,
          "task serve: what shares adapters with KV caches; transfers: other KV caches; "
          "collectives: also collectives of either deployment that leave its nodes, each half of "
          "an adapter while both use it",
          any_value.where(while_serving).where(with_shared_adapters));
    visit("first_token", self.first_token,
          "which deployment sends the first token; decode: the main one, once it has the KV cache; "
          "prefill: that one, when it has read the prompt; remade: the main one, which makes it "
          "anew from the prompt's last token in its first step; auto: decode or remade, as "
          "serving.remakes_first_token says of the main deployment's engine",
          any_value);
    visit("local_prompt", self.local_prompt,
          "task serve: the main deployment reads prompts itself of which at most this many tokens "
          "are not in its cache; 0: the prefill deployment reads all",
          non_negative.where(while_serving));
    visit(
        "oversubscription", self.oversubscription,
        "task serve: what the adapters of the smaller deployment can carry together over what the "
        "fabric between the deployments can; 1: the fabric is no bottleneck",
        between(1, 1e6).where(while_serving).where(with_fabric));
    visit("rails", self.rails,
          "adapters of a node that carry KV caches out of it, shared evenly by its devices; auto: "
          "one for each device",
          non_negative_or("auto").where(with_adapters_of_a_node));
  }
};

}  // namespace engine
