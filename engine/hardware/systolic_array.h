// A grid of multiplier-accumulators that data flows through: what an accelerator of one's own design is described by. Its buffer is the
// device's last-level cache, and a device with several grids has as many multiprocessors.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"

namespace engine {

enum class Dataflow : std::uint8_t {
  weight_stationary,  // weights stay, rows of the input pass
  output_stationary,  // sums stay, the inner dimension passes
};
constexpr std::array<std::string_view, 2> enum_names(Dataflow) {
  return {"weight_stationary", "output_stationary"};
}

// A grid of rows and no columns is refused, so that rows alone decide.
inline constexpr const Condition& with_grid =
    said<"the device has a grid of multipliers (device.array.rows)",
         is_above<"device.array.rows", 0>>;
inline constexpr const Condition& with_grid_figures =
    said<"task {}, which have figures of grids", task_has<&TaskTraits::shows_grids>>;

// What energies and areas of a grid are made of, and no time.
inline constexpr Range in_grid_figures = non_negative.neither()
                                             .for_no_time()
                                             .where(with_grid)
                                             .where(with_grid_figures)
                                             .where(where_requests_are);

struct SystolicArray {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Dataflow dataflow = Dataflow::weight_stationary;
  Joules multiply_energy;
  Joules buffer_energy;
  Joules memory_energy;
  double multiplier_area_um2 = 0;
  double buffer_area_mm2 = 0;

  bool on() const { return rows > 0 && columns > 0; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rows", self.rows,
          "rows of a grid of multipliers that does the device's matrix products; 0: the device has "
          "none, and products are timed as a GPU's",
          non_negative.neither());
    visit("columns", self.columns, "columns of that grid", non_negative.neither());
    visit("dataflow", self.dataflow,
          "what stays in the grid while the rest passes: weight_stationary (the inner dimension "
          "lies along rows, the output's columns along columns) or output_stationary (the output "
          "lies in the grid)",
          any_value.where(with_grid));
    visit("multiply_energy", self.multiply_energy, "energy of one multiplication and its addition",
          in_grid_figures);
    visit("buffer_energy", self.buffer_energy,
          "energy of one byte from or to the buffer (device.l2_capacity)", in_grid_figures);
    visit("memory_energy", self.memory_energy, "energy of one byte from or to memory",
          in_grid_figures);
    visit("multiplier_area_um2", self.multiplier_area_um2,
          "area of one multiplier with its adder, in square micrometres", in_grid_figures);
    visit("buffer_area_mm2", self.buffer_area_mm2,
          "area of a MiB of the buffer (device.l2_capacity), in square millimetres",
          in_grid_figures);
  }

  bool operator==(const SystolicArray&) const = default;
};

}  // namespace engine
