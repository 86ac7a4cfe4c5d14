// llmsweep validate: how far predictions are from measurements.
#include <fmt/core.h>

#include <memory>
#include <utility>

#include "tools/calibrate/errors/step_errors.h"
#include "tools/calibrate/errors/validate_all.h"
#include "tools/calibrate/errors/validate_table.h"
#include "tools/calibrate/tables/measured_calls.h"
#include "tools/calibrate/tables/table_checks.h"
#include "tools/calibrate_cli/device_option.h"
#include "tools/calibrate_cli/verbs.h"
#include "tools/command/exit_code.h"
#include "tools/command/kernel_verbs.h"
#include "tools/command/standard_library.h"
#include "tools/terminal/number_text.h"
#include "tools/terminal/terminal.h"
#include "tools/validate_serving/validate_serving.h"
#include "tools/validate_training/validate_training.h"

namespace tools {
namespace {

struct ValidateArguments {
  std::string table;
  std::string output;
  std::string impl;
  DeviceOptions device;
};

int validate_kernels(const ValidateArguments& arguments) {
  const auto device = device_or_complain(arguments.device.device);
  if (!device) return kMistake;
  auto predictors = predictors_or_complain(arguments.device, *device);
  if (!predictors) return kMistake;
  const auto table = checked_table(arguments.table, *device);
  if (!table) return kMistake;
  const auto calls = gather_calls(*table, {.impl = arguments.impl, .across = Across::separate});
  if (!calls) {
    print(stderr, "{}", engine::to_text(calls.mistakes()));
    return kMistake;
  }
  for (const std::string& remark : remarks_on(*calls)) print(stderr, "{}\n", remark);
  const auto lines = validate_calls(calls->calls, [&](const MeasuredCall& call) {
    return predictors->of(table->impls[call.impl])(call.call);
  });
  print("{} rows, {} different calls, on {}\n{}", grouped(calls->rows),
        grouped(calls->calls.size()), device->name, error_table_text(lines));
  if (!arguments.output.empty()) results::write_table(arguments.output, error_table(lines));
  return kOk;
}

int validate_steps(const ValidateArguments& arguments) {
  const auto device = device_or_complain(arguments.device.device);
  if (!device) return kMistake;
  const auto calibration = calibration_or_complain(arguments.device, *device);
  if (!calibration) return kMistake;
  const auto rows =
      step_errors(arguments.table, {.device = *device, .calibration = calibration->device.get()});
  if (!rows) {
    print(stderr, "{}", engine::to_text(rows.mistakes()));
    return kMistake;
  }
  print("{}", step_errors_text(*rows));
  return kOk;
}

int validate_everything(const std::string& data, const std::string& readme) {
  const auto library = standard_library();
  const auto text = validate_all({.data = data,
                                  .sweeps = library.folders().back() / "calibration",
                                  .engine_rows = engine_rows_folder(),
                                  .library = library,
                                  .readme = readme});
  if (!text) {
    print(stderr, "{}", engine::to_text(text.mistakes()));
    return kMistake;
  }
  print("{}", *text);
  return kOk;
}

// Prints a comparison with public runs, and writes its table where asked for.
template <class Validate>
int validate_runs(Validate&& validate, const std::string& data, const std::string& output) {
  const auto validation = validate(data, standard_library());
  if (!validation) {
    print(stderr, "{}", engine::to_text(validation.mistakes()));
    return kMistake;
  }
  print("{}", validation->text);
  if (!output.empty()) results::write_table(output, validation->table);
  return kOk;
}

void add_steps(CLI::App& verb, int& exit_code) {
  auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* steps = verb.add_subcommand("steps", "Whole steps that tools/gpu measured");
  steps->add_option("table", arguments->table, "a steps.csv")->required()->type_name("TABLE");
  add_device_options(*steps, arguments->device);
  steps->callback([arguments, &exit_code] { exit_code = validate_steps(*arguments); });
}

// A verb that compares with public runs of one kind.
template <class Validate>
void add_runs(CLI::App& verb, const char* kind, const char* about, Validate validate,
              int& exit_code) {
  auto data = std::make_shared<std::string>("../shared/data");
  auto output = std::make_shared<std::string>();
  CLI::App* runs = verb.add_subcommand(kind, about);
  runs->footer(
      fmt::format("  llmsweep validate {} --data ../shared/data -o errors.parquet\n"
                  "Errors are relative to the measurement, in percent.",
                  kind));
  runs->add_option("--data", *data, "folder of the public runs (default: ../shared/data)")
      ->type_name("DIR");
  runs->add_option("-o,--output", *output, "also write every figure to this file")
      ->type_name("OUT");
  runs->callback([data, output, validate, &exit_code] {
    exit_code = validate_runs(validate, *data, *output);
  });
}

void add_all(CLI::App& verb, int& exit_code) {
  auto data = std::make_shared<std::string>("../shared/data");
  CLI::App* all =
      verb.add_subcommand("all", "Every error table of tools/calibrate/ACCURACY.md; some minutes");
  all->add_option("--data", *data, "folder of the public tables (default: ../shared/data)")
      ->type_name("DIR");
  auto readme = std::make_shared<std::string>();
  all->add_option("--readme", *readme, "also put the short table into this file")
      ->type_name("FILE");
  all->callback([data, readme, &exit_code] { exit_code = validate_everything(*data, *readme); });
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  CLI::App* verb = add_verb(app, kValidateVerb);
  verb->require_subcommand(1);
  auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* kernels = verb->add_subcommand("kernels", "Errors per family of a kernel table");
  kernels->footer(
      "  llmsweep validate kernels table.csv.gz --device h100-sxm --tier transfer\n"
      "Equal rows of one implementation become their median; each implementation is scored by "
      "itself.\n"
      "Errors are relative to the measurement; 'in 90%' is the share of measurements inside the "
      "interval.");
  kernels->add_option("table", arguments->table, "the kernel table")
      ->required()
      ->type_name("TABLE");
  add_device_options(*kernels, arguments->device);
  kernels->add_option("--impl", arguments->impl, "only implementations this expression finds")
      ->type_name("REGEX");
  kernels->add_option("-o,--output", arguments->output, "also write the errors to this file")
      ->type_name("OUT");
  kernels->callback([arguments, &exit_code] { exit_code = validate_kernels(*arguments); });
  add_steps(*verb, exit_code);
  add_runs(*verb, "serving", "Real serving runs, replayed", validate_serving, exit_code);
  add_runs(*verb, "training", "Published training runs and measured training steps",
           validate_training, exit_code);
  add_all(*verb, exit_code);
}

}  // namespace tools
