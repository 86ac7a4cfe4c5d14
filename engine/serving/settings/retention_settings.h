// Which cached prefixes a replica gives up first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

enum class Retention : std::uint8_t {
  lru,     // the one that was used least recently
  ttl,     // the same, and also what was not used for a stated time
  pinned,  // the same, but those of sessions that go on only when there are no others
};
constexpr std::array<std::string_view, 3> enum_names(Retention) { return {"lru", "ttl", "pinned"}; }

struct RetentionSettings {
  Retention policy = Retention::lru;
  Seconds ttl{300};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit(
        "policy", self.policy,
        "which cached prefixes are given up; lru: when blocks run out, the least recently used; "
        "ttl: also those that were not used for a time; pinned: those of sessions that go on last",
        any_value);
    visit("ttl", self.ttl, "ttl: how long a cached prefix is kept without being used",
          positive.where(is_one_of<"serving.retention.policy", Retention::ttl>));
  }
};

}  // namespace engine
