// What points share and a scenario only names: large read-only data that someone else has loaded.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/calibration/calibrations.h"
#include "engine/speculation/acceptance.h"
#include "engine/workload/trace.h"

namespace engine {

struct Resources {
  Calibrations calibrations;
  // By the path written in `load.trace`. Shared: thousands of points replay one trace.
  std::map<std::string, std::shared_ptr<const Trace>, std::less<>> traces;

  // By the path written in `speculation.acceptance_file`.
  std::map<std::string, AcceptanceTable, std::less<>> acceptances;

  const Trace* find_trace(const std::string& path) const {
    const auto found = traces.find(path);
    return found == traces.end() ? nullptr : found->second.get();
  }
};

}  // namespace engine
