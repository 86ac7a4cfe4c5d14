// Rows of single calls, kept while lists of operations that differ in calls only are timed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/model/op.h"
#include "engine/step/kernel_row.h"

namespace engine {

// Lists that share one of these name most of their operations alike: the n-th operation of a name is the same in many of them. A row is
// made again where it is not.
class CallRows {
 public:
  void clear() {
    places_.clear();
    rows_.clear();
    ops_.clear();
  }
  bool empty() const { return rows_.empty(); }
  // The next operation is the first of a list. Few of the lists that there may be are ever timed: only those take memory.
  void begin_list() {
    if (places_.empty()) places_.resize(kNames);
    seen_.fill(0);
  }

  // The row of one call of the next operation, by its name: a known one, or what make() returns.
  template <class Make>
  const KernelRow& next(const PlannedOp& planned, Make&& make) {
    const std::size_t op = std::size_t(planned.name), number = seen_[op]++;
    if (number >= kAlike) return extra_ = make();
    std::int16_t& place = places_[op].of_number[number];
    if (place == kNone) {
      place = std::int16_t(rows_.size());
      rows_.push_back(make());
      ops_.push_back({planned.family, planned.op});
    } else if (Timed& timed = ops_[std::size_t(place)]; !timed.is(planned)) {
      rows_[std::size_t(place)] = make();
      timed = {planned.family, planned.op};
    }
    return rows_[std::size_t(place)];
  }

 private:
  // All that the time of a call follows from on devices of one kind.
  struct Timed {
    Family family;
    Op op;
    bool is(const PlannedOp& planned) const { return family == planned.family && op == planned.op; }
  };

  static constexpr std::size_t kNames = enum_names(OpName{}).size();
  static constexpr std::size_t kAlike = 12;
  static constexpr std::int16_t kNone = -1;
  struct Places {
    std::array<std::int16_t, kAlike> of_number;
    Places() { of_number.fill(kNone); }
  };
  std::vector<Places> places_;  // by name; none before the first list
  std::array<std::uint8_t, kNames> seen_{};
  std::vector<KernelRow> rows_;
  std::vector<Timed> ops_;
  KernelRow extra_;
};

}  // namespace engine
