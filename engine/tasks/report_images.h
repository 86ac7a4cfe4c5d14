// What tasks about images have in common: figures of a batch of images whose time is known.
#pragma once

#include <cstdint>

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/step/step_time.h"

namespace engine {

// A replica does `images` in this time, by the kernels of the outcome.
void report_images(const Scenario& scenario, const StepTime& time, std::int64_t images,
                   Outcome& outcome);

}  // namespace engine
