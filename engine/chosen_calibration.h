// Which of the loaded calibrations a deployment's kernel times come from.
#pragma once

#include "engine/calibration/calibrations.h"
#include "engine/scenario.h"

namespace engine {

inline CalibrationWish calibration_wish(const CalibrationSettings& settings,
                                        const Deployment& deployment) {
  return {settings.tier, settings.name, deployment.serving.kernels};
}

inline CalibrationChoice chosen_calibration(const CalibrationSettings& settings,
                                            const Deployment& deployment,
                                            const Calibrations& calibrations) {
  return choose_calibration(calibration_wish(settings, deployment), deployment.device,
                            calibrations);
}

}  // namespace engine
