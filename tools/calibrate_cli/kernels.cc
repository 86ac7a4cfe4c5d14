// llmsweep kernels: predicts every row of a kernel table.
#include <fmt/core.h>

#include <memory>
#include <utility>

#include "tools/calibrate/errors/predict_table.h"
#include "tools/calibrate/tables/table_checks.h"
#include "tools/calibrate_cli/device_option.h"
#include "tools/calibrate_cli/verbs.h"
#include "tools/command/exit_code.h"
#include "tools/command/kernel_verbs.h"
#include "tools/terminal/number_text.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct KernelsArguments {
  std::string table;
  std::string output;
  DeviceOptions device;
};

int predict(const KernelsArguments& arguments) {
  const auto device = device_or_complain(arguments.device.device);
  if (!device) return kMistake;
  auto predictors = predictors_or_complain(arguments.device, *device);
  if (!predictors) return kMistake;
  auto table = read_kernel_table(arguments.table, Times::ignored);
  if (!table) {
    print(stderr, "{}", engine::to_text(table.mistakes()));
    return kMistake;
  }
  for (const std::string& remark : remarks_on(*table)) print(stderr, "{}\n", remark);
  const std::size_t rows = table->text.rows();
  const PredictedTable predicted = predict_table(std::move(table).value(), *predictors);
  results::write_table(arguments.output, predicted.table);
  print("{} of {} rows predicted, {} of them outside what was fitted: {}\n",
        grouped(predicted.predicted), grouped(rows), grouped(predicted.extrapolated),
        arguments.output);
  return kOk;
}

}  // namespace

void add_kernels(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<KernelsArguments>();
  CLI::App* verb = add_verb(app, kKernelsVerb);
  verb->footer(
      "  llmsweep kernels table.csv --device h100-sxm -o predicted.parquet\n"
      "Tables are CSV, gzipped CSV or Parquet, in and out. Added are predicted_s, tier, bound,\n"
      "extrapolated, lo_s and hi_s (nine measurements in ten lie between the last two). A row "
      "whose\n"
      "impl names an engine is predicted for that engine, unless --tier says measured or "
      "roofline.");
  verb->add_option("table", arguments->table, "the kernel table")->required()->type_name("TABLE");
  add_device_options(*verb, arguments->device);
  verb->add_option("-o,--output", arguments->output, "file to write")->required()->type_name("OUT");
  verb->callback([arguments, &exit_code] { exit_code = predict(*arguments); });
}

}  // namespace tools
