// Which sequences are due at which step number. All of a lane advance together, so a due step does not change while they
// do. They stand in the order in which they are due: few lines of memory, of which the last is all that a step looks at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "engine/base/fetch_lines.h"
#include "engine/base/small_list.h"

namespace engine {

class StepCalendar {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Its memory stays.
  void reset() { due_.clear(); }
  // Each slot at most once.
  void insert(std::int32_t slot, std::int64_t step) {
    if (slot >> kSlotBits != 0 || step >= kMostSteps) [[unlikely]] {
      throw std::length_error(
          "a replica with more than 16 million sequences, or 500 billion steps");
    }
    due_.insert(due_.begin() + first_no_later(step), step << kSlotBits | slot);
  }
  void remove(std::int32_t slot, std::int64_t step) {
    const std::int64_t one = step << kSlotBits | slot;
    // Mostly it is the next one.
    if (due_.back() == one) return due_.pop_back();
    due_.erase(std::find(due_.begin() + first_no_later(step), due_.end(), one));
  }
  // Where entries begin that most lanes do not have: with many lanes they are fetched only when it is known that there are some.
  const void* behind_usual() const { return due_.place_inside(kUsual); }
  void fetch_others() const {
    if (due_.size() > kUsual) fetch_lines(behind_usual(), this + 1);
  }
  // The first step at which a sequence is due.
  std::int64_t next() const { return due_.empty() ? kNever : due_.back() >> kSlotBits; }
  // The first sequence that is due by a step, and of several the one that entered first; -1: there is none.
  std::int32_t first_by(std::int64_t step) const {
    constexpr std::int64_t slot = (std::int64_t{1} << kSlotBits) - 1;
    return next() <= step ? std::int32_t(due_.back() & slot) : -1;
  }

 private:
  // A step and a slot in one number, half as much to move: 16 million sequences in a replica, 500 billion steps.
  static constexpr int kSlotBits = 24;
  static constexpr std::int64_t kMostSteps = kNever >> kSlotBits;
  // Halved without a branch, since where a newcomer stands is not to be foreseen. Of places, not of pointers: between two of those
  // gcc chooses with a branch.
  std::ptrdiff_t first_no_later(std::int64_t step) const {
    const std::int64_t later = (step + 1) << kSlotBits;
    std::size_t first = 0;
    for (std::size_t left = due_.size(); left > 0;) {
      const std::size_t half = (left + 1) / 2, next = first + half;
      first = due_[next - 1] >= later ? next : first;
      left -= half;
    }
    return std::ptrdiff_t(first);
  }

  static constexpr std::size_t kUsual = 16;
  // The next to be due stands last; of one step, the one that entered first. With a dozen sequences in a lane on average there are
  // seldom more than 30.
  SmallList<std::int64_t, 30> due_;
};

}  // namespace engine
