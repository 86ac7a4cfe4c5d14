// Fitted parameters of one form for one set of devices, how far they may be trusted, and the sets of a family.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/enum_names.h"
#include "engine/base/tier.h"
#include "engine/calibration/coordinates.h"
#include "engine/calibration/parameter_set.h"
#include "engine/calibration/point_set.h"

namespace engine {

// Shapes the fit has seen; an empty one has no limits.
struct Envelope {
  std::array<double, kMostCoordinates> low{};
  std::array<double, kMostCoordinates> high{};
  bool known = false;

  bool contains(const Coordinates& shape) const {
    bool inside = true;
    for (std::size_t i = 0; i < shape.count; ++i) {
      inside = inside && shape.value[i] >= low[i] && shape.value[i] <= high[i];
    }
    return inside || !known;
  }
  // Nothing is inside.
  static Envelope nowhere() {
    Envelope envelope{.known = true};
    envelope.low.fill(1);
    envelope.high.fill(-1);
    return envelope;
  }
};

// What holds for every fitted set, whatever its form.
struct SetFacts {
  Tier tier = Tier::transfer;
  // us; launch latency of the fitted device: another one's floor differs by the rest
  double launch = 0;
  double low = 1;  // 5% and 95% of measured over predicted time, on calls the fit did not see
  double high = 1;
  Envelope envelope;
  PointSet points;
};

template <class Fit>
struct FittedSet : SetFacts {
  Fit fit;
};

// The sets of one family and format. Copies share them until one is changed, which then gets a copy of its own. So a copy of a calibration
// costs some pointers, and never sees what is done to another.
template <class Fit>
class FittedSets {
 public:
  using Set = FittedSet<Fit>;

  // nullptr where the family has no such set.
  const Set* find(ParameterSet set) const { return sets_[index(set)].get(); }

  // The set to change; made where there is none. Good until the calibration is copied.
  Set& edit(ParameterSet set) {
    std::shared_ptr<Set>& here = sets_[index(set)];
    if (here == nullptr) {
      here = std::make_shared<Set>();
    } else if (here.use_count() > 1) {
      here = std::make_shared<Set>(*here);
    }
    return *here;
  }

  // Takes over what the other has and this one lacks.
  void complete_by(const FittedSets& other) {
    for (std::size_t i = 0; i < kParameterSets; ++i) {
      if (sets_[i] == nullptr) sets_[i] = other.sets_[i];
    }
  }

  bool any() const {
    return std::ranges::any_of(sets_, [](const auto& set) { return set != nullptr; });
  }

  // visit(which, set) for each that is there.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < kParameterSets; ++i) {
      if (sets_[i] != nullptr) visit(ParameterSet(i), std::as_const(*sets_[i]));
    }
  }
  template <class Visit>
  void each_edit(Visit&& visit) {
    for (std::size_t i = 0; i < kParameterSets; ++i) {
      if (sets_[i] != nullptr) visit(ParameterSet(i), edit(ParameterSet(i)));
    }
  }

 private:
  static constexpr std::size_t index(ParameterSet set) { return static_cast<std::size_t>(set); }

  std::array<std::shared_ptr<Set>, kParameterSets> sets_;
};

// The shared set that speaks for devices of the generation `chosen` (see choose_set): its own, or a wider one;
// nullptr where the family has none.
template <class Fit>
const FittedSet<Fit>* find_shared_set(const FittedSets<Fit>& sets, ParameterSet chosen) {
  if (chosen == ParameterSet::none) return nullptr;
  for (ParameterSet set = chosen;; set = wider_set(set)) {
    if (const auto* found = sets.find(set)) return found;
    if (set == ParameterSet::pooled) return nullptr;
  }
}

// The same, but the sweep of the device itself comes first.
template <class Fit>
const FittedSet<Fit>* find_set(const FittedSets<Fit>& sets, ParameterSet chosen) {
  if (const auto* own = sets.find(ParameterSet::own)) return own;
  return find_shared_set(sets, chosen);
}

// The set is a sweep's own, whether the device is still the one that was swept or was altered since.
template <class Fit>
bool is_own(const FittedSets<Fit>& sets, const FittedSet<Fit>* set) {
  return set == sets.find(ParameterSet::own);
}

// Sets of a family that has several kinds or formats, by their number.
template <class Fit, class Kind>
using FittedTable = std::array<FittedSets<Fit>, enum_names(Kind{}).size()>;

// "gemm/fp8": a family and one of its formats or kinds.
struct SectionName {
  std::string_view family;
  std::string_view kind;

  operator std::string() const { return std::string(family) + "/" + std::string(kind); }
};

// Visits the sets of every kind of a family.
template <class Kind, class Table, class Visit>
void each_kind(std::string_view family, Table& table, Visit&& visit) {
  constexpr auto names = enum_names(Kind{});
  for (std::size_t i = 0; i < names.size(); ++i) visit(SectionName{family, names[i]}, table[i]);
}

}  // namespace engine
