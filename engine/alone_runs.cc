#include "engine/alone_runs.h"

namespace engine {
namespace {

bool recognisable(const Calibrations::Named& calibrations) {
  return std::ranges::none_of(calibrations,
                              [](const auto& each) { return each.second->identity.empty(); });
}

}  // namespace

bool AloneRuns::keeps(const Scenario& scenario, const Resources& resources) {
  const auto known = [](const std::string& file, const std::string& checksum) {
    return file.empty() || !checksum.empty();
  };
  const Speculation& speculation = scenario.speculation;
  return scenario.task == Task::serve && !scenario.output.any() &&
         known(scenario.load.trace, scenario.load.trace_checksum) &&
         known(speculation.acceptance_file, speculation.acceptance_checksum) &&
         recognisable(resources.calibrations.by_name) &&
         recognisable(resources.calibrations.by_engine);
}

const AloneRuns::Run* AloneRuns::find(Key key) const {
  const auto end = runs_.begin() + std::ptrdiff_t(count_);
  const auto found = std::ranges::find(runs_.begin(), end, key, &Run::key);
  return found == end ? nullptr : &*found;
}

void AloneRuns::keep(Run run) {
  runs_[next_] = std::move(run);
  count_ = std::max(count_, next_ + 1);
  next_ = (next_ + 1) % runs_.size();
}

}  // namespace engine
