// Asks for the lines of memory in a range before they are needed, all at once: a miss of the cache takes some hundred instructions'
// time, and one that follows from what the last one brought has to wait for it.
#pragma once

#include <cstddef>

namespace engine {

[[gnu::always_inline]] inline void fetch_lines(const void* from, const void* until) {
  constexpr std::ptrdiff_t line = 64;
  const char* const first = static_cast<const char*>(from);
  const std::ptrdiff_t bytes = static_cast<const char*>(until) - first;
  for (std::ptrdiff_t at = 0; at < bytes; at += line) __builtin_prefetch(first + at, 1);
}

}  // namespace engine
