// Asks for lines of memory before they are needed, all at once: a miss of the cache takes some hundred instructions' time, and one
// that follows from what the last one brought has to wait for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace engine {

[[gnu::always_inline]] inline void fetch_line(const void* at) {
  __builtin_prefetch(at, 1);
  // To a compiler a function that only fetches does nothing, and calls of it are left out: this is something.
  asm volatile("" : : "r"(at));
}

[[gnu::always_inline]] inline void fetch_lines(const void* from, const void* until) {
  constexpr std::ptrdiff_t line = 64;
  const std::ptrdiff_t into = std::ptrdiff_t(reinterpret_cast<std::uintptr_t>(from) % line);
  const char* const first = static_cast<const char*>(from) - into;
  const std::ptrdiff_t bytes = static_cast<const char*>(until) - first;
  for (std::ptrdiff_t at = 0; at < bytes; at += line) fetch_line(first + at);
}

}  // namespace engine
