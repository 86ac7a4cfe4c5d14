// Task `step`: which step.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"

namespace engine {

enum class StepPhase : std::uint8_t { prefill, decode };
constexpr std::array<std::string_view, 2> enum_names(StepPhase) { return {"prefill", "decode"}; }

struct StepShape {
  StepPhase phase = StepPhase::decode;
  std::int64_t batch = 1;
  std::int64_t context = 1024;
  std::int64_t longest_context = 0;  // 0: all are alike
  std::int64_t prompt = 1024;
  std::int64_t cached = 0;
  std::int64_t adapters = 0;  // 0: the model as it is

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("phase", self.phase, "prefill: prompts are read; decode: one token a sequence",
          any_value);
    visit("batch", self.batch, "sequences in the step, per replica", at_least(1));
    visit("context", self.context,
          "decode: tokens a sequence attends to, its new one included; the mean, where they differ",
          at_least(1).where(is_one_of<".phase", StepPhase::decode>));
    visit("longest_context", self.longest_context,
          "decode: tokens that the longest sequence attends to, its new one included; it matters "
          "where serving.decode_parts are even",
          non_negative_or("equal").where(is_one_of<".phase", StepPhase::decode>));
    visit("prompt", self.prompt, "prefill: new tokens of each sequence",
          at_least(1).where(is_one_of<".phase", StepPhase::prefill>));
    visit("cached", self.cached,
          "prefill: earlier tokens of each sequence whose KV is already there",
          non_negative.where(is_one_of<".phase", StepPhase::prefill>));
    visit("adapters", self.adapters,
          "different low-rank adapters (serving.lora) among the sequences of the step",
          non_negative_or("none"));
  }
};

}  // namespace engine
