// Speculative decoding as knobs of the scenario: who proposes tokens, how many, and how many of them hold.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

enum class SpeculationMethod : std::uint8_t {
  none,
  draft_model,  // a smaller model, the role `draft`
  ngram,        // what followed the same words before, looked up by the host
  heads,        // further output heads on the last hidden state (Medusa)
  mtp,          // one more layer that is asked again and again (multi-token prediction, EAGLE)
};
constexpr std::array<std::string_view, 5> enum_names(SpeculationMethod) {
  return {"none", "draft_model", "ngram", "heads", "mtp"};
}

struct Speculation {
  SpeculationMethod method = SpeculationMethod::none;
  std::int64_t tokens = 0;
  std::string acceptance;
  Seconds draft_overhead{100e-6};
  Seconds lookup_time{20e-6};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("method", self.method, "who proposes tokens that a decode step then verifies", any_value);
    visit("tokens", self.tokens, "tokens proposed for each sequence in a decode step; 0: none",
          between(0, 64));
    visit("acceptance", self.acceptance,
          "probability that the first proposed token holds, that the second does if the first "
          "did, and so on; one number or a list, whose last number counts for all that follow",
          list_of(fraction));
    visit("draft_overhead", self.draft_overhead,
          "methods draft_model, heads and mtp: host time around each step of the draft (inputs, "
          "sampling); it counts where it is longer than the step",
          non_negative);
    visit("lookup_time", self.lookup_time,
          "method ngram: host time to look up the proposal for one sequence", non_negative);
  }

  bool on() const { return method != SpeculationMethod::none && tokens > 0; }
};

}  // namespace engine
