// Text of enumerators, both ways. An enum that appears in specs or tables is `enum class E :
// std::uint8_t` counting from zero, with `constexpr auto enum_names(E)` returning the array of its
// names in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace engine {

template <class E>
concept NamedEnum = std::is_enum_v<E> && std::is_same_v<std::underlying_type_t<E>, std::uint8_t> &&
    requires(E e) {
  enum_names(e).size();
};

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  return enum_names(value)[static_cast<std::size_t>(value)];
}

template <NamedEnum E>
constexpr std::optional<E> from_name(std::string_view name) {
  const auto& names = enum_names(E{});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace engine
