#include "engine/kernels/quantize.h"

#include "engine/kernels/elementwise.h"
#include "engine/kernels/form.h"
#include "engine/kernels/gemm.h"

namespace engine {

KernelTime quantize_time(const Quantize& op, const Device& device, const Calibration* calibration) {
  const double values = op.rows * op.width;
  const double bytes = values * (2 + bytes_of(op.format));
  const Flops work{3 * values};
  if (calibration != nullptr && has_gemm_format(op.format, op.format)) {
    const ParameterSet chosen = choose_set(device);
    const GemmFormat format = gemm_format(op.format, op.format, op.group);
    const auto* set = find_set(calibration->gemm[static_cast<std::size_t>(format)], chosen);
    if (set != nullptr && set->fit.qr > 0) {
      const DeviceRates rates = device_rates(device);
      FormTime form;
      form.launch = set->fit.qf;
      form.memory =
          bytes / (rates.bandwidth * set->fit.qe) + set->fit.qr * op.rows / rates.processors;
      form.time = form.launch + form.memory;
      SetFacts facts;
      facts.low = set->low;
      facts.high = set->high;
      return fitted_time(form, work, Bytes{bytes}, facts, chosen, Coordinates{});
    }
  }
  return elementwise_time({.rows = op.rows, .resident_bytes = bytes, .flops = work.value}, device);
}

}  // namespace engine
