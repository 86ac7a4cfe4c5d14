// A device's sweep and the transfer parameters put together.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/calibration/calibration.h"

namespace engine {
namespace {

// What a sweep says about a device that it was not made on.
Calibration for_altered(Calibration measured) {
  const ParameterSet generation = choose_set(*measured.measured_on);
  Calibration::sections(measured, [generation](SectionName, auto& sets) {
    if (sets.find(ParameterSet::own) == nullptr) return;
    auto& own = sets.edit(ParameterSet::own);
    own.tier = Tier::transfer;
    own.envelope = Envelope::nowhere();
    const auto* relative = find_shared_set(sets, generation);
    if (relative == nullptr) return;
    own.low = std::min(own.low, relative->low);
    own.high = std::max(own.high, relative->high);
  });
  measured.tier = Tier::transfer;
  measured.identity += " altered";
  return measured;
}

}  // namespace

Calibration completed_by(Calibration measured, const Calibration& transfer) {
  std::vector<const void*> sources;
  Calibration::sections(transfer,
                        [&sources](SectionName, const auto& sets) { sources.push_back(&sets); });
  std::size_t next = 0;
  Calibration::sections(measured, [&](SectionName, auto& sets) {
    sets.complete_by(*static_cast<std::decay_t<decltype(sets)> const*>(sources[next++]));
  });
  measured.identity += " " + transfer.identity;
  if (measured.measured_on) {
    measured.altered = std::make_shared<const Calibration>(for_altered(measured));
  }
  return measured;
}

}  // namespace engine
