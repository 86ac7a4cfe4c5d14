// Attention over unequal contexts: how much longer it takes than over equal ones, measured and predicted.
#pragma once

#include <string>

#include "engine/base/result.h"
#include "engine/resources.h"
#include "tools/validate_serving/vllm_runs.h"

namespace tools {

// Mean absolute errors, in percent, of taking unequal contexts for equal and of predicting what they
// add, over the calls of skew.csv.gz in the run's profile; "" where there is none.
engine::Result<std::string> uneven_contexts(const MeasuredRun& run,
                                            const engine::Resources& resources);

}  // namespace tools
