// Where the measured calls of a family are kept in a calibration: what a calibration tool fills.
#pragma once

#include <string>
#include <utility>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/model/op.h"

namespace engine {

struct OwnSlot {
  SetFacts* facts = nullptr;  // nullptr: the family has no calibrated form
  CoordinateList coordinates;
  std::string section;  // "gemm/bf16/own"
};

// The device's own set for calls like `op`. Where there is none yet it begins as a copy of the set
// that speaks for the device now (or as the plain roofline of its form), without points: kernel_time
// then gives the base that residuals are taken from. Good until the calibration is copied.
OwnSlot own_slot(Calibration& calibration, Family family, const Op& op, const Device& device);

// For kernel models: what they need to find the slot of one of their calls.
struct SlotContext {
  Calibration& calibration;
  Family family;
  const Device& device;
};

// The slot in `sets` of the context's calibration; a new one begins as what `base` says of the device.
template <class Fit>
OwnSlot slot_in(FittedSets<Fit>& sets, const FittedSets<Fit>& base, const SlotContext& context) {
  if (sets.find(ParameterSet::own) == nullptr) {
    FittedSet<Fit> begun;
    if (const FittedSet<Fit>* from = find_set(base, choose_set(context.device))) {
      begun.fit = from->fit;
      begun.launch = from->launch;
      begun.low = from->low;
      begun.high = from->high;
    } else {
      // Floors of forms that no table speaks for start at the device's own launch latency.
      begun.launch = context.device.launch_latency.value * 1e6;
      if constexpr (requires { begun.fit.floor; }) begun.fit.floor = begun.launch;
    }
    begun.tier = Tier::measured;
    sets.edit(ParameterSet::own) = std::move(begun);
  }
  OwnSlot slot{&sets.edit(ParameterSet::own), coordinates_for<Fit>(), {}};
  const void* const wanted = &sets;
  Calibration::sections(context.calibration, [&](SectionName name, const auto& some) {
    if (&some == wanted) slot.section = std::string(name) + "/own";
  });
  return slot;
}

}  // namespace engine
