// Memory that is read all over, a little here and a little there: in large pages fewer addresses have to be looked up. A hint
// to the system, which may not follow it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace engine {

// Room for as many, before they are there: a page has its size from when it is first written to.
template <class Each>
void reserve_large_pages(std::vector<Each>& vector, std::size_t count) {
  if (vector.capacity() >= count) return;
  vector.reserve(count);
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;
  const auto start = reinterpret_cast<std::uintptr_t>(vector.data());
  const std::uintptr_t first = (start + page - 1) / page * page;
  const std::uintptr_t last = (start + vector.capacity() * sizeof(Each)) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace engine
