#include <algorithm>
#include <cmath>

#include "engine/comm/collective_form.h"
#include "engine/comm/collective_time.h"

namespace engine {
namespace {

double overlapped(double a, double b, double p) {
  const double longer = std::max(a, b);
  return longer <= 0 ? 0 : longer * std::pow(1 + std::pow(std::min(a, b) / longer, p), 1 / p);
}

// Eight-bit values travel with their scales.
double travelling_bytes(const ExpertExchange& op) {
  return op.value_bytes < 2 ? 1.03 * op.value_bytes : op.value_bytes;
}

// Every copy goes straight to its expert.
CollectiveTime low_latency(const ExpertExchange& op, double rate, double scale,
                           const ExchangeFit& fit) {
  const double bytes = op.tokens * double(op.top_k * op.hidden) * travelling_bytes(op);
  const double start = scale * (fit.a + fit.ae * double(op.experts) / 100);
  const double total = overlapped(start, bytes / (rate * fit.e), fit.pn);
  return {.latency = Seconds{start * 1e-6},
          .transfer = Seconds{(total - start) * 1e-6},
          .bytes = Bytes{bytes},
          .algorithm = Algorithm::low_latency};
}

// A token goes once to each device that holds one of its experts.
CollectiveTime normal(const ExpertExchange& op, double rate, double scale, const ExchangeFit& fit) {
  const double ranks = double(op.ranks);
  const double reached = -ranks * std::expm1(double(op.top_k) * std::log1p(-1 / ranks));
  const double bytes = op.tokens * reached * double(op.hidden) * travelling_bytes(op);
  const double senders = double(op.multiprocessors);
  const double start = scale * fit.a + fit.ct * op.tokens / senders / 100;
  const double moving =
      overlapped(bytes / (senders * fit.cs * 1e3), bytes / (rate * fit.e), fit.pn);
  return {.latency = Seconds{start * 1e-6},
          .transfer = Seconds{moving * 1e-6},
          .bytes = Bytes{bytes},
          .algorithm = Algorithm::direct};
}

}  // namespace

CollectiveTime exchange_time(const ExpertExchange& op, const Fabric& fabric, const Device& device,
                             const Calibration* calibration) {
  const bool one_node = op.ranks <= fabric.devices_per_node;
  if (calibration != nullptr && one_node && op.ranks > 1) {
    const Path path = path_inside(fabric, double(op.ranks));
    const ParameterSet chosen = link_set(device, path);
    const double rate = path.bandwidth / 1e6;
    const bool combine = op.way == ExpertExchange::Way::combine;
    const Coordinates shape = coordinates(op.tokens, op.hidden, op.top_k, op.experts);
    CollectiveTime best;
    bool found = false;
    const auto consider = [&](ExchangeKind kind, auto form) {
      const auto* set = find_set(calibration->exchange[static_cast<std::size_t>(kind)], chosen);
      if (set == nullptr || !path.any_to_any || rate <= 0) return;
      CollectiveTime time = form(op, rate, 1.0, set->fit);
      time.extrapolated = op.ranks != 8;  // the only size the tables have
      label(time, 0, *set, shape);
      if (!found || time.total() < best.total()) best = time;
      found = true;
    };
    if (op.kernels != ExpertExchange::Kernels::normal) {
      consider(combine ? ExchangeKind::low_latency_combine : ExchangeKind::low_latency_dispatch,
               low_latency);
    }
    if (op.kernels != ExpertExchange::Kernels::low_latency) {
      consider(combine ? ExchangeKind::normal_combine : ExchangeKind::normal_dispatch, normal);
    }
    if (found) return best;
  }
  const double bytes = op.tokens * double(op.top_k * op.hidden) * op.value_bytes;
  return collective_time({.pattern = Pattern::all_to_all, .bytes = bytes, .ranks = op.ranks},
                         fabric, device, calibration);
}

}  // namespace engine
