// What points share and a scenario only names: large read-only data that someone else has loaded.
#pragma once

#include "engine/calibration/calibrations.h"

namespace engine {

struct Resources {
  Calibrations calibrations;
};

}  // namespace engine
