#include "engine/calibration/calibrations.h"

namespace engine {

CalibrationChoice choose_calibration(TierChoice tier, std::string_view name,
                                     std::string_view device, const Calibrations& have) {
  const Calibration* measured = have.find(name.empty() ? device : name);
  const Calibration* transfer = have.find(kTransferName);
  switch (tier) {
    case TierChoice::roofline:
      return {};
    case TierChoice::transfer:
      return {transfer, transfer == nullptr};
    case TierChoice::measured:
      return {measured, measured == nullptr};
    case TierChoice::best:
      return {measured != nullptr ? measured : transfer, false};
  }
  return {};
}

}  // namespace engine
