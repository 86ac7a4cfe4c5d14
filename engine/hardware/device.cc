#include "engine/hardware/device.h"

namespace engine {
namespace {

FlopsPerSecond rated_peak(const MatrixPeaks& peak, Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return peak.fp32;
    case Dtype::bf16:
      return peak.bf16;
    case Dtype::fp16:
      return peak.fp16;
    case Dtype::fp8:
      return peak.fp8;
    case Dtype::int8:
      return peak.int8;
    case Dtype::int4:
      return peak.int4;
    case Dtype::fp4:
      return peak.fp4;
  }
  return {};
}

}  // namespace

FlopsPerSecond matrix_peak(const Device& device, Dtype dtype) {
  const double size = device.rated_multiprocessors > 0 && device.multiprocessors > 0
                          ? double(device.multiprocessors) / double(device.rated_multiprocessors)
                          : 1;
  return rated_peak(device.peak, dtype) * (size * device.on_chip_scale());
}

}  // namespace engine
