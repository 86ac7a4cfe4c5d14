#include "engine/kernels/form.h"

namespace engine {

KernelTime fitted_time(const FormTime& form, Flops flops, Bytes bytes, const SetFacts& set,
                       ParameterSet chosen, const Coordinates& shape) {
  double factor = 1e-6;
  double time = std::max(form.time, form.least);
  if (!set.points.empty()) {
    const double ratio = std::exp(set.points.residual_at(shape));
    factor *= ratio;
    time *= ratio;
  }
  time = std::max(time, form.least);
  const bool own = set.tier == Tier::measured;
  return {.compute = Seconds{form.compute * factor},
          .memory = Seconds{form.memory * factor},
          .l2 = Seconds{form.l2 * factor},
          .launch = Seconds{form.launch * factor},
          .time = Seconds{time * 1e-6},
          .least = Seconds{form.least * 1e-6},
          .flops = flops,
          .bytes = bytes,
          .tier = set.tier,
          .extrapolated = !set.envelope.contains(shape) || (chosen == ParameterSet::pooled && !own),
          .low = set.low,
          .high = set.high};
}

}  // namespace engine
