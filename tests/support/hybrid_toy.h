// A shipped model of scans and attention on one device, without a host.
#pragma once

#include "tests/support/shipped.h"

namespace toys {

inline engine::Scenario hybrid() {
  engine::Scenario point = shipped("models", "bamba-9b");
  point.device = shipped("devices", "h100-sxm").device;
  point.host = shipped("hosts", "none").host;
  point.calibration.tier = engine::TierChoice::transfer;
  point.step.batch = 8;
  return point;
}

}  // namespace toys
