// What training keeps for every weight, in bytes.
#pragma once

#include "engine/training/settings/train_settings.h"

namespace engine {

constexpr double bytes_of(StateFormat format) {
  return format == StateFormat::fp32 ? 4 : format == StateFormat::bf16 ? 2 : 0;
}

struct StateBytes {
  double weights = 2;    // as products read them
  double gradients = 4;  // as micro-batches add to them
  double master = 4;     // the optimizer's own copy
  double moments = 8;    // what else the optimizer remembers
  double gradient_reads = 1;
  double optimizer() const { return master + moments; }
};

// Weights in 32 bits are the optimizer's own.
constexpr StateBytes state_bytes(const TrainSettings& train, bool wide) {
  const double moment = bytes_of(train.moments);
  StateBytes bytes{.gradients = bytes_of(train.gradients),
                   .master = bytes_of(train.master_weights)};
  if (wide) {
    bytes.weights = 4;
    bytes.master = 0;
  }
  switch (train.optimizer) {
    case Optimizer::adamw:
      bytes.moments = 2 * moment;
      break;
    case Optimizer::adam8bit:
      bytes.moments = 2;
      break;
    case Optimizer::adafactor:
      bytes.moments = 0;  // a row and a column of each matrix
      // For sums over rows and columns, for the size of the update, which is bounded, and to apply it (Shazeer and Stern,
      // 2018, algorithm 4).
      bytes.gradient_reads = 3;
      break;
    case Optimizer::muon:
    case Optimizer::sgd:
      bytes.moments = moment;
      break;
  }
  return bytes;
}

// What one step of the optimizer reads and writes.
constexpr double optimizer_traffic(const StateBytes& bytes) {
  const double own = bytes.master > 0 ? 2 * bytes.master : bytes.weights;
  return bytes.gradient_reads * bytes.gradients + own + 2 * bytes.moments + bytes.weights;
}

}  // namespace engine
