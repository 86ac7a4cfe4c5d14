// The fitted form of tiled matrix products.
#pragma once

#include "engine/calibration/product_families.h"
#include "engine/kernels/form.h"

namespace engine {

struct GemmShape {
  double m = 1;
  double n = 1;
  double k = 1;
  double groups = 1;
  double input_bytes = 2;   // of one value of A
  double weight_bytes = 2;  // of one value of W
  double weights = 0;       // bytes of all W, scales included
  double bytes = 0;         // of everything
  double distinct = 1;      // share of A that differs: filters of a convolution overlap
  double output_bytes = 2;  // of one value of C
  double peak = 1;          // FLOP a microsecond
};

FormTime gemm_form(const GemmShape& shape, const DeviceRates& device, const GemmFit& fit,
                   double floor);

// Work on the matrix units, whatever its shape.
struct SteadyWork {
  double flops;
  double input_bytes, weight_bytes;  // of one value of either operand
  double peak;                       // FLOP a microsecond
};

// Microseconds that it takes in large products: whole tiles of the largest kind, so many that nothing else counts, at the clock that the
// device sustains.
double steady_time(const SteadyWork& work, const DeviceRates& device, const GemmFit& fit);

}  // namespace engine
