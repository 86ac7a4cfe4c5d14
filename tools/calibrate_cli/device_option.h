// The options that the verbs about kernels share: which device, which calibration.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "engine/hardware/device.h"
#include "tools/calibrate/errors/engine_calibrations.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

struct DeviceOptions {
  std::string device;
  std::string tier;
  std::string calibration;
};

// --device, --tier and --calibration.
void add_device_options(CLI::App& verb, DeviceOptions& options);

// Print every mistake to stderr and return nothing if there are any.
std::optional<engine::Device> device_or_complain(const std::string& name);
std::optional<CalibrationFile> calibration_or_complain(const DeviceOptions& options,
                                                       const engine::Device& device);
// Predictors of the device for the rows of a table. Engines have parameters of their own in the library
// (not used where the tier is said to be measured), and their kernels in a measured file that was made
// from several.
std::optional<TablePredictor> predictors_or_complain(const DeviceOptions& options,
                                                     const engine::Device& device);
// A table with times that can be times of the device; what was left out of it is said on stderr.
std::optional<KernelTable> checked_table(const std::string& file, const engine::Device& device);

}  // namespace tools
