// The rules of engine/leaves/leaf_use.h about grids of multipliers.
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

// A grid of rows and no columns is refused, so that rows alone decide.
std::vector<LeafUse> array_uses() {
  constexpr std::string_view grid = "the device has a grid of multipliers (device.array.rows)";
  std::vector<LeafUse> uses{{"device.array.dataflow", grid, {above("device.array.rows", 0)}}};
  for (const std::string_view path :
       {"device.array.multiply_energy", "device.array.buffer_energy", "device.array.memory_energy",
        "device.array.multiplier_area_um2", "device.array.buffer_area_mm2"}) {
    uses.push_back({path, grid, {above("device.array.rows", 0)}});
    uses.push_back(of_task(path, "task is step or classify, which have figures of grids",
                           {"step", "classify"}));
  }
  return uses;
}

}  // namespace engine
