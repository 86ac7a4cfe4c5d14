// Our own bugs: `check(condition, "why")` aborts and names the point under evaluation, so that
// `llmsweep explain SPEC --point I` replays it. Never used for a user's mistake or a bad point.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

namespace engine {

[[noreturn]] void check_failed(std::string_view why, std::source_location where);

inline void check(bool condition, std::string_view why,
                  std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]] {
    check_failed(why, where);
  }
}

// Names the point this thread is working on for as long as the guard lives.
class CurrentPoint {
 public:
  explicit CurrentPoint(std::uint64_t index);
  ~CurrentPoint();
  CurrentPoint(const CurrentPoint&) = delete;
  CurrentPoint& operator=(const CurrentPoint&) = delete;
};

}  // namespace engine
