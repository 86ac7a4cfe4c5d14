// llmsweep slurm: a sweep on a Slurm cluster, as an array of workers and a job that finishes it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "results/durable_file.h"
#include "results/failure.h"
#include "tools/cli/cli.h"
#include "tools/slurm/slurm_job.h"
#include "tools/terminal/shell_word.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

struct SlurmArguments {
  SlurmJob job;
  bool dry_run = false;
};

// What sbatch answers: the number of the job. Nothing where it failed, which it says itself.
std::optional<std::string> submitted(const std::string& options, const fs::path& script) {
  const std::string command = "sbatch --parsable " + options + shell_word(script.string());
  std::FILE* answer = popen(command.c_str(), "r");
  if (answer == nullptr) return std::nullopt;
  std::array<char, 256> line{};
  const bool read = std::fgets(line.data(), int(line.size()), answer) != nullptr;
  if (pclose(answer) != 0 || !read) return std::nullopt;
  std::string number(line.data());
  // "123;cluster" where there are several.
  number.resize(std::min(number.find_first_of(";\n"), number.size()));
  return number;
}

// Tasks count their failures; those of an earlier submission do not matter to this one.
void forget_failures(const fs::path& logs) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(logs, ignored)) {
    if (entry.path().extension() == ".failures") fs::remove(entry.path(), ignored);
  }
}

// sbatch reads its options line by line, and the shell the rest: a line end in one of them would begin a line of its own.
bool is_one_line(const char* option, std::string_view value) {
  const auto control = std::ranges::find_if(value, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
  });
  if (control == value.end()) return true;
  const auto place = control - value.begin();
  print(
      stderr,
      "error: {0}: character {1} is a control character, \\x{2:02x}, after '{3}'\n  hint: a job's "
      "script has each option in a line of its own; write {0} in one line of text\n",
      option, place + 1, static_cast<unsigned char>(*control), value.substr(0, std::size_t(place)));
  return false;
}

bool options_are_lines(const SlurmJob& job) {
  bool good = true;
  for (const auto& [option, value] :
       {std::pair{"--output", &job.folder}, std::pair{"--partition", &job.partition},
        std::pair{"--time", &job.time}, std::pair{"--memory", &job.memory}}) {
    good = is_one_line(option, *value) && good;
  }
  return good;
}

int submit(SlurmArguments arguments) {
  SlurmJob& job = arguments.job;
  if (!options_are_lines(job)) return kMistake;
  const auto spec = read_or_complain(job.spec);
  if (!spec || !within_limit_or_complain(*spec, job.spec, job.limit)) return kMistake;
  job.limit = spec->space.size();
  std::error_code ignored;
  job.program = fs::read_symlink("/proc/self/exe", ignored).string();
  job.folder = fs::absolute(job.folder).lexically_normal().string();
  if (job.folder.ends_with('/')) job.folder.pop_back();
  job.logs = job.folder + ".slurm";
  const fs::path workers = fs::path(job.logs) / "workers.sh";
  const fs::path finish = fs::path(job.logs) / "finish.sh";
  // Tasks wait in the queue for hours; what is submitted is the spec of now.
  job.spec = (fs::path(job.logs) / "sweep.yaml").string();
  try {
    results::make_folders(job.logs);
    forget_failures(job.logs);
    results::write_durably(job.spec, spec->resolved);
    results::write_durably(workers, workers_script(job));
    results::write_durably(finish, finish_script(job));
  } catch (const results::Failure& failure) {
    print(stderr, "error: {}\n", failure.what());
    return kFailure;
  }
  print("{}\n{}\n", workers.string(), finish.string());
  if (arguments.dry_run) return kOk;
  std::fflush(stdout);
  const auto array = submitted("", workers);
  const auto last =
      array ? submitted("--dependency=afterany:" + shell_word(*array) + " ", finish) : std::nullopt;
  if (!last) {
    print(stderr,
          "error: sbatch did not take the job{}\n  hint: --dry-run only writes the scripts\n",
          array ? " that finishes array " + *array : "");
    return kFailure;
  }
  print(
      "job {}: {} share {}; job {} finishes them\nhow far it is: llmsweep status "
      "{}\nto stop it all: scancel {} {}\n",
      *array, counted(std::uint64_t(job.tasks), "worker"), counted(spec->space.size(), "position"),
      *last, shell_word(job.folder), *array, *last);
  return kOk;
}

}  // namespace

void add_slurm(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SlurmArguments>();
  SlurmJob& job = arguments->job;
  CLI::App* verb = app.add_subcommand("slurm", "Run a sweep on a Slurm cluster");
  verb->footer(
      "Writes DIR.slurm/workers.sh, a job array whose tasks share the work, and "
      "DIR.slurm/finish.sh, which\n"
      "runs when the array is over, does what was left undone, and checks that all is there; and\n"
      "submits both. Tasks that fail, are preempted or reach their time limit go back into the\n"
      "queue and resume. DIR must be seen by all nodes.\n"
      "  llmsweep slurm sweep.yaml -o /shared/night --tasks 64 --cpus 16 --partition batch");
  verb->add_option("spec", job.spec, "the sweep")->required()->type_name("SPEC");
  verb->add_option("-o,--output", job.folder, "run folder")->required()->type_name("DIR");
  verb->add_option("--tasks", job.tasks, "workers")
      ->required()
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  verb->add_option("--cpus", job.cpus, "cores of a task (default: 1)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  verb->add_option("--partition", job.partition, "partition of the cluster")->type_name("NAME");
  verb->add_option("--time", job.time, "limit on the time of a task, as sbatch takes it")
      ->type_name("TIME");
  verb->add_option("--memory", job.memory, "memory of a task, as sbatch takes it")
      ->type_name("SIZE");
  verb->add_option("--limit", job.limit, "most positions to run, as of 'run'")
      ->transform(whole_above_zero())
      ->type_name("N");
  verb->add_flag("--dry-run", arguments->dry_run, "only write the scripts");
  verb->callback([arguments, &exit_code] { exit_code = submit(*arguments); });
}

}  // namespace tools
