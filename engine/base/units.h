// Strong types for physical quantities: which numbers may be added, and what their ratio is.
// Values are held in SI base units (seconds, bytes, floating-point operations, joules, dollars);
// scaling to "3.35 TB/s" or "$2.10 per hour" happens only at the edges.
#pragma once

#include <compare>

namespace engine {

// A number with a dimension, given as integer exponents of the base units.
template <int Time, int Byte, int Flop, int Joule, int Dollar, int Request, int Token>
struct Quantity {
  double value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator+(Quantity other) const { return Quantity{value + other.value}; }
  constexpr Quantity operator-(Quantity other) const { return Quantity{value - other.value}; }
  constexpr Quantity operator*(double factor) const { return Quantity{value * factor}; }
  constexpr Quantity operator/(double divisor) const { return Quantity{value / divisor}; }
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  constexpr Quantity& operator-=(Quantity other) { return value -= other.value, *this; }
  constexpr Quantity& operator*=(double factor) { return value *= factor, *this; }
};

template <int... A>
constexpr Quantity<A...> operator*(double factor, Quantity<A...> quantity) {
  return quantity * factor;
}

// A product or quotient whose exponents all cancel is a plain number.
template <int... A, int... B>
constexpr auto operator*(Quantity<A...> a, Quantity<B...> b) {
  if constexpr (((A + B == 0) && ...)) {
    return a.value * b.value;
  } else {
    return Quantity<(A + B)...>{a.value * b.value};
  }
}
template <int... A, int... B>
constexpr auto operator/(Quantity<A...> a, Quantity<B...> b) {
  if constexpr (((A - B == 0) && ...)) {
    return a.value / b.value;
  } else {
    return Quantity<(A - B)...>{a.value / b.value};
  }
}

using Seconds = Quantity<1, 0, 0, 0, 0, 0, 0>;
using Hertz = Quantity<-1, 0, 0, 0, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0, 0, 0, 0>;
using BytesPerSecond = Quantity<-1, 1, 0, 0, 0, 0, 0>;
using Flops = Quantity<0, 0, 1, 0, 0, 0, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1, 0, 0, 0, 0>;
using Joules = Quantity<0, 0, 0, 1, 0, 0, 0>;
using Watts = Quantity<-1, 0, 0, 1, 0, 0, 0>;
using Dollars = Quantity<0, 0, 0, 0, 1, 0, 0>;
using DollarsPerSecond = Quantity<-1, 0, 0, 0, 1, 0, 0>;
using RequestsPerSecond = Quantity<-1, 0, 0, 0, 0, 1, 0>;
using TokensPerSecond = Quantity<-1, 0, 0, 0, 0, 0, 1>;

// How a dimension is written at the edges: the symbol in messages and metadata, the suffix of a
// Parquet column, and how many of that unit make one base unit.
struct Unit {
  const char* symbol = "";
  const char* suffix = "";
  double per_base = 1;
};

template <class Q>
struct UnitOf;
template <>
struct UnitOf<Seconds> {
  static constexpr Unit unit{"s", "s"};
};
template <>
struct UnitOf<Hertz> {
  static constexpr Unit unit{"Hz", "hz"};
};
template <>
struct UnitOf<Bytes> {
  static constexpr Unit unit{"B", "bytes"};
};
template <>
struct UnitOf<BytesPerSecond> {
  static constexpr Unit unit{"B/s", "bytes_per_s"};
};
template <>
struct UnitOf<Flops> {
  static constexpr Unit unit{"FLOP", "flops"};
};
template <>
struct UnitOf<FlopsPerSecond> {
  static constexpr Unit unit{"FLOP/s", "flops_per_s"};
};
template <>
struct UnitOf<Joules> {
  static constexpr Unit unit{"J", "j"};
};
template <>
struct UnitOf<Watts> {
  static constexpr Unit unit{"W", "w"};
};
template <>
struct UnitOf<Dollars> {
  static constexpr Unit unit{"USD", "usd"};
};
template <>
struct UnitOf<DollarsPerSecond> {
  static constexpr Unit unit{"USD/h", "usd_per_hour", 3600};
};
template <>
struct UnitOf<RequestsPerSecond> {
  static constexpr Unit unit{"req/s", "req_per_s"};
};
template <>
struct UnitOf<TokensPerSecond> {
  static constexpr Unit unit{"tok/s", "tokens_per_s"};
};

template <class T>
concept IsQuantity = requires {
  UnitOf<T>::unit;
};

}  // namespace engine
