// Pipelines of one chunk a stage, round by round (1f1b, zero_bubble).
#pragma once

#include "engine/training/pipeline/pipeline_schedule.h"

namespace engine {

// From the first pass to the end of the last one. In a round every stage does one backward pass, after the forward pass
// that its order puts before it. Once all stages stand as they stood some rounds ago, only later, what lies between is
// repeated without being followed.
Seconds time_by_rounds(const Pipeline& pipeline);

}  // namespace engine
