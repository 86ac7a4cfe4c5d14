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

constexpr std::ptrdiff_t kLine = 64;

// Of something that begins with a line: how many there are is known where it is compiled.
template <class Each>
requires(alignof(Each) % kLine == 0)
    [[gnu::always_inline]] inline void fetch_lines(const Each* from, const void* until) {
  const char* const first = reinterpret_cast<const char*>(from);
  const std::ptrdiff_t bytes = static_cast<const char*>(until) - first;
  for (std::ptrdiff_t at = 0; at < bytes; at += kLine) fetch_line(first + at);
}
// Of something that begins inside a line.
[[gnu::always_inline]] inline void fetch_lines(const void* from, const void* until) {
  const auto into = std::ptrdiff_t(reinterpret_cast<std::uintptr_t>(from) % kLine);
  const char* at = static_cast<const char*>(from) - into;
  for (; at < static_cast<const char*>(until); at += kLine) fetch_line(at);
}

}  // namespace engine
