#include "engine/calibration/calibrations.h"

#include <algorithm>

#include "engine/calibration/device_facts.h"

namespace engine {
namespace {

template <class Sets>
bool any_own(const Sets& sets) {
  return std::ranges::any_of(sets, [](const auto& kind) {
    return kind[static_cast<std::size_t>(ParameterSet::own)].present;
  });
}

}  // namespace

const Calibration* speaking_for(const Calibration& measured, const Device& device) {
  if (!measured.measured_on) return &measured;
  const bool networked =
      any_own(measured.collective) || any_own(measured.between) || any_own(measured.exchange);
  const bool same = same_kernels(device, *measured.measured_on) &&
                    (!networked || same_links(device, *measured.measured_on));
  return same ? &measured : measured.altered.get();
}

CalibrationChoice choose_calibration(TierChoice tier, std::string_view name, const Device& device,
                                     const Calibrations& have) {
  const Calibration* measured = have.find(name.empty() ? std::string_view(device.name) : name);
  if (measured != nullptr) measured = speaking_for(*measured, device);
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
