// Figures of a point with a neighbour: what sharing costs either model, and how the neighbour fares.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct SharingFigures {
  double sharing_slowdown = kNoValue;
  double neighbour_slowdown = kNoValue;
  Seconds sharing_time{kNoValue};
  Seconds neighbour_step_time{kNoValue};
  Seconds neighbour_ttft{kNoValue};
  Seconds neighbour_tpot{kNoValue};
  Seconds neighbour_tpot_p99{kNoValue};
  RequestsPerSecond neighbour_throughput{kNoValue};
  TokensPerSecond neighbour_output{kNoValue};
  double neighbour_utilization = kNoValue;
  double neighbour_overloaded = kNoValue;
  double neighbour_kv_tokens = kNoValue;
  Seconds swap_time{kNoValue};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sharing_slowdown", self.sharing_slowdown,
          "with a neighbour: time per output token (task step: time of the step; answers of one "
          "token: time to it) divided by that of the same deployment alone on the devices, with as "
          "much memory as it has beside the neighbour");
    visit("neighbour_slowdown", self.neighbour_slowdown,
          "with a neighbour: the neighbour's time per output token (task step: time of its step; "
          "answers of one token: time to it) divided by what it would be alone on the devices, "
          "with as much memory as it has beside the main model");
    visit("sharing_time", self.sharing_time,
          "with a neighbour: time by which steps are longer because the devices work for the "
          "neighbour, too");
    visit("neighbour_step_time", self.neighbour_step_time,
          "task step with a neighbour: time of the neighbour's step, beside the main one");
    visit("neighbour_ttft", self.neighbour_ttft,
          "task serve with a neighbour: the neighbour's time to first token, mean");
    visit("neighbour_tpot", self.neighbour_tpot,
          "task serve with a neighbour: the neighbour's time per output token after the first, "
          "mean");
    visit(
        "neighbour_tpot_p99", self.neighbour_tpot_p99,
        "task serve with a neighbour: the neighbour's time per output token after the first, p99");
    visit("neighbour_throughput", self.neighbour_throughput,
          "task serve with a neighbour: the neighbour's requests finished in the measured part");
    visit("neighbour_output", self.neighbour_output,
          "with a neighbour: tokens that the neighbour generates, all replicas");
    visit("neighbour_utilization", self.neighbour_utilization,
          "task serve with a neighbour: share of the time that a step of the neighbour was "
          "running");
    visit(
        "neighbour_overloaded", self.neighbour_overloaded,
        "task serve with a neighbour: 1 where fewer of the neighbour's requests are finished than "
        "arrive, 0 where it keeps up with them; null where its run is too short to tell");
    visit("neighbour_kv_tokens", self.neighbour_kv_tokens,
          "with a neighbour: tokens that the neighbour's KV cache can hold, per replica");
    visit("swap_time", self.swap_time,
          "with sharing.swap: time in which the main model's weights come from the host at the "
          "beginning of its turn");
  }
};

}  // namespace engine
