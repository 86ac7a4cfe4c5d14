// llmsweep: the command. Each verb lives in a file of its own.
#include <CLI/CLI.hpp>

#include "tools/cli/cli.h"
#include "tools/cli/hand_over.h"
#include "tools/command/end_with_parent.h"
#include "tools/command/run_command.h"

int main(int argc, char** argv) {
  tools::end_with_parent();
  if (tools::is_handed_over(argc, argv)) return tools::hand_over(argv);
  CLI::App app{
      "Sweeps the design space of LLM systems: a YAML spec in, Parquet tables out.\n\n"
      "  llmsweep run specs/sweeps/first_sweep.yaml      run a sweep\n"
      "  llmsweep check SPEC                             what it would run, before it does\n"
      "  llmsweep report DIR                             a page to look at what it found\n"
      "  llmsweep compare OLD NEW                        what differs between two runs\n"
      "  llmsweep explain SPEC --point 17                one point, kernel by kernel\n"
      "  llmsweep list devices; llmsweep show h100-sxm   what the library knows"};
  app.name("llmsweep");
  app.require_subcommand(1);
  app.set_version_flag("--version", tools::version_text);
  app.footer(
      "Exit codes: 0 done; 1 a disk or other failure, resumable; 2 a mistake in the options or in "
      "a\n"
      "spec; 3 stopped by Ctrl-C, resumable; 4 done, and not one point works (each row says why);\n"
      "130 stopped by a second Ctrl-C, resumable.\n"
      "Folders of your own specs: LLMSWEEP_SPECS=dir1:dir2, or a folder 'specs' beside the sweep.\n"
      "Files larger than the reader's limits (sweep/README.md): LLMSWEEP_LIMITS=table_bytes=8G.");
  int exit_code = tools::kOk;
  tools::add_run(app, exit_code, argv[0]);
  tools::add_check(app, exit_code);
  tools::add_explain(app, exit_code);
  tools::add_report(app, exit_code);
  tools::add_questions(app, exit_code);
  tools::add_compare(app, exit_code);
  tools::add_sql(app, exit_code);
  tools::add_summarise(app, exit_code);
  tools::add_trace(app, exit_code);
  tools::add_evaluate(app, exit_code);
  tools::add_import(app, exit_code);
  tools::add_suite(app, exit_code);
  tools::add_status(app, exit_code);
  tools::add_slurm(app, exit_code);
  tools::add_verify(app, exit_code);
  tools::add_notes(app, exit_code);
  tools::add_list(app, exit_code);
  tools::add_show(app, exit_code);
  tools::add_describe(app, exit_code);
  tools::add_handed_over(app);
  tools::add_completion(app, exit_code);
  tools::add_version(app, exit_code);
  return tools::run_command(app, argc, argv, exit_code);
}
