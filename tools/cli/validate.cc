// llmsweep validate: how far predictions are from measurements.
#include <fmt/core.h>

#include <memory>
#include <utility>

#include "tools/calibrate/measured_calls.h"
#include "tools/calibrate/table_checks.h"
#include "tools/calibrate/validate_table.h"
#include "tools/cli/cli.h"
#include "tools/cli/device_option.h"

namespace tools {
namespace {

struct Arguments {
  std::string table;
  std::string output;
  std::string impl;
  DeviceOptions device;
};

int validate_kernels(const Arguments& arguments) {
  const auto device = device_or_complain(arguments.device.device);
  if (!device) return kMistake;
  const auto calibration = calibration_or_complain(arguments.device);
  if (!calibration) return kMistake;
  const auto table = checked_table(arguments.table, *device);
  if (!table) return kMistake;
  const auto calls = gather_calls(*table, {.impl = arguments.impl});
  if (!calls) {
    fmt::print(stderr, "{}", engine::to_text(calls.mistakes()));
    return kMistake;
  }
  for (const std::string& remark : remarks_on(*calls)) fmt::print(stderr, "{}\n", remark);
  const auto lines = validate_calls(calls->calls, Predictor(*device, calibration->get()));
  fmt::print("{} rows, {} different calls, on {}\n{}", grouped(calls->rows),
             grouped(calls->calls.size()), device->name, error_table_text(lines));
  if (!arguments.output.empty()) results::write_table(arguments.output, error_table(lines));
  return kOk;
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("validate", "Compare predictions with measurements");
  verb->require_subcommand(1);
  auto arguments = std::make_shared<Arguments>();
  CLI::App* kernels = verb->add_subcommand("kernels", "Errors per family of a kernel table");
  kernels->footer(
      "  llmsweep validate kernels table.csv.gz --device h100-sxm --tier transfer\n"
      "Rows of one call become one: equal rows their median, implementations their median. Errors "
      "are\n"
      "relative to the measurement; 'in 90%' is the share of measurements inside the interval.");
  kernels->add_option("table", arguments->table, "the kernel table")
      ->required()
      ->type_name("TABLE");
  add_device_options(*kernels, arguments->device);
  kernels->add_option("--impl", arguments->impl, "only implementations this expression finds")
      ->type_name("REGEX");
  kernels->add_option("-o,--output", arguments->output, "also write the errors to this file")
      ->type_name("OUT");
  kernels->callback([arguments, &exit_code] { exit_code = validate_kernels(*arguments); });
}

}  // namespace tools
