#include "tools/calibrate/fit/other_vendors.h"

#include <algorithm>
#include <map>
#include <string>

#include "tools/calibrate/fit/shared_set.h"
#include "tools/calibrate/fit/transfer_sections.h"

namespace tools {

void widen_pooled(engine::Calibration& shared, const std::vector<DeviceCalls>& devices,
                  const TransferOptions& options) {
  std::map<std::string, Interval> seen;
  for (const auto& [name, section] : sections_of(devices, options.sections)) {
    std::vector<std::vector<Scored>> scored;
    for (const std::vector<Sample>& samples : section) {
      if (!samples.empty()) scored.push_back(scored_by(&shared, samples, options.most_scored));
    }
    seen[name] = interval_of_strangers(scored);
  }
  engine::Calibration::sections(shared, [&](const std::string& name, auto& sets) {
    const auto found = seen.find(name);
    if (found == seen.end() || sets.find(engine::ParameterSet::pooled) == nullptr) return;
    auto& set = sets.edit(engine::ParameterSet::pooled);
    set.low = std::min(set.low, rounded(found->second.low));
    set.high = std::max(set.high, rounded(found->second.high));
  });
}

}  // namespace tools
