// One fitted parameter of a form: its word, unit and meaning, and where a fit looks for it.
#pragma once

#include <string_view>
#include <type_traits>

namespace engine {

// Where the search starts, and the values that make physical sense. The starts are round middle values:
// they know no device.
struct SearchRange {
  double start = 0;
  double low = 0;
  double high = 0;

  // Not searched: a choice (as the rows of a tile) or a fact, and no quantity.
  constexpr bool empty() const { return low == high; }
};

template <class Fit>
struct Parameter {
  std::string_view name;
  double Fit::*member;
  // "us", "kclock" (a thousand clocks), ...; empty: a share, a ratio or a number.
  std::string_view unit;
  std::string_view meaning;
  SearchRange search = {};
  std::string_view former = {};  // its name in files of format 1
};

// visit(parameter, value) for each, in the order in which a calibration's text has them.
template <class Fit, class Visit>
void each_parameter(Fit& fit, Visit&& visit) {
  static constexpr auto parameters = std::remove_const_t<Fit>::parameters();
  for (const auto& parameter : parameters) visit(parameter, fit.*parameter.member);
}

}  // namespace engine
