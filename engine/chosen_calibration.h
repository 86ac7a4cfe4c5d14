// Which of the loaded calibrations a point's kernel times come from.
#pragma once

#include "engine/calibration/calibrations.h"
#include "engine/scenario.h"

namespace engine {

inline CalibrationWish calibration_wish(const Scenario& scenario) {
  return {scenario.calibration.tier, scenario.calibration.name, scenario.serving.kernels};
}

inline CalibrationChoice chosen_calibration(const Scenario& scenario,
                                            const Calibrations& calibrations) {
  return choose_calibration(calibration_wish(scenario), scenario.device, calibrations);
}

}  // namespace engine
