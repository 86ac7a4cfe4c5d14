#include "tools/calibrate_cli/calibrate_powers.h"

#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/fit/power_fit.h"
#include "tools/calibrate_cli/device_option.h"
#include "tools/calibrate_cli/mistaken.h"
#include "tools/command/exit_code.h"
#include "tools/command/standard_library.h"
#include "tools/terminal/terminal.h"

namespace tools {

int calibrate_powers(const std::vector<std::string>& tables, const std::string& name) {
  if (name.empty() || tables.size() != 1) {
    return mistaken({{{},
                      "--tier powers takes one table and --device",
                      "say which device the table was measured on"}});
  }
  const auto device = device_or_complain(name);
  if (!device) return kMistake;
  const auto calibration = load_requested({.device = *device}, standard_library());
  if (!calibration) return mistaken(calibration.mistakes());
  const auto fit =
      fit_powers(tables.front(), {.device = *device, .calibration = calibration->device.get()});
  if (!fit) return mistaken(fit.mistakes());
  print("{}", power_fit_text(*fit));
  return kOk;
}

}  // namespace tools
