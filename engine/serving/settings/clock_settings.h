// The clock that an engine's steps run at.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"

namespace engine {

enum class ClockMode : std::uint8_t {
  full,  // always that of the device
  slo,   // in each step the lowest that keeps the limit on the time per output token
};
constexpr std::array<std::string_view, 2> enum_names(ClockMode) { return {"full", "slo"}; }

struct ClockSettings {
  ClockMode mode = ClockMode::full;
  double lowest = 0.5;
  double margin = 0.05;
  double power_exponent = 2;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit(
        "mode", self.mode,
        "full: always device.clock; slo: each step that decodes runs at the lowest clock at which "
        "it takes no longer than the tightest limit on a token: of slo on tpot or itl, or tpot of "
        "a class in load.classes",
        any_value);
    visit("lowest", self.lowest, "lowest clock, as a share of device.clock",
          between(0.1, 1).where(is_one_of<"serving.clock.mode", ClockMode::slo>));
    visit("margin", self.margin, "share of the limit that a step leaves",
          between(0, 0.9).where(is_one_of<"serving.clock.mode", ClockMode::slo>));
    visit(
        "power_exponent", self.power_exponent,
        "tensor_power, memory_power and what busy_power is above idle_power change with this power "
        "of the clock; 2: as measured on an H200 between 1.4 and 1.98 GHz; 3: the voltage follows "
        "the clock; 1: it does not",
        between(1, 4).where(is_one_of<"serving.clock.mode", ClockMode::slo>));
  }
};

}  // namespace engine
