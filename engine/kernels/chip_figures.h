// Figures of a chip that is described by its parts and not fitted to measurements: those of device.array.
#pragma once

#include "engine/base/no_value.h"
#include "engine/base/units.h"

namespace engine {

struct ChipFigures {
  double array_cycles = kNoValue;
  double array_utilization = kNoValue;
  Joules multiply_energy{kNoValue};
  Joules buffer_energy{kNoValue};
  Joules memory_energy{kNoValue};
  Joules array_energy{kNoValue};
  double area_mm2 = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("array_cycles", self.array_cycles,
          "tasks step and classify with device.array: cycles in which the grids of a device fill "
          "with matrix products and attention and work on them, over all stages of a pipeline; "
          "buffer and memory may take longer");
    visit("array_utilization", self.array_utilization,
          "tasks step and classify with device.array: multiplications, over what the grids could "
          "do in array_cycles");
    visit("multiply_energy", self.multiply_energy,
          "tasks step and classify with device.array: energy of the multiplications of matrix "
          "products and attention, of one device of each stage of a pipeline");
    visit("buffer_energy", self.buffer_energy,
          "tasks step and classify with device.array: energy of what matrix products and attention "
          "move between grids and buffer, of one device of each stage of a pipeline");
    visit("memory_energy", self.memory_energy,
          "tasks step and classify with device.array: energy of what matrix products and attention "
          "move between buffer and memory, of one device of each stage of a pipeline");
    visit("array_energy", self.array_energy,
          "tasks step and classify with device.array: multiply_energy_j, buffer_energy_j and "
          "memory_energy_j together");
    visit("area_mm2", self.area_mm2,
          "tasks step and classify with device.array: area of the multipliers and the buffer of "
          "one device");
  }
};

}  // namespace engine
