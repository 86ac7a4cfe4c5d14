// Tables whose entries have a name, and enums that are positions in one: `enum class PolicyName`
// counts the entries of `kPolicies`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace engine {

// The names of all entries: what `enum_names` of the enum returns.
template <class Entry, std::size_t count>
constexpr std::array<std::string_view, count> names_of(const std::array<Entry, count>& table) {
  std::array<std::string_view, count> names;
  for (std::size_t i = 0; i < count; ++i) names[i] = table[i].name;
  return names;
}

// The position of an entry that C++ code mentions; one that is not in the table does not compile.
template <class Position, class Entry, std::size_t count>
consteval Position position_named(const std::array<Entry, count>& table, std::string_view name) {
  std::size_t i = 0;
  while (table.at(i).name != name) ++i;
  return static_cast<Position>(i);
}

// The positions, as bits, of all entries that have a property: a member that is true, or a member function that says so.
template <auto property, class Entry, std::size_t count>
constexpr std::uint64_t positions_with(const std::array<Entry, count>& table) {
  std::uint64_t positions = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::invoke(property, table[i])) positions |= std::uint64_t{1} << i;
  }
  return positions;
}

}  // namespace engine
