// llmsweep sql: a query to the tables of a run, answered by DuckDB's Python package where there is one.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "results/run_folder.h"
#include "results/table.h"
#include "tools/cli/cli.h"
#include "tools/query/answer.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

// Arguments: folder, query, file, tables of the run. The query sees each table by its name. Python is started with -I, so that
// it runs nothing that lies in the working directory. With that it also leaves out PYTHONPATH and packages of the user's
// own, where DuckDB may be: absolute places of theirs come back, last.
constexpr const char* kScript = R"py(
import glob
import os
import site
import sys
for place in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    if os.path.isabs(place):
        sys.path.append(place)
if sys.prefix == sys.base_prefix:
    site.addsitedir(site.getusersitepackages())
folder, query, file, *tables = sys.argv[1:]
try:
    import duckdb
except ImportError:
    sys.exit(f"llmsweep sql: {sys.executable} has no DuckDB\n"
             "  hint: pip install duckdb, or name another Python in LLMSWEEP_PYTHON")
database = duckdb.connect()
try:
    for table in tables:
        files = f"{glob.escape(folder)}/{table}/part-*.parquet".replace("'", "''")
        database.execute(f"create view {table} as from read_parquet('{files}', union_by_name=true)")
    answer = database.sql(query)
    if answer is None:
        pass
    elif file.endswith(".parquet"):
        answer.write_parquet(file)
    elif file:
        answer.write_csv(file)
    else:
        answer.show(max_rows=200)
    sys.stdout.flush()
except duckdb.Error as mistake:
    print(f"llmsweep sql: {mistake}", file=sys.stderr)
    sys.exit(2)
except OSError as failure:
    print(f"llmsweep: cannot write the output: {failure.strerror}", file=sys.stderr)
    os._exit(1)
)py";

// The one that tools/test made, if this is a checkout that has it.
std::string python() {
  if (const char* named = std::getenv("LLMSWEEP_PYTHON"); named != nullptr) return named;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path ours = program.parent_path() / "../../.deps/py/bin/python";
  return fs::exists(ours, ignored) ? ours.string() : "python3";
}

// DuckDB writes CSV whatever the name is.
std::vector<engine::Mistake> check_sql_file(const std::string& file) {
  auto mistakes = check_answer_file(file);
  const bool text = file.ends_with(".md") || file.ends_with(".txt");
  if (text) mistakes = {{{.file = file}, "a query is not written as text", ""}};
  if (!mistakes.empty()) mistakes.front().hint = "name it .csv, .csv.gz or .parquet";
  return mistakes;
}

int ask(const std::string& folder, const std::string& query, const std::string& file) {
  if (const auto mistakes = check_sql_file(file); !mistakes.empty()) {
    print(stderr, "{}", engine::to_text(mistakes));
    return kMistake;
  }
  const auto known = results::summarise(folder);
  if (!known) {
    print(stderr, "{}", engine::to_text(known.mistakes()));
    return kMistake;
  }
  if (known->tally.rows() == 0) {
    print(stderr, "{}", engine::to_text({results::without_points(folder, *known)}));
    return kMistake;
  }
  if (const std::string note = results::not_finished(folder, *known); !note.empty()) {
    print(stderr, "note: {}\n", note);
  }
  std::vector<std::string> words = {python(), "-I", "-c", kScript, folder, query, file};
  for (const std::string_view table : enum_names(results::Table{})) {
    const fs::path place = fs::path(folder) / table;
    if (fs::exists(place) && !fs::is_empty(place)) words.emplace_back(table);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  print(stderr,
        "llmsweep sql: cannot start {}: {}\n  hint: name a Python with DuckDB in "
        "LLMSWEEP_PYTHON\n",
        words.front(), std::strerror(errno));
  return kFailure;
}

}  // namespace

void add_sql(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string folder, query, file;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("sql", "Ask the tables of a run in SQL, by DuckDB");
  verb->footer(
      "Tables are points, kernels and, where the run has them, requests and timeline. Needs a "
      "Python with\n"
      "the package duckdb: LLMSWEEP_PYTHON, else the one of this checkout, else python3.\n"
      "  llmsweep sql runs/first_sweep 'select device, min(step_time_s) from points group by "
      "device'");
  verb->add_option("folder", arguments->folder, "run folder")->required()->type_name("DIR");
  verb->add_option("query", arguments->query, "the query")->required()->type_name("QUERY");
  verb->add_option("-o,--output", arguments->file, "write a .csv, .csv.gz or .parquet file instead")
      ->type_name("FILE");
  verb->callback([arguments, &exit_code] {
    exit_code = ask(arguments->folder, arguments->query, arguments->file);
  });
}

}  // namespace tools
