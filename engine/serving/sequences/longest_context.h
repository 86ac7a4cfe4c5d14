// The longest context of a set of decodes that all grow by a token a step and leave at a known step.
#pragma once

#include <cstdint>

#include "engine/base/small_list.h"

namespace engine {

// Keeps only sequences that can ever be the longest. One that is no longer than another and leaves no later cannot, so it is dropped.
// The rest, a handful, stand in the order in which they leave, with the next to leave at the end. Each is shorter than the one that
// leaves before it.
class LongestContext {
 public:
  void reset() { rivals_.clear(); }

  // `base` is the context less the step number, which does not change; gone at `last_step`.
  void insert(std::int64_t base, std::int64_t last_step) {
    auto place = rivals_.end();
    while (place != rivals_.begin() && (place - 1)->last_step < last_step) --place;
    if (place != rivals_.begin() && (place - 1)->base >= base) return;
    auto first = place, last = place;  // sequences that are no longer and leave no later
    if (first != rivals_.begin() && (first - 1)->last_step == last_step) --first;
    while (last != rivals_.end() && last->base <= base) ++last;
    if (first == last) {
      rivals_.insert(place, {base, last_step});
    } else {
      *first = {base, last_step};
      rivals_.erase(first + 1, last);
    }
  }

  // The base of the longest sequence at `step`. Later calls are for later steps only. At least one sequence is left.
  std::int64_t at(std::int64_t step) {
    while (rivals_.back().last_step <= step) rivals_.pop_back();
    return rivals_.back().base;
  }

 private:
  struct Rival {
    std::int64_t base = 0, last_step = 0;
  };
  SmallList<Rival, 6> rivals_;
};

}  // namespace engine
