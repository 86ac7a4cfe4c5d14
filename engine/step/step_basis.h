// What step times follow from besides the batch, as a value that can be kept and compared.
#pragma once

#include <string>

#include "engine/step/step_time.h"

namespace engine {

class StepBasis {
 public:
  StepBasis() = default;
  explicit StepBasis(const StepContext& context);

  // Step times in this context are those of the basis.
  bool holds_for(const StepContext& context) const;
  const HostSettings& host() const { return host_; }

 private:
  Device device_;
  Fabric fabric_;
  ModelSpec model_;
  Parallelism parallel_;
  Quantization quant_;
  Sampling sampling_ = Sampling::greedy;
  AllReduce all_reduce_ = AllReduce::custom;
  bool joined_attention_ = false;
  bool even_parts_ = false;
  HostSettings host_;
  const Calibration* calibration_ = nullptr;
  std::string checksum_;  // of the calibration: another one may come to lie at the same address
  bool known_ = false;
};

}  // namespace engine
