// What a time would save if one of its parts were free. Summed over kernels and steps, the largest saving says what
// limits a point: parts that hide behind others save nothing, however long they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "engine/base/tier.h"
#include "engine/base/units.h"

namespace engine {

struct Savings {
  std::array<Seconds, enum_names(Bound{}).size()> by_part{};

  Seconds& operator[](Bound part) { return by_part[static_cast<std::size_t>(part)]; }
  Seconds operator[](Bound part) const { return by_part[static_cast<std::size_t>(part)]; }

  void add(const Savings& other, double times = 1) {
    for (std::size_t i = 0; i < by_part.size(); ++i) by_part[i] += other.by_part[i] * times;
  }
  Bound largest() const {
    return static_cast<Bound>(std::max_element(by_part.begin(), by_part.end()) - by_part.begin());
  }
  bool any() const { return (*this)[largest()].value > 0; }

  bool operator==(const Savings&) const = default;
};

}  // namespace engine
