"""Killed at any moment, again and again, a run loses and doubles nothing: all tables, shards, reuse.

LLMSWEEP_KILLS=200 does the whole matrix; by default it is 40 kills. Delays come from a fixed seed. After
every kill `verify` must find the folder sound, and at the end every table is that of a run that nobody
killed.
"""

import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

import same_rows_test as same

KILLS = int(os.environ.get("LLMSWEEP_KILLS", "40"))

STEPS = """
base: {task: step, device: h100-sxm, model: llama-3.1-8b}
axes:
  - device: [a100-80gb-sxm, h100-sxm]
  - parallel.tp: [1, 2, 3]
  - step.batch: {powers_of_two: [1, 1024]}
  - sample: {latin_hypercube: 500, of: {device.clock: [1.2 GHz, 2.6 GHz]}}
require: ["step.batch <= 512"]
seed: 7
"""

# All four tables; half of the points ask for rows of requests.
SERVING = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  load: {requests: 300, lengths: {distribution: lognormal, prompt: 400, output: 100, prompt_max: 8000}}
  output: {timeline: 200 ms, timeline_moments: 200}
axes:
  - output.requests: [true, false]
  - load.rate: {geometric: [1 req/s, 50 req/s], count: 10}
replicates: 4
"""


class KillMatrix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-kills-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.seconds = {}

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def spec(self, name, text):
        path = self.home / f"{name}.yaml"
        path.write_text(text)
        return path

    def reference(self, spec):
        """A folder nobody killed, its tables, and the seconds the run took."""
        folder = self.home / f"{spec.stem}-reference"
        if not folder.exists():
            start = time.monotonic()
            same.run(spec, folder, "-j", "2")
            self.seconds[spec.stem] = time.monotonic() - start
        return folder, same.tables(folder), self.seconds[spec.stem]

    def assert_same(self, folder, expected):
        found = same.tables(folder)
        self.assertEqual(list(found), list(expected))
        for name, table in found.items():
            self.assertTrue(table.equals(expected[name]), f"{name} differ in {folder.name}")

    def assert_sound(self, folder):
        if not list(folder.glob("manifest-*")):
            return  # killed before there was a run
        said = subprocess.run([same.BINARY, "verify", folder], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)

    def kill_again_and_again(self, name, spec, option_lists, kills, seconds, expected):
        """Starts one process for each list of options at once and kills them, each at a moment of its own."""
        generator = random.Random(name)
        folder, killed, number = self.home / f"{name}-0", 0, 0
        for _ in range(4 * kills):
            if killed >= kills:
                break
            processes = [
                subprocess.Popen(same.command(spec, folder, *options),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for options in option_lists
            ]
            for process in processes:
                # Most kills come before the end, whatever else the machine does.
                time.sleep(generator.uniform(0, 0.7 * seconds / len(processes)))
                process.send_signal(signal.SIGKILL)
            codes = []
            for process in processes:
                said = process.communicate()[1]
                codes.append(process.returncode)
                self.assertIn(process.returncode, (0, -signal.SIGKILL), said)
            killed += sum(code != 0 for code in codes)
            self.assert_sound(folder)
            if not any(codes):
                # All finished before their kill: start over, so that kills hit running processes.
                self.assert_same(folder, expected)
                number += 1
                folder = self.home / f"{name}-{number}"
        for options in option_lists:
            same.run(spec, folder, *options)
        self.assert_same(folder, expected)
        self.assert_sound(folder)
        print(f"{name}: {killed} kills, {number + 1} folders", flush=True)

    def test_steps(self):
        spec = self.spec("steps", STEPS)
        _, expected, seconds = self.reference(spec)
        self.kill_again_and_again("one", spec, [["-j", "2"]], KILLS // 4, seconds, expected)

    def test_all_tables(self):
        spec = self.spec("serving", SERVING)
        _, expected, seconds = self.reference(spec)
        self.assertEqual(len(expected), 4)
        self.kill_again_and_again("tables", spec, [["-j", "2"]], KILLS // 4, seconds, expected)

    def test_shards_together(self):
        spec = self.spec("steps", STEPS)
        _, expected, seconds = self.reference(spec)
        shards = [["-j", "1", "--shard", f"{k}/3"] for k in (1, 2, 3)]
        self.kill_again_and_again("shards", spec, shards, KILLS // 4, seconds, expected)

    def test_reuse(self):
        narrow = self.spec("narrow", STEPS.replace("[1, 2, 3]", "[1, 2]"))
        spec = self.spec("steps", STEPS)
        _, expected, seconds = self.reference(spec)
        old, _, _ = self.reference(narrow)
        self.kill_again_and_again("reuse", spec, [["-j", "2", "--reuse", old]], KILLS // 4, seconds, expected)

    def test_two_writers(self):
        """Two commands for one shard: one writes, the other says why it does not."""
        spec = self.spec("steps", STEPS)
        _, expected, _ = self.reference(spec)
        folder = self.home / "two-writers"
        both = [subprocess.Popen(same.command(spec, folder, "-j", "1"), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for process in both:
            said = process.communicate()[1]
            self.assertIn(process.returncode, (0, 2), said)
            if process.returncode == 2:
                self.assertIn("another process is writing this shard", said)
        self.assertIn(0, [process.returncode for process in both])
        self.assert_same(folder, expected)

    def test_two_specs_at_once(self):
        """Of two different sweeps started in one new folder one wins, and its rows are its own."""
        specs = [self.spec("steps", STEPS), self.spec("narrow", STEPS.replace("[1, 2, 3]", "[1, 2]"))]
        folder = self.home / "two-specs"
        both = [subprocess.Popen(same.command(spec, folder, "--shard", f"{k}/2", "-j", "1"),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for k, spec in enumerate(specs, 1)]
        said = [process.communicate()[1] for process in both]
        self.assertEqual(sorted(process.returncode for process in both), [0, 2], said)
        winner = specs[[process.returncode for process in both].index(0)]
        for k in (1, 2):
            same.run(winner, folder, "--shard", f"{k}/2")
        self.assert_same(folder, self.reference(winner)[1])


if __name__ == "__main__":
    unittest.main()
