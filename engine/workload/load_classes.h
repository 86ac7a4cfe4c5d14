// Requests of several classes: which share of the load they are, what they are promised, and how long they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"

namespace engine {

// In the order of their priority.
enum class RequestClass : std::uint8_t { high, normal, low };
constexpr std::array<std::string_view, 3> enum_names(RequestClass) {
  return {"high", "normal", "low"};
}
constexpr std::size_t kRequestClasses = enum_names(RequestClass{}).size();

inline constexpr const Condition& with_such_requests = is_above<".share", 0>;

struct LoadClass {
  double share = 0;
  Seconds ttft{0}, tpot{0}, e2e{0};
  std::int64_t prompt = 0, output = 0;
  std::string acceptance;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("share", self.share, "share of the requests that belong to the class", fraction);
    visit("ttft", self.ttft,
          "longest time to first token that a request of the class is promised; auto: as slo says",
          non_negative_or("auto").where(with_such_requests));
    visit("tpot", self.tpot,
          "longest time per token that a request of the class is promised; auto: as slo says",
          non_negative_or("auto").where(with_such_requests));
    visit("e2e", self.e2e,
          "longest time in all that a request of the class is promised; auto: as slo says",
          non_negative_or("auto").where(with_such_requests));
    visit("prompt", self.prompt,
          "mean prompt tokens of the class: lengths of the load, the longest ones too, scaled; "
          "auto: as the load",
          non_negative_or("auto").where(with_such_requests));
    visit("output", self.output,
          "mean output tokens of the class: lengths of the load, the longest ones too, scaled; "
          "auto: as the load",
          non_negative_or("auto").where(with_such_requests));
    visit("acceptance", self.acceptance,
          "with speculation: probability that the first proposed token of a request of the class "
          "holds, that the second does if the first did, and so on; one number or a list; empty: "
          "as speculation.acceptance",
          list_of(fraction).where(with_such_requests).where(with_proposals).where(with_method));
  }
};

struct LoadClasses {
  LoadClass high, low;

  bool any() const { return high.share + low.share > 0; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("high", self.high, "requests of the first priority", any_value);
    visit("low", self.low, "requests of the last priority", any_value);
  }
};

}  // namespace engine
