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

CalibrationChoice choose_calibration(const CalibrationWish& wish, const Device& device,
                                     const Calibrations& have) {
  const Calibration* measured =
      have.find(wish.name.empty() ? std::string_view(device.name) : wish.name);
  if (measured != nullptr) measured = speaking_for(*measured, device);
  const Calibration* transfer =
      wish.engine.empty() ? have.find(kTransferName) : have.find_engine(wish.engine);
  switch (wish.tier) {
    case TierChoice::roofline:
      return {};
    case TierChoice::transfer:
      return {transfer, transfer == nullptr};
    case TierChoice::measured:
      return {measured, measured == nullptr};
    case TierChoice::best:
      if (measured != nullptr) return {measured};
      return {transfer, transfer == nullptr && !wish.engine.empty()};
  }
  return {};
}

}  // namespace engine
