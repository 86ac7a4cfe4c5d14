// Pipelines of several chunks a stage (interleaved), and of passes side by side.
#pragma once

#include "engine/training/pipeline/pipeline_schedule.h"

namespace engine {

// From the first pass to the end of the last one. Once all stages stand as they stood one round through all chunks ago,
// only later, what lies between is repeated without being followed.
Seconds time_by_chunks(const Pipeline& pipeline);

}  // namespace engine
