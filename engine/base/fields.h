// The one field list of a struct, and what a field may hold.
//
// A struct that appears in specs or tables writes
//     template <class Self, class Visit>
//     static void fields(Self& self, Visit&& visit) {
//       visit("memory_bandwidth", self.memory_bandwidth, "peak off-chip bandwidth", positive);
//     }
// and the YAML reader, sweep axes, Parquet columns and `describe` all visit it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/counts.h"

namespace engine {

// What raising a number of the hardware or the host does to the time of a step or a request, all else equal.
// tests/laws/direction_laws_test.cc holds every device to it.
enum class Raising : std::uint8_t {
  unstated,      // not a number of a device, a link or a host
  never_slower,  // bandwidths, peaks, capacities
  never_faster,  // latencies, launches, power drawn
  either,        // no rule: it depends on the rest, or times do not depend on it
};

// Which times of a device follow from a field of it: measured ones hold for devices that are alike in those.
enum class TimesOf : std::uint8_t {
  kernels,  // of one device by itself, in bursts, which no power limit slows down
  links,    // of what several devices do together
  nothing,  // prices, power, room
};

// No number is without an upper end: beyond these, sums and products of the formulas would leave what
// their types can hold. A product of two counts still fits 64 bits.
constexpr double kMostCount = 2147483647;
constexpr double kMostAmount = 1e24;

// What is wrong with which phrase of a text that is a list of phrases.
struct PhraseMistake {
  std::size_t phrase = 0;
  std::string what;
  std::string hint;
};
// The first mistake of a list of phrases with commas between them, which is not empty.
using PhraseCheck = std::optional<PhraseMistake> (*)(std::string_view text);

// A value of an enumeration that is another one unless a condition holds.
struct ValueCondition {
  std::uint8_t value = 0;
  std::uint8_t otherwise = 0;
  const Condition* unless = nullptr;
};

// The closed interval a numeric field must lie in, in base units. An end that is left open becomes
// one of the two above once the field is a leaf (engine/leaves/leaves.h).
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  // A word a spec may write in place of one number ("auto", "none"), which may lie outside the ends; null: there is none.
  const char* word = nullptr;
  double word_value = 0;
  // A text that is a path, relative to the file that says it.
  bool file = false;
  // A text that is a list of numbers, each within the ends: "0.8 0.7".
  bool list = false;
  // A text that is a list of phrases with commas between them, with a grammar of their own; null: it is not.
  PhraseCheck phrases = nullptr;
  // Whether the field is part of a point's identity, where its task reads it.
  bool in_key = true;
  Raising raising = Raising::unstated;
  TimesOf decides = TimesOf::kernels;
  // The field counts only where all of these hold, and all those of the sections around it but the ones in `despite`.
  std::array<const Condition*, 6> conditions = {};
  std::array<const Condition*, 2> despite = {};
  std::array<ValueCondition, 4> values = {};

  // The same range of a field, or of all fields of a section but one that the condition asks for itself, that counts only here.
  constexpr Range where(const Condition& condition) const {
    Range range = *this;
    put(&condition, range.conditions);
    return range;
  }
  // It counts where this condition of a section around it does not hold, too.
  constexpr Range even_without(const Condition& condition) const {
    Range range = *this;
    put(&condition, range.despite);
    return range;
  }
  // One value is the other unless the condition holds.
  template <class E>
  constexpr Range same(E value, E otherwise, const Condition& unless) const {
    Range range = *this;
    put({std::uint8_t(value), std::uint8_t(otherwise), &unless}, range.values);
    return range;
  }
  // Only constants outlive the field list.
  void where(const Condition&&) const = delete;

  // The same range, with what raising the field does.
  constexpr Range faster() const { return raised(Raising::never_slower); }
  constexpr Range slower() const { return raised(Raising::never_faster); }
  constexpr Range neither() const { return raised(Raising::either); }

  // The same range of a field that decides no kernel's time.
  constexpr Range for_links() const { return deciding(TimesOf::links); }
  constexpr Range for_no_time() const { return deciding(TimesOf::nothing); }

 private:
  static constexpr bool there(const Condition* condition) { return condition != nullptr; }
  static constexpr bool there(const ValueCondition& value) { return value.unless != nullptr; }
  template <class T, std::size_t most>
  static constexpr void put(const T& item, std::array<T, most>& items) {
    std::size_t place = 0;
    while (there(items.at(place))) ++place;
    items[place] = item;
  }
  constexpr Range raised(Raising what) const {
    Range range = *this;
    range.raising = what;
    return range;
  }
  constexpr Range deciding(TimesOf what) const {
    Range range = *this;
    range.decides = what;
    return range;
  }
};

constexpr Range any_value{};
constexpr Range any_integer{.low = -0x1p63, .high = 0x1p63};
constexpr Range non_negative{.low = 0};
// The smallest positive double stands for an open lower end.
constexpr Range positive{.low = std::numeric_limits<double>::denorm_min()};
constexpr Range fraction{.low = 0, .high = 1};
constexpr Range at_least(double low) { return {.low = low}; }
// Zero or more, where zero is better said in a word.
constexpr Range non_negative_or(const char* word) { return {.low = 0, .word = word}; }
// The same where zero is a number like others: the word stands for kWordOnly.
constexpr double kWordOnly = -1;
constexpr Range non_negative_beside(const char* word) {
  return {.low = 0, .word = word, .word_value = kWordOnly};
}
// Where a file lies is not what it holds, and what something is called is not what it is.
constexpr Range a_file{.file = true, .in_key = false};
constexpr Range a_label{.in_key = false, .decides = TimesOf::nothing};
constexpr Range between(double low, double high) { return {.low = low, .high = high}; }
constexpr Range list_of(Range each) {
  each.list = true;
  return each;
}

constexpr Range phrases_of(PhraseCheck check) { return {.phrases = check}; }

namespace detail {
struct IgnoreFields {
  template <class... Args>
  void operator()(Args&&...) const {}
};
}  // namespace detail

template <class T>
concept HasFields = requires(T& self) {
  T::fields(self, detail::IgnoreFields{});
};

// A struct whose values live in files of a folder under specs/: `static constexpr std::string_view
// library = "devices"`. A field of such a type may be written as a bare name.
template <class T>
concept InLibrary = requires {
  T::library;
};

}  // namespace engine
