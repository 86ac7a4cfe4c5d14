// The figures of a point that speculates.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct SpeculationFigures {
  double accepted_tokens_per_step = kNoValue;
  double proposed_tokens_per_step = kNoValue;
  Seconds draft_time{kNoValue};
  double draft_share = kNoValue;
  double wasted_tokens = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("accepted_tokens_per_step", self.accepted_tokens_per_step,
          "with speculation: tokens that a decode step makes of a sequence, the one that the model "
          "itself adds included; requests and served loads make the expected number to the nearest "
          "sixtieth");
    visit("proposed_tokens_per_step", self.proposed_tokens_per_step,
          "with speculation: tokens proposed for a sequence in a decode step, all candidates of a "
          "tree; the mean where speculation.dynamic changes it");
    visit("draft_time", self.draft_time,
          "with speculation: time in which tokens are proposed, in the step, the request or the "
          "whole run");
    visit("draft_share", self.draft_share,
          "with speculation: share of the time of decode steps in which tokens are proposed");
    visit("wasted_tokens", self.wasted_tokens,
          "with speculation: tokens that were proposed and did not hold, or lie beyond the end of "
          "their answer, in the step, the request or the whole run");
  }
};

}  // namespace engine
