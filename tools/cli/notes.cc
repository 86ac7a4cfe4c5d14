// llmsweep notes: what somebody must know who ranks the rows of a run, as `run` said at its end.
#include "results/failure.h"
#include "results/run_folder.h"
#include "tools/cli/cli.h"
#include "tools/query/row_notes.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

int print_notes_of(const std::string& folder) {
  try {
    const auto notes = notes_of_run(folder);
    if (!notes) {
      print(stderr, "{}", engine::to_text(notes.mistakes()));
      return kMistake;
    }
    const auto known = results::summarise(folder);
    const std::string unfinished = known ? results::not_finished(folder, *known) : "";
    if (!unfinished.empty()) print("{}\n", unfinished);
    for (const std::string& note : *notes) print("{}\n", note);
    return kOk;
  } catch (const results::Failure& failure) {
    return complain_about_run(failure);
  }
}

}  // namespace

void add_notes(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("notes", "What to know before one ranks the rows of a run");
  verb->footer(
      "What 'run' says at its end, of all rows that are there: a line for each thing that makes "
      "rows "
      "which\n"
      "are 'ok' hard to compare, with how many there are and which field states what is meant. "
      "'top' "
      "and\n"
      "'pareto' say the same of the rows they rank.");
  verb->add_option("folder", *folder, "run folder")->required()->type_name("DIR");
  verb->callback([folder, &exit_code] { exit_code = print_notes_of(*folder); });
}

}  // namespace tools
