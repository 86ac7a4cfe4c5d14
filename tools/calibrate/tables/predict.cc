#include "tools/calibrate/tables/predict.h"

#include "engine/comm/collective_time.h"
#include "engine/kernels/kernel_time.h"
#include "tools/calibrate/tables/table_families.h"

namespace tools {
namespace {

template <class Time>
Prediction prediction_of(const Time& time, engine::Bound bound) {
  const double seconds = time.total().value;
  return {.seconds = seconds,
          .lo = seconds * time.low,
          .hi = seconds * time.high,
          .tier = time.tier,
          .bound = bound,
          .extrapolated = time.extrapolated};
}

}  // namespace

Predictor::Predictor(const engine::Device& device, const engine::Calibration* calibration)
    : device_(device),
      calibration_(calibration),
      fabric_(engine::fabric_of(engine::Cluster{}, device)) {}

Prediction Predictor::operator()(engine::Family family, const engine::Op& op) const {
  if (const auto* collective = std::get_if<engine::Collective>(&op)) {
    const engine::CollectiveTime time =
        engine::collective_time(*collective, fabric_, device_, calibration_);
    return prediction_of(time, engine::Bound::network);
  }
  if (const auto* exchange = std::get_if<engine::ExpertExchange>(&op)) {
    const engine::CollectiveTime time =
        engine::exchange_time(*exchange, fabric_, device_, calibration_);
    return prediction_of(time, engine::Bound::network);
  }
  const engine::KernelTime time = engine::kernel_time(family, op, device_, calibration_);
  return prediction_of(time, time.bound());
}

Prediction Predictor::operator()(const KernelCall& call) const {
  return (*this)(call.family, op_of(call));
}

}  // namespace tools
