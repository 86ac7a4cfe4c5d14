#include "tools/cli/device_option.h"

#include <fmt/core.h>

#include <utility>

#include "tools/calibrate/table_checks.h"
#include "tools/cli/cli.h"

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
    fmt::print(stderr, "{}", engine::to_text(spec.mistakes()));
    return std::nullopt;
  }
  return std::move(spec->scenario.device);
}

std::optional<SharedCalibration> calibration_or_complain(const DeviceOptions& options) {
  auto calibration =
      load_requested({.tier = options.tier, .file = options.calibration, .device = options.device},
                     standard_library());
  if (!calibration) {
    fmt::print(stderr, "{}", engine::to_text(calibration.mistakes()));
    return std::nullopt;
  }
  return std::move(calibration).value();
}

std::optional<TablePredictor> predictors_or_complain(const DeviceOptions& options,
                                                     const engine::Device& device) {
  auto calibration = calibration_or_complain(options);
  if (!calibration) return std::nullopt;
  // A sweep of the device knows its libraries; an engine's rows are better told by the engine.
  const bool by_engine = *calibration != nullptr && options.calibration.empty() &&
                         options.tier != "measured" && options.tier != "roofline";
  if (!by_engine) return TablePredictor(device, std::move(*calibration));
  auto engines = load_engines(standard_library());
  if (!engines) {
    fmt::print(stderr, "{}", engine::to_text(engines.mistakes()));
    return std::nullopt;
  }
  auto transfer = load_transfer(standard_library());
  if (!transfer) {
    fmt::print(stderr, "{}", engine::to_text(transfer.mistakes()));
    return std::nullopt;
  }
  return TablePredictor(device, std::move(*calibration), std::move(engines).value(),
                        std::move(transfer).value());
}

std::optional<KernelTable> checked_table(const std::string& file, const engine::Device& device) {
  auto table = read_kernel_table(file, Times::needed);
  if (!table) {
    fmt::print(stderr, "{}", engine::to_text(table.mistakes()));
    return std::nullopt;
  }
  for (const std::string& remark : remarks_on(*table)) fmt::print(stderr, "{}\n", remark);
  const auto mistakes = unit_mistakes(*table, device);
  if (!mistakes.empty()) {
    fmt::print(stderr, "{}", engine::to_text(mistakes));
    return std::nullopt;
  }
  return std::move(table).value();
}

}  // namespace tools
