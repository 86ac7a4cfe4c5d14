// llmsweep-calibrate: the verbs about kernel tables. `llmsweep kernels ...` hands over to it, so it calls
// itself llmsweep.
#include "tools/calibrate_cli/verbs.h"
#include "tools/command/exit_code.h"
#include "tools/command/run_command.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Predicts kernel tables, compares predictions with measurements, makes calibrations."};
  app.name("llmsweep");
  app.require_subcommand(1);
  int exit_code = tools::kOk;
  tools::add_kernels(app, exit_code);
  tools::add_validate(app, exit_code);
  tools::add_calibrate(app, exit_code);
  return tools::run_command(app, argc, argv, exit_code);
}
