// The rules of engine/leaves/leaf_use.h about grids of multipliers.
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

std::vector<LeafUse> array_uses() {
  std::vector<LeafUse> uses{{"device.array.rows",
                             "the device has a grid of multipliers (device.array.columns)",
                             {above("device.array.columns", 0)}}};
  for (const std::string_view path :
       {"device.array.columns", "device.array.dataflow", "device.array.multiply_energy",
        "device.array.buffer_energy", "device.array.memory_energy",
        "device.array.multiplier_area_um2", "device.array.buffer_area_mm2"}) {
    uses.push_back({path,
                    "the device has a grid of multipliers (device.array.rows)",
                    {above("device.array.rows", 0)}});
  }
  for (const std::string_view path :
       {"device.array.multiply_energy", "device.array.buffer_energy", "device.array.memory_energy",
        "device.array.multiplier_area_um2", "device.array.buffer_area_mm2"}) {
    uses.push_back(
        {path, "the grid has columns (device.array.columns)", {above("device.array.columns", 0)}});
    uses.push_back(of_task(path, "task is step or classify, which have figures of grids",
                           {"step", "classify"}));
  }
  return uses;
}

}  // namespace engine
