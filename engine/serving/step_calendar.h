// Which sequences are due at which step number. All of a lane advance together, so a due step does not
// change while they do; entering, leaving and looking up the next one take the same few operations
// however many there are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace engine {

class StepCalendar {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Its memory stays, and there is none before somebody enters.
  void reset() {
    if (count_ == 0) return;
    std::ranges::fill(days_, -1);
    std::ranges::fill(busy_, 0);
    count_ = 0;
  }
  // Each slot at most once. Every step in here lies at `now` or after it.
  void insert(std::int32_t slot, std::int64_t step, std::int64_t now) {
    if (step - now >= std::int64_t(days_.size())) make_room(step, now);
    if (std::size_t(slot) >= links_.size()) links_.resize(std::size_t(slot) + 1);
    std::int32_t& first = days_[place_of(step)];
    Links& links = links_[std::size_t(slot)];
    if (first < 0) {
      first = slot;
      links = {.before = slot, .after = slot};
      busy_[place_of(step) / 64] |= bit_of(step);
    } else {
      Links& of_first = links_[std::size_t(first)];
      links = {.before = of_first.before, .after = first};
      links_[std::size_t(of_first.before)].after = slot;
      of_first.before = slot;
    }
    ++count_;
  }
  void remove(std::int32_t slot, std::int64_t step) {
    std::int32_t& first = days_[place_of(step)];
    const Links links = links_[std::size_t(slot)];
    --count_;
    if (links.after == slot) {
      first = -1;
      busy_[place_of(step) / 64] &= ~bit_of(step);
      return;
    }
    links_[std::size_t(links.before)].after = links.after;
    links_[std::size_t(links.after)].before = links.before;
    if (first == slot) first = links.after;
  }
  // The soonest step that somebody is due at.
  std::int64_t next(std::int64_t now) const {
    if (count_ == 0) return kNever;
    const std::size_t start = place_of(now);
    std::size_t word = start / 64;
    std::uint64_t bits = busy_[word] >> (start % 64) << (start % 64);
    while (bits == 0) {
      word = word + 1 < busy_.size() ? word + 1 : 0;
      bits = busy_[word];
    }
    const std::size_t place = word * 64 + std::size_t(std::countr_zero(bits));
    return now + std::int64_t((place - start) & (days_.size() - 1));
  }
  // The first to have entered of those due at a step; -1: nobody. Somebody has entered before.
  std::int32_t first_at(std::int64_t step) const { return days_[place_of(step)]; }

 private:
  static constexpr std::size_t kFirstSteps = 64;

  struct Links {  // those of one day stand in a ring
    std::int32_t before = -1, after = -1;
  };
  std::size_t place_of(std::int64_t step) const { return std::size_t(step) & (days_.size() - 1); }
  static std::uint64_t bit_of(std::int64_t step) { return std::uint64_t{1} << (step & 63); }

  void make_room(std::int64_t step, std::int64_t now) {
    std::size_t size = std::max(kFirstSteps, days_.size());
    while (step - now >= std::int64_t(size)) size *= 2;
    std::vector<std::int32_t> days(size, -1);
    std::vector<std::uint64_t> busy(size / 64, 0);
    for (std::size_t i = 0; i < days_.size(); ++i) {
      const std::int64_t at = now + std::int64_t(i);
      const std::size_t place = std::size_t(at) & (size - 1);
      days[place] = days_[place_of(at)];
      if (days[place] >= 0) busy[place / 64] |= bit_of(at);
    }
    days_.swap(days);
    busy_.swap(busy);
  }

  // Who entered first, by step modulo their number, a power of two; -1: nobody.
  std::vector<std::int32_t> days_;
  std::vector<std::uint64_t> busy_;  // a bit a day
  std::vector<Links> links_;         // by slot
  std::int64_t count_ = 0;
};

}  // namespace engine
