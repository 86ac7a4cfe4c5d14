#include "tools/calibrate_cli/device_option.h"

#include <fmt/core.h>

#include <utility>

#include "sweep/language/sweep_spec.h"
#include "tools/calibrate/tables/table_checks.h"
#include "tools/command/standard_library.h"
#include "tools/terminal/terminal.h"

namespace tools {

void add_device_options(CLI::App& verb, DeviceOptions& options) {
  verb.add_option("--device", options.device, "the device, as 'llmsweep list devices' names it")
      ->required()
      ->type_name("NAME");
  verb.add_option("--tier", options.tier,
                  "roofline, transfer or measured (default: the best the library has)")
      ->check(CLI::IsMember({"roofline", "transfer", "measured"}))
      ->type_name("TIER");
  verb.add_option("--calibration", options.calibration, "a calibration file of your own")
      ->type_name("FILE");
}

std::optional<engine::Device> device_or_complain(const std::string& name) {
  auto spec = sweep::read_named(standard_library(), "devices", name);
  if (!spec) {
    print(stderr, "{}", engine::to_text(spec.mistakes()));
    return std::nullopt;
  }
  return std::move(spec->scenario.device);
}

std::optional<CalibrationFile> calibration_or_complain(const DeviceOptions& options,
                                                       const engine::Device& device) {
  auto calibration = load_requested(
      {.tier = options.tier, .file = options.calibration, .device = device}, standard_library());
  if (!calibration) {
    print(stderr, "{}", engine::to_text(calibration.mistakes()));
    return std::nullopt;
  }
  return std::move(calibration).value();
}

std::optional<TablePredictor> predictors_or_complain(const DeviceOptions& options,
                                                     const engine::Device& device) {
  auto file = calibration_or_complain(options, device);
  if (!file) return std::nullopt;
  TableEngines engines;
  for (const SharedCalibration& one : file->implementations) {
    engines.swept.push_back({one->impl, one});
  }
  // A sweep of the device knows its libraries; an engine's rows are better told by the engine.
  const bool any = file->device != nullptr && options.calibration.empty() &&
                   options.tier != "measured" && options.tier != "roofline";
  if (any) {
    auto known = load_engine_rows(engine_rows_folder());
    auto transfer = load_transfer(standard_library());
    for (const auto* mistakes :
         {known ? nullptr : &known.mistakes(), transfer ? nullptr : &transfer.mistakes()}) {
      if (mistakes == nullptr) continue;
      print(stderr, "{}", engine::to_text(*mistakes));
      return std::nullopt;
    }
    engines.known = std::move(known).value();
    engines.transfer = std::move(transfer).value();
  }
  return TablePredictor(device, std::move(file->device), std::move(engines));
}

std::optional<KernelTable> checked_table(const std::string& file, const engine::Device& device) {
  auto table = read_kernel_table(file, Times::needed);
  if (!table) {
    print(stderr, "{}", engine::to_text(table.mistakes()));
    return std::nullopt;
  }
  for (const std::string& remark : remarks_on(*table)) print(stderr, "{}\n", remark);
  const auto mistakes = unit_mistakes(*table, device);
  if (!mistakes.empty()) {
    print(stderr, "{}", engine::to_text(mistakes));
    return std::nullopt;
  }
  return std::move(table).value();
}

}  // namespace tools
