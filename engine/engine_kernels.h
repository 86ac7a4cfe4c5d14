// What an inference engine's kernels are like on a device: which of a step's kernels it runs, and how.
#pragma once

#include "engine/calibration/parameter_set.h"
#include "engine/hardware/cluster.h"
#include "engine/model/model_ops.h"
#include "engine/serving/settings/serving_settings.h"

namespace engine {

// What attention kernels do with unequal work; neither is automatic.
struct AttentionHabits {
  MixedAttention mixed = MixedAttention::separate;
  DecodeParts parts = DecodeParts::by_length;
};

// Of an engine's settings on a device of this generation.
// Whether it matters on a device whose attention kernels an engine runs.
bool attention_kernels_differ(const Device& device);

AttentionHabits attention_habits(const ServingSettings& serving, ParameterSet generation);

// Takes an engine's kernels on a device to the shard that runs there.
void choose_kernels(const ServingSettings& serving, const Device& device, const Fabric& fabric,
                    ModelShard& shard);

}  // namespace engine
