#include "tools/slurm/slurm_job.h"

#include <fmt/format.h>

#include "tools/terminal/shell_word.h"

namespace tools {
namespace {

std::string header(const SlurmJob& job, const std::string& name, const std::string& log) {
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --output=\"{}/{}\"\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --requeue\n"
      "#SBATCH --cpus-per-task={}\n",
      name, job.logs, log, job.cpus);
  const auto option = [&text](const char* flag, const std::string& value) {
    if (!value.empty()) text += fmt::format("#SBATCH --{}={}\n", flag, value);
  };
  option("partition", job.partition);
  option("time", job.time);
  option("mem", job.memory);
  // Only the script is told, and in time for the program to keep what it has done.
  if (!job.time.empty()) option("signal", "B:USR1@60");
  return text;
}

std::string run_words(const SlurmJob& job) {
  return fmt::format("{} run {} -o {} --limit {} --threads \"${{SLURM_CPUS_PER_TASK:-{}}}\"",
                     shell_word(job.program), shell_word(job.spec), shell_word(job.folder),
                     job.limit, job.cpus);
}

// Runs a command and leaves its exit code in $code. It runs beside the script, which can thus be told
// that the time is nearly up: what is done is kept, and the job goes on from the queue.
std::string guarded(const std::string& command, const std::string& job_number) {
  return fmt::format(
      "again() {{ scontrol requeue \"{}\"; }}\n"
      "trap 'kill -TERM $run; wait $run; again && exit 0' USR1\n"
      "{} &\n"
      "run=$!\n"
      "wait $run\n"
      "code=$?\n",
      job_number, command);
}

}  // namespace

std::string shards_script(const SlurmJob& job) {
  return header(job, "llmsweep", "shard-%a.log") +
         fmt::format("#SBATCH --array=1-{}\n", job.tasks) +
         guarded(fmt::format("{} --shard \"$SLURM_ARRAY_TASK_ID/{}\"", run_words(job), job.tasks),
                 "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}") +
         // 2: a mistake that another try does not mend; 4: done, and no point works.
         "case $code in\n"
         "  0 | 4) exit 0 ;;\n"
         "  2) exit 2 ;;\n"
         "esac\n" +
         // Preemptions and time limits are no failures: Slurm's own count has them all.
         fmt::format("failures={}/shard-$SLURM_ARRAY_TASK_ID.failures\n", shell_word(job.logs)) +
         "echo \"$code\" >> \"$failures\"\n"
         "[ \"$(wc -l < \"$failures\")\" -le 5 ] && again && exit 0\n"
         "exit \"$code\"\n";
}

std::string finish_script(const SlurmJob& job) {
  return header(job, "llmsweep-finish", "finish.log") + guarded(run_words(job), "$SLURM_JOB_ID") +
         "[ \"$code\" -eq 0 ] || [ \"$code\" -eq 4 ] || exit \"$code\"\n" +
         fmt::format("exec {} finish {}\n", shell_word(job.program), shell_word(job.folder));
}

}  // namespace tools
