// What training points use one after another: times of kernels that they share are worked out once.
#pragma once

#include <array>
#include <vector>

#include "engine/step/call_rows.h"
#include "engine/step/step_inputs.h"
#include "engine/training/pipeline/pipeline_schedule.h"
#include "engine/training/run/long_run.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

struct PassCalls {
  CallRows forward, inputs, weights;

  // What is computed again is a part of the forward operations, so that those of one name are others in each way of choosing them.
  CallRows& recomputed(const TrainSettings& train) {
    const bool stops = train.early_stop && train.recompute_layers == 1;
    return recomputed_[std::size_t(train.recompute) * 2 + (stops ? 1 : 0)];
  }
  void clear() {
    const auto forget = [](CallRows& rows) {
      if (!rows.empty()) rows.clear();
    };
    for (CallRows* rows : {&forward, &inputs, &weights}) forget(*rows);
    for (CallRows& rows : recomputed_) forget(rows);
  }

 private:
  std::array<CallRows, 2 * enum_names(Recompute{}).size()> recomputed_;
};

// Calls of the passes of a micro-batch on devices of one kind. Strategies that differ in stages, replicas, schedules,
// recomputation or what is shared out have them in common.
class KnownCalls {
 public:
  // Forgets what is of other devices than these.
  void begin(const StepContext& context);

  // Of chunks that have the same kinds of layers, and so the same operations in the same order.
  PassCalls& of(const LayerCounts& layers) {
    return calls_[(layers.dense > 0 ? 1 : 0) + (layers.mixture > 0 ? 2 : 0) +
                  (layers.attending() > 0 ? 4 : 0) + (layers.scanning > 0 ? 8 : 0)];
  }

 private:
  std::array<PassCalls, 16> calls_;
  StepInputs of_;
};

// How many times as much as the mean the device draws that draws most for the same work: points have it in common.
class Hungriest {
 public:
  double of(double spread, double devices) {
    if (spread != spread_ || devices != devices_) {
      times_ = devices > 1 ? mean_slowest_factor(spread, devices) : 1;
      spread_ = spread;
      devices_ = devices;
    }
    return times_;
  }

 private:
  double spread_ = 0, devices_ = 1, times_ = 1;
};

struct TrainScratch {
  KnownCalls main, tail;
  Hungriest hungriest;
  std::vector<PipelinePass>* passes =
      nullptr;  // where the passes of a point are written down; null: nowhere
};

}  // namespace engine
