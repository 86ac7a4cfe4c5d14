#include "engine/kernels/form.h"

namespace engine {
namespace {

// What a form saves without one of its parts: its floor overlaps with nothing, and of what arithmetic and traffic take
// together, one is left without the other. The parts of each of the two share what it costs, in proportion.
Savings form_savings(const FormTime& form, double factor) {
  const double traffic = form.memory + form.l2;
  const double work = form.time - form.launch;
  const double by_compute = std::max(0.0, work - traffic) * factor;
  const double by_traffic = std::max(0.0, work - form.compute) * factor;
  const double cached = form.l2 > 0 ? by_traffic * (form.l2 / traffic) : 0;
  Savings saved;
  saved[Bound::compute] = Seconds{by_compute * form.arithmetic_share};
  saved[Bound::memory] = Seconds{by_traffic - cached + by_compute * form.memory_share};
  saved[Bound::l2] = Seconds{cached + by_compute * form.cache_share};
  saved[Bound::launch] = Seconds{form.launch * factor};
  return saved;
}

}  // namespace

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
          .extrapolated = !set.envelope.contains(shape) || (is_unmeasured(chosen) && !own),
          .low = set.low,
          .high = set.high,
          // A time that was measured, or is as long as physics asks, splits as its form does.
          .saved = form_savings(form, time / form.time * 1e-6)};
}

}  // namespace engine
