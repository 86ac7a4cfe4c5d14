#include "engine/tasks/report_array.h"

#include "engine/kernels/array.h"

namespace engine {

void report_array(const OpList& ops, const Device& device, Metrics& metrics) {
  const SystolicArray& array = device.array;
  const double multipliers = double(array.rows) * double(array.columns) * device.processors();
  ArrayCall sum;
  for (const PlannedOp& planned : ops) {
    if (const auto call = array_call(planned.op, device)) sum.add(*call, planned.calls);
  }
  metrics.array_cycles = sum.cycles;
  metrics.array_utilization = sum.cycles > 0 ? sum.multiplies / (sum.cycles * multipliers) : 0;
  metrics.multiply_energy = array.multiply_energy * sum.multiplies;
  metrics.buffer_energy = array.buffer_energy * sum.buffer.value;
  metrics.memory_energy = array.memory_energy * sum.memory.value;
  metrics.array_energy = metrics.multiply_energy + metrics.buffer_energy + metrics.memory_energy;
  constexpr double mib = 0x1p20, um2_per_mm2 = 1e6;
  metrics.area_mm2 = multipliers * array.multiplier_area_um2 / um2_per_mm2 +
                     device.l2_capacity.value / mib * array.buffer_area_mm2;
}

}  // namespace engine
