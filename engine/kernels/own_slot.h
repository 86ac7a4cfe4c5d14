// Where the measured calls of a family are kept in a calibration: what a calibration tool fills.
#pragma once

#include <string>

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
// then gives the base that residuals are taken from.
OwnSlot own_slot(Calibration& calibration, Family family, const Op& op, const Device& device);

}  // namespace engine
