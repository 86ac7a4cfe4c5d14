// How an engine serves low-rank adapters on one base model.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"
#include "engine/model/lora_targets.h"

namespace engine {

struct LoraSettings {
  std::int64_t rank = 16;
  LoraTargets targets = LoraTargets::all;
  std::int64_t slots = 0;
  BytesPerSecond load_bandwidth{0};
  Seconds load_latency{0.001};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank, "rank of every adapter", between(1, 4096));
    visit("targets", self.targets, "products of the model that have adapters", any_value);
    visit("slots", self.slots,
          "adapters that a replica keeps in its devices' memory; the others lie in host memory; "
          "auto: all of load.adapters (task step: those of the step)",
          non_negative_or("auto"));
    visit("load_bandwidth", self.load_bandwidth,
          "rate at which a device gets its share of an adapter from the host; auto: what copies "
          "reach of its link to the host",
          non_negative_or("auto").where(while_serving).where(is_above<"serving.lora.slots", 0>));
    visit("load_latency", self.load_latency,
          "time that the engine needs to make room and start to load an adapter, before the first "
          "byte",
          non_negative.where(while_serving).where(is_above<"serving.lora.slots", 0>));
  }
};

}  // namespace engine
