#include "engine/calibration/parameter_set.h"

namespace engine {

ParameterSet choose_set(const Device& device) {
  const std::string_view name = device.architecture;
  if (name == "Hopper") return ParameterSet::hopper;
  if (name == "Blackwell" || name == "Blackwell Ultra") return ParameterSet::blackwell;
  if (name == "Ampere") {
    constexpr double large_scratch = 160 * 1024;
    return device.shared_memory.value >= large_scratch ? ParameterSet::ampere
                                                       : ParameterSet::synchronous;
  }
  for (const std::string_view older : {"Ada", "Blackwell RTX", "Turing", "Volta", "Pascal"}) {
    if (name == older) return ParameterSet::synchronous;
  }
  constexpr double small_processor = 16384;  // FLOP a clock; B200's do 8192
  const double rate =
      matrix_peak(device, Dtype::bf16).value + matrix_peak(device, Dtype::fp16).value;
  const double each = rate / 2 / (double(device.multiprocessors) * device.clock.value);
  return each <= small_processor ? ParameterSet::pooled : ParameterSet::none;
}

}  // namespace engine
