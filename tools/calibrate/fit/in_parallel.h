// Independent pieces of work on all cores. Results do not depend on which core did what.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace tools {

// Calls work(0) ... work(count - 1), in any order, several at once.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back([&] {
      for (std::size_t piece = next++; piece < count; piece = next++) work(piece);
    });
  }
}

}  // namespace tools
