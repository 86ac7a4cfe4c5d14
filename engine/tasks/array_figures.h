// Figures of a device whose matrix products a grid of multipliers does (device.array).
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

struct ArrayFigures {
  double array_cycles = kNoValue;
  double array_utilization = kNoValue;
  Joules multiply_energy{kNoValue};
  Joules buffer_energy{kNoValue};
  Joules memory_energy{kNoValue};
  double area_mm2 = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("array_cycles", self.array_cycles,
          "tasks step and classify with device.array: cycles in which one device's grids fill with "
          "and work on matrix products, attention among them; buffer and memory may take longer");
    visit("array_utilization", self.array_utilization,
          "tasks step and classify with device.array: multiplications over what the grids could do "
          "in array_cycles");
    visit("multiply_energy", self.multiply_energy,
          "tasks step and classify with device.array: energy of one device's multiplications in "
          "matrix products");
    visit("buffer_energy", self.buffer_energy,
          "tasks step and classify with device.array: energy of what matrix products move between "
          "grids and buffer, on one device");
    visit("memory_energy", self.memory_energy,
          "tasks step and classify with device.array: energy of what matrix products move between "
          "buffer and memory, on one device");
    visit("area_mm2", self.area_mm2,
          "tasks step and classify with device.array: area of the multipliers and the buffer of "
          "one device");
  }
};

}  // namespace engine
