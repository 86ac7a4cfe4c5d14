// Where a field counts, as its own line in the field list says: `non_negative.where(above<"load.turns", 1>)`.
//
// A condition asks other fields, by their paths in the deployment of the field ("serving.policy") or, with a dot in front,
// beside the field in its own struct (".distribution"). engine/leaves/leaf_use.h knows whether it holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace engine {

// What follows from more than one struct. engine/leaves/facts.cc says when each holds.
enum class Fact : std::uint8_t {
  attention_kernels_differ,  // those of FlashAttention's versions, on the device
  experts_have_copies,
  kv_leaves_a_node,
  kv_takes_a_fabric,
};

// One thing that is asked.
struct Test {
  enum class Kind : std::uint8_t {
    named,      // an enumeration is one of `names`
    not_named,  // it is none of them
    above,      // a number is above `bound`
    zero,       // a leaf, or every leaf of a section, is zero
    set,        // a leaf, or some leaf of a section, is not
    has,        // `holds` of the struct at the path
    fact,
    // What follows from where the field lies, whatever the values are.
    role,     // its deployment is one of `names`
    inside,   // it lies in the section at the path
    outside,  // it does not
  };
  Kind kind = Kind::set;
  std::string_view path = {};
  std::uint64_t names = 0;  // positions, as bits
  double bound = 0;
  bool (*holds)(const void* place) = nullptr;
  Fact fact = {};
};

// Holds where one of its tests does; without tests nowhere.
struct Condition {
  // Empty: they follow from the tests. "{}" stands for the names that the first of them asks for.
  std::string_view words;
  std::array<Test, 4> tests = {};
  std::size_t count = 0;

  constexpr void add(const Test& test) { tests.at(count++) = test; }
  constexpr const Test* begin() const { return tests.data(); }
  constexpr const Test* end() const { return tests.data() + count; }
};

// All conditions are constants by themselves, so that a field list may point at them.
template <std::size_t size>
struct Text {
  char characters[size];
  consteval Text(const char (&text)[size]) { std::copy_n(text, size, characters); }
  constexpr std::string_view view() const { return {characters, size - 1}; }
};

constexpr Condition condition_of(const Test& test) {
  return {.words = {}, .tests = {test}, .count = 1};
}

// Positions of enumerators or of rows of a table, as bits.
template <auto... values>
constexpr std::uint64_t positions() {
  return ((std::uint64_t{1} << int(values)) | ...);
}

namespace detail {
template <auto property>
struct Property;
template <class T, bool (T::*property)() const>
struct Property<property> {
  static bool holds(const void* place) { return (static_cast<const T*>(place)->*property)(); }
};
template <class T, bool (*property)(const T&)>
struct Property<property> {
  static bool holds(const void* place) { return property(*static_cast<const T*>(place)); }
};

// Of an enumeration, by a function of it.
template <auto predicate>
struct Such;
template <class E, bool (*predicate)(E)>
struct Such<predicate> {
  static constexpr std::uint64_t positions() {
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < enum_names(E{}).size(); ++i) {
      if (predicate(static_cast<E>(i))) found |= std::uint64_t{1} << i;
    }
    return found;
  }
};

constexpr Condition joined(std::string_view words, auto... conditions) {
  Condition all{.words = words};
  const auto add = [&all](const Condition& one) {
    for (const Test& test : one) all.add(test);
  };
  (add(conditions), ...);
  return all;
}
}  // namespace detail

template <Text path, auto... values>
inline constexpr Condition is_one_of =
    condition_of({.kind = Test::Kind::named, .path = path.view(), .names = positions<values...>()});
template <Text path, auto... values>
inline constexpr Condition is_none_of = condition_of({.kind = Test::Kind::not_named,
                                                      .path = path.view(),
                                                      .names = positions<values...>()});
// One of those of which a function says so.
template <Text path, auto predicate>
inline constexpr Condition is_such = condition_of({.kind = Test::Kind::named,
                                                   .path = path.view(),
                                                   .names = detail::Such<predicate>::positions()});
template <Text path, std::int64_t bound>
inline constexpr Condition is_above =
    condition_of({.kind = Test::Kind::above, .path = path.view(), .bound = double(bound)});
template <Text path>
inline constexpr Condition is_zero = condition_of({.kind = Test::Kind::zero, .path = path.view()});
template <Text path>
inline constexpr Condition is_set = condition_of({.kind = Test::Kind::set, .path = path.view()});
template <Text path>
inline constexpr Condition inside = condition_of({.kind = Test::Kind::inside, .path = path.view()});
template <Text path>
inline constexpr Condition outside = condition_of({.kind = Test::Kind::outside,
                                                   .path = path.view()});
template <Fact fact>
inline constexpr Condition holds = condition_of({.kind = Test::Kind::fact, .fact = fact});

// A member function, or a function, of the struct at a path.
template <Text path, auto property>
inline constexpr Condition has = condition_of({.kind = Test::Kind::has,
                                               .path = path.view(),
                                               .holds = detail::Property<property>::holds});

// Holds where one of these does; in these words, or without any in theirs.
template <Text words, const Condition&... conditions>
inline constexpr Condition either = detail::joined(words.view(), conditions...);
// The same condition in other words.
template <Text words, const Condition& condition>
inline constexpr Condition said = detail::joined(words.view(), condition);
template <Text words>
inline constexpr Condition never = Condition{.words = words.view()};

}  // namespace engine
