#include "engine/calibration/calibrations.h"

#include <algorithm>

#include "engine/calibration/device_facts.h"

namespace engine {
namespace {

template <class Table>
bool any_own(const Table& table) {
  return std::ranges::any_of(
      table, [](const auto& sets) { return sets.find(ParameterSet::own) != nullptr; });
}

// Links count only where collectives were measured.
bool was_made_on(const Calibration& measured, const Device& device) {
  if (!same_kernels(device, *measured.measured_on)) return false;
  const bool networked =
      any_own(measured.collective) || any_own(measured.between) || any_own(measured.exchange);
  return !networked || same_links(device, *measured.measured_on);
}

const Calibration* measured_for(const CalibrationWish& wish, const Device& device,
                                const Calibrations& have) {
  if (!wish.name.empty()) {
    const Calibration* named = have.find(wish.name);
    return named == nullptr ? nullptr : speaking_for(*named, device);
  }
  for (const auto& [name, calibration] : have.by_name) {
    if (calibration->measured_on && was_made_on(*calibration, device)) return calibration.get();
  }
  if (!device.measured_as.empty()) {
    const Calibration* origin = have.find(device.measured_as);
    if (origin != nullptr) return speaking_for(*origin, device);
  }
  const Calibration* old = have.find(device.name);
  return old != nullptr && !old->measured_on ? old : nullptr;
}

}  // namespace

const Calibration* speaking_for(const Calibration& measured, const Device& device) {
  if (!measured.measured_on || was_made_on(measured, device)) return &measured;
  return measured.altered.get();
}

CalibrationChoice choose_calibration(const CalibrationWish& wish, const Device& device,
                                     const Calibrations& have) {
  const Calibration* transfer =
      wish.engine.empty() ? have.find(kTransferName) : have.find_engine(wish.engine);
  switch (wish.tier) {
    case TierChoice::roofline:
      return {};
    case TierChoice::transfer:
      return {transfer, transfer == nullptr};
    case TierChoice::measured: {
      const Calibration* measured = measured_for(wish, device, have);
      return {measured, measured == nullptr};
    }
    case TierChoice::best:
      if (const Calibration* measured = measured_for(wish, device, have)) return {measured};
      return {transfer, transfer == nullptr && !wish.engine.empty()};
  }
  return {};
}

}  // namespace engine
