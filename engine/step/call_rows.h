// Rows of single calls, kept while lists of operations that differ in calls only are timed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/model/op.h"
#include "engine/step/kernel_row.h"

namespace engine {

// Lists that share one of these name equal operations alike: the n-th operation of a name is the same in all of them that
// have so many.
class CallRows {
 public:
  CallRows() { clear(); }
  void clear() {
    for (auto& places : places_) places.fill(kNone);
    rows_.clear();
    begin_list();
  }
  bool empty() const { return rows_.empty(); }
  // The next operation is the first of a list.
  void begin_list() { seen_.fill(0); }

  // The row of one call of the next operation of this name: a known one, or what make() returns.
  template <class Make>
  const KernelRow& next(OpName name, Make&& make) {
    const std::size_t op = std::size_t(name), number = seen_[op]++;
    if (number >= kAlike) return extra_ = make();
    std::int16_t& place = places_[op][number];
    if (place == kNone) {
      place = std::int16_t(rows_.size());
      rows_.push_back(make());
    }
    return rows_[std::size_t(place)];
  }

 private:
  static constexpr std::size_t kNames = enum_names(OpName{}).size();
  static constexpr std::size_t kAlike = 12;
  static constexpr std::int16_t kNone = -1;
  std::array<std::array<std::int16_t, kAlike>, kNames> places_;
  std::array<std::uint8_t, kNames> seen_;
  std::vector<KernelRow> rows_;
  KernelRow extra_;
};

}  // namespace engine
