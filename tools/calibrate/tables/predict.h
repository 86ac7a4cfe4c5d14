// The engine's time for a row of a kernel table.
#pragma once

#include "engine/base/tier.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

struct Prediction {
  double seconds = 0;
  double lo = 0;  // nine measurements in ten lie between lo and hi
  double hi = 0;
  engine::Tier tier = engine::Tier::roofline;
  engine::Bound bound = engine::Bound::compute;
  bool extrapolated = false;
};

// Predicts calls on one device; collectives run over the device's own scale-up link. Device and
// calibration outlive it.
class Predictor {
 public:
  // No calibration: the roofline.
  Predictor(const engine::Device& device, const engine::Calibration* calibration);

  Prediction operator()(engine::Family family, const engine::Op& op) const;
  Prediction operator()(const KernelCall& call) const;

  const engine::Device& device() const { return device_; }

 private:
  const engine::Device& device_;
  const engine::Calibration* calibration_;
  engine::Fabric fabric_;
};

}  // namespace tools
