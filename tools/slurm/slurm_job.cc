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
  return text;
}

std::string run_words(const SlurmJob& job) {
  return fmt::format("{} run {} -o {} --threads \"${{SLURM_CPUS_PER_TASK:-{}}}\"",
                     shell_word(job.program), shell_word(job.spec), shell_word(job.folder),
                     job.cpus);
}

}  // namespace

std::string shards_script(const SlurmJob& job) {
  return header(job, "llmsweep", "shard-%a.log") +
         fmt::format("#SBATCH --array=1-{}\n", job.tasks) +
         fmt::format("{} --shard \"$SLURM_ARRAY_TASK_ID/{}\"\n", run_words(job), job.tasks) +
         // 2: a mistake that another try does not mend; 4: done, and no point works.
         "code=$?\n"
         "case $code in\n"
         "  0 | 4) exit 0 ;;\n"
         "  2) exit 2 ;;\n"
         "esac\n"
         "if [ \"${SLURM_RESTART_COUNT:-0}\" -lt 5 ]; then\n"
         "  scontrol requeue \"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\" && exit 0\n"
         "fi\n"
         "exit \"$code\"\n";
}

std::string finish_script(const SlurmJob& job) {
  return header(job, "llmsweep-finish", "finish.log") +
         fmt::format("{}\ncode=$?\n", run_words(job)) +
         "[ \"$code\" -eq 0 ] || [ \"$code\" -eq 4 ] || exit \"$code\"\n" +
         fmt::format("exec {} finish {}\n", shell_word(job.program), shell_word(job.folder));
}

}  // namespace tools
