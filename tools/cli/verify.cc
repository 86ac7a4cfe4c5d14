// llmsweep verify: is a run folder still what was written, and if not, what is damaged.
#include <fmt/core.h>

#include <memory>

#include "results/failure.h"
#include "results/verify.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

struct VerifyArguments {
  std::string folder;
  bool repair = false;
};

void print_report(const VerifyArguments& arguments, const results::VerifyReport& report) {
  for (const std::string& notice : report.notices) print(stderr, "note: {}\n", notice);
  for (const std::string& damage : report.damage) {
    print(stderr, "{}: error: {}\n", arguments.folder, damage);
  }
  for (const std::string& foreign : report.foreign) {
    print(stderr, "{}: error: {}\n  hint: move it to another place\n", arguments.folder, foreign);
  }
  print("{}: {}, {}, {} read; done and sound: {} of {}\n", arguments.folder,
        counted(report.parts, "part"), counted(report.rows, "row"), size_text(double(report.bytes)),
        grouped(report.done), counted(report.positions, "position"));
  if (report.damage.empty()) return;
  if (arguments.repair) {
    print("repaired: {} dropped; run the sweep again to compute them\n",
          counted(report.damaged, "part"));
  } else if (report.damaged > 0) {
    print(
        "damaged: {}; 'llmsweep verify {} --repair' drops what is, and the next run computes it "
        "again\n",
        counted(report.damaged, "part"), arguments.folder);
  }
}

int verify(const VerifyArguments& arguments) {
  try {
    const auto report = arguments.repair ? results::repair_run(arguments.folder)
                                         : results::verify_run(arguments.folder);
    if (!report) {
      print(stderr, "{}", engine::to_text(report.mistakes()));
      return kMistake;
    }
    print_report(arguments, *report);
    const bool repaired = arguments.repair && report->foreign.empty();
    return report->sound() || repaired ? kOk : kFailure;
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verb = app.add_subcommand("verify", "Check every byte of a run folder");
  verb->footer(
      "Reads every file and compares it with the checksum that was kept when it was written. "
      "Changes\n"
      "nothing without --repair, and may be used while a run goes on. Exit code 0: sound, or "
      "repaired;\n"
      "1: damaged, or files of others among its parts.");
  verb->add_option("folder", arguments->folder, "run folder")->required()->type_name("DIR");
  verb->add_flag("--repair", arguments->repair,
                 "drop the parts that are damaged; the next run computes them again");
  verb->callback([arguments, &exit_code] { exit_code = verify(*arguments); });
}

}  // namespace tools
