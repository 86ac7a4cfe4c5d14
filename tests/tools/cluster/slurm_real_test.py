"""llmsweep slurm on a real slurmctld and slurmd: tasks that are killed, cancelled or out of time. Nothing lost, nothing twice.

Skipped, with the reason, where no cluster can be started; `tools/test --with cluster` installs Slurm.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from slurm_cluster import CannotStart, SlurmCluster, wait_for  # noqa: E402

BINARY = os.environ["LLMSWEEP_BINARY"]
TASKS = 8
# A few seconds of one core in all, so that every task is still at work when it is disturbed.
SPEC = """
base:
  task: serve
  model: llama-3.1-8b
  device: h100-sxm
  load: {requests: 6000, lengths: {distribution: lognormal, prompt: 300, output: 60}}
axes:
  - load.rate: {linear: [1 req/s, 40 req/s], count: 512}
"""
POSITIONS = 512


def task_process(folder, number):
    """The process of a task of the array, found by what it was called with."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[0] == BINARY and str(folder) in words and f"{number}/{TASKS}" in words:
            return int(entry.name)
    return None


class RealSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = SlurmCluster(cpus=TASKS)
        try:
            cls.cluster.__enter__()
        except CannotStart as why:
            raise unittest.SkipTest(str(why))
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep slurm-")  # a blank in the path
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)
        self.folder = self.home / "night"
        (self.home / "sweep.yaml").write_text(SPEC)

    def submit(self, *options):
        done = subprocess.run([BINARY, "slurm", self.home / "sweep.yaml", "-o", self.folder, *options],
                              capture_output=True, text=True, env=self.cluster.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(line for line in done.stdout.splitlines() if line.startswith("job ")).split()[1].rstrip(":")

    def logs(self):
        return "\n".join(f"{log.name}: {log.read_text()}" for log in sorted((self.home / "night.slurm").glob("*.log")))

    def rows(self, folder):
        points = pd.read_parquet(folder / "points", columns=["index", "key", "ttft_p99_s"])
        return points.sort_values("index").reset_index(drop=True)

    def test_tasks_that_die_lose_nothing_and_repeat_nothing(self):
        array = self.submit("--tasks", str(TASKS), "--time", "30")
        killed, cancelled, out_of_time = 3, 5, 6
        stopped = {}
        for number in (killed, cancelled, out_of_time):
            stopped[number] = wait_for(lambda: task_process(self.folder, number))
            self.assertIsNotNone(stopped[number], f"task {number} never ran\n{self.logs()}")
            os.kill(stopped[number], signal.SIGSTOP)
        os.kill(stopped[killed], signal.SIGKILL)
        self.assertEqual(self.cluster.answer("scancel", f"{array}_{cancelled}").returncode, 0)
        # What Slurm sends a minute before the limit.
        self.assertEqual(self.cluster.answer("scancel", "--batch", "--signal=USR1", f"{array}_{out_of_time}").returncode, 0)
        os.kill(stopped[out_of_time], signal.SIGCONT)

        self.assertTrue(wait_for(lambda: not self.cluster.queue()), f"{self.cluster.queue()}\n{self.logs()}")
        for number, state, restarts in ((killed, "COMPLETED", 1), (out_of_time, "COMPLETED", 1), (cancelled, "CANCELLED", 0)):
            said = self.cluster.answer("scontrol", "show", "job", f"{array}_{number}").stdout
            self.assertIn(f"JobState={state} ", said)
            self.assertIn(f"Restarts={restarts} ", said)
        self.assertIn("complete and sound", (self.home / "night.slurm" / "finish.log").read_text())
        rows = self.rows(self.folder)
        self.assertEqual(list(rows["index"]), list(range(POSITIONS)))
        whole = self.home / "whole"
        self.assertEqual(subprocess.run([BINARY, "run", self.home / "sweep.yaml", "-o", whole], capture_output=True).returncode, 0)
        pd.testing.assert_frame_equal(rows, self.rows(whole))

    def test_a_partition_that_is_not_there_is_said(self):
        refused = subprocess.run([BINARY, "slurm", self.home / "sweep.yaml", "-o", self.folder, "--tasks", "2", "--partition", "none"],
                                 capture_output=True, text=True, env=self.cluster.environment)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("sbatch did not take the job", refused.stderr)
        self.assertEqual(self.cluster.queue(), [])


if __name__ == "__main__":
    unittest.main()
