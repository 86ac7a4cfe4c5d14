"""llmsweep slurm: what it hands to sbatch, run by a stand-in that starts, kills and requeues tasks as a cluster does. Nothing lost, nothing twice."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base: {task: step, model: llama-3.1-8b, device: h100-sxm}
axes:
  - step.batch: {linear: [1, 1000], count: 1000}
  - step.context: [512, 1024, 2048, 4096]
"""
POSITIONS = 4000
# Notes what it was given and answers with a number, as `sbatch --parsable` does.
SBATCH = """#!/bin/sh
echo "$@" >> {calls}
wc -l < {calls}
"""


class Slurm(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep slurm-")  # a blank in the path
        self.home = pathlib.Path(self.scratch.name)
        self.spec = self.home / "sweep.yaml"
        self.spec.write_text(SPEC)
        self.folder = self.home / "night"
        self.bin = self.home / "bin"
        self.bin.mkdir()
        self.stand_in("sbatch", SBATCH.format(calls=f"'{self.home}/calls'"))
        self.stand_in("scontrol", f'#!/bin/sh\necho "$@" >> "{self.home}/requeued"\n')
        self.environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def tearDown(self):
        self.scratch.cleanup()

    def stand_in(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def slurm(self, *options):
        return subprocess.run([BINARY, "slurm", self.spec, "-o", self.folder, *options], capture_output=True, text=True, env=self.environment)

    def job(self, script, **variables):
        return subprocess.run(["bash", self.folder.with_name("night.slurm") / script], capture_output=True, text=True, cwd="/",
                              env={**self.environment, "SLURM_ARRAY_JOB_ID": "1", **variables})

    def test_an_array_and_a_job_that_waits_for_it_are_submitted(self):
        done = self.slurm("--tasks", "8", "--cpus", "2", "--partition", "batch", "--time", "1:00:00")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = (self.home / "calls").read_text().splitlines()
        self.assertIn("workers.sh", first)
        self.assertIn("--dependency=afterany:1 ", second)
        script = (self.home / "night.slurm" / "workers.sh").read_text()
        for line in ("--array=1-8", "--cpus-per-task=2", "--partition=batch", "--time=1:00:00", "--requeue"):
            self.assertIn(f"#SBATCH {line}\n", script)
        # sbatch reads options only above the first command.
        commands = [i for i, line in enumerate(script.splitlines()) if line and not line.startswith("#")]
        options = [i for i, line in enumerate(script.splitlines()) if line.startswith("#SBATCH")]
        self.assertLess(max(options), min(commands))

    def test_an_option_cannot_bring_a_line_of_its_own(self):
        for option in ("--partition", "--time", "--memory"):
            for value, place, said, before in (("batch\ntouch x", 6, "\\x0a", "batch"), ("a\rb", 2, "\\x0d", "a"), ("\x1b[2J", 1, "\\x1b", "")):
                done = self.slurm("--tasks", "8", option, value)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr, f"error: {option}: character {place} is a control character, {said}, after '{before}'\n"
                                              f"  hint: a job's script has each option in a line of its own; write {option} in one line of text\n")
        self.folder = self.home / "ni\nght"
        self.assertIn("error: --output: character", self.slurm("--tasks", "8").stderr)
        self.assertEqual(sorted(file.name for file in self.home.iterdir()), ["bin", "sweep.yaml"])

    def test_tasks_that_die_or_never_start_lose_nothing_and_repeat_nothing(self):
        self.assertEqual(self.slurm("--tasks", "4").returncode, 0)
        for number in (1, 2):
            self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID=str(number)).returncode, 0)
        # The third is killed: the stand-in for the program dies as by SIGKILL, and the task asks to be queued again.
        script = self.home / "night.slurm" / "workers.sh"
        whole = script.read_text()
        script.write_text(re.sub(r"^.* run .*&$", "bash -c 'kill -9 $$' &", whole, flags=re.MULTILINE))
        self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="3").returncode, 0)
        self.assertEqual((self.home / "requeued").read_text(), "requeue 1_3\n")
        for _ in range(4):
            self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="3").returncode, 0)
        self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="3").returncode, 137)
        script.write_text(whole)
        self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="3").returncode, 0)
        # The fourth was cancelled before it began.
        finish = self.job("finish.sh")
        self.assertEqual(finish.returncode, 0, finish.stderr)
        self.assertIn("complete and sound", finish.stdout)
        index = pd.read_parquet(self.folder / "points", columns=["index"])["index"]
        self.assertEqual(sorted(index), list(range(POSITIONS)))

    def test_a_mistake_is_not_tried_again(self):
        self.assertEqual(self.slurm("--tasks", "2").returncode, 0)
        # What was submitted is what runs, whatever becomes of the file meanwhile.
        self.spec.write_text("base: {modell: x}\n")
        self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="1").returncode, 0)
        (self.home / "night.slurm" / "sweep.yaml").write_text("base: {modell: x}\n")
        self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="1").returncode, 2)
        self.assertFalse((self.home / "requeued").exists())
        before = (self.home / "calls").read_text()
        self.assertEqual(self.slurm("--tasks", "2").returncode, 2)
        self.assertEqual((self.home / "calls").read_text(), before)

    def test_more_positions_than_the_limit_are_refused_before_anything_is_submitted(self):
        refused = self.slurm("--tasks", "2", "--limit", "100")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("has 4,000 positions, more than the limit of 100", refused.stderr)
        self.assertFalse((self.home / "calls").exists())
        self.spec.write_text(SPEC + "limit: 10\n")
        self.assertEqual(self.slurm("--tasks", "2", "--limit", "4000").returncode, 0)
        self.assertEqual(self.job("workers.sh", SLURM_ARRAY_TASK_ID="1").returncode, 0)

    def test_scripts_alone_and_a_cluster_that_says_no(self):
        self.assertEqual(self.slurm("--tasks", "2", "--dry-run").returncode, 0)
        self.assertFalse((self.home / "calls").exists())
        self.stand_in("sbatch", "#!/bin/sh\necho 'no such partition' >&2\nexit 1\n")
        refused = self.slurm("--tasks", "2")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("sbatch did not take the job", refused.stderr)


if __name__ == "__main__":
    unittest.main()
