// How good is this program at what simulators are judged by, each as figures that this very program has just worked out.
#pragma once

#include <string>
#include <vector>

#include "sweep/language/library.h"
#include "tools/suite/suite_run.h"

namespace tools {

struct Score {
  std::string of;        // fidelity, composition, generalisation, deployment, extensibility
  std::string question;  // that the figures answer
  std::string figures;
};

std::vector<Score> scorecard(const std::vector<SuiteResult>& results,
                             const sweep::Library& library);

}  // namespace tools
