// Pipelines of several chunks a stage (interleaved).
#pragma once

#include "engine/training/pipeline_schedule.h"

namespace engine {

// From the first pass to the end of the last one, every pass followed once.
Seconds time_by_chunks(const Pipeline& pipeline);

}  // namespace engine
