// Which request of a queue is first.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class Ordering : std::uint8_t {
  fcfs,
  priority,        // lower levels first, then by arrival
  slo,             // least slack before the time to first token is missed
  longest_prefix,  // most of the prompt in the cache, among the first 128
  fair_share,      // the tenant that was served fewest tokens
};
constexpr std::array<std::string_view, 5> enum_names(Ordering) {
  return {"fcfs", "priority", "slo", "longest_prefix", "fair_share"};
}
// Whether it asks for the priority of a request.
constexpr bool by_urgency(Ordering ordering) {
  return ordering == Ordering::priority || ordering == Ordering::slo;
}

}  // namespace engine
