// Rows of single calls, kept while lists of operations that differ in calls only are timed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "engine/model/op.h"
#include "engine/step/kernel_row.h"

namespace engine {

// Lists that share one of these name equal operations alike: the n-th operation of a name is the same in all of them that
// have so many. Only passes may differ, in what they move (casts of weights that replicas share out or not, sums that are made or
// not); a row is made again where they do.
class CallRows {
 public:
  CallRows() { clear(); }
  void clear() {
    for (auto& places : places_) places.fill(kNone);
    rows_.clear();
    sizes_.clear();
    begin_list();
  }
  bool empty() const { return rows_.empty(); }
  // The next operation is the first of a list.
  void begin_list() { seen_.fill(0); }

  // The row of one call of the next operation, by its name: a known one, or what make() returns.
  template <class Make>
  const KernelRow& next(const PlannedOp& planned, Make&& make) {
    const std::size_t op = std::size_t(planned.name), number = seen_[op]++;
    if (number >= kAlike) return extra_ = make();
    std::int16_t& place = places_[op][number];
    const Size size = size_of(planned.op);
    if (place == kNone) {
      place = std::int16_t(rows_.size());
      rows_.push_back(make());
      sizes_.push_back(size);
    } else if (sizes_[std::size_t(place)] != size) {
      rows_[std::size_t(place)] = make();
      sizes_[std::size_t(place)] = size;
    }
    return rows_[std::size_t(place)];
  }

 private:
  struct Size {
    std::size_t kind = 0;
    double resident = 0, cold = 0;
    bool operator==(const Size&) const = default;
  };
  static Size size_of(const Op& op) {
    const auto* pass = std::get_if<Elementwise>(&op);
    return pass == nullptr ? Size{op.index()}
                           : Size{op.index(), pass->resident_bytes, pass->cold_bytes};
  }

  static constexpr std::size_t kNames = enum_names(OpName{}).size();
  static constexpr std::size_t kAlike = 12;
  static constexpr std::int16_t kNone = -1;
  std::array<std::array<std::int16_t, kAlike>, kNames> places_;
  std::array<std::uint8_t, kNames> seen_;
  std::vector<KernelRow> rows_;
  std::vector<Size> sizes_;
  KernelRow extra_;
};

}  // namespace engine
