"""The same spec gives the same rows: at any thread count, shard split, or after any kills.

Runs the real command, kills it with SIGKILL at random moments, resumes it, and compares whole
tables, sorted, with those of an uninterrupted run.
"""

import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

import pyarrow.parquet as parquet

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base:
  task: step
  device: h100-sxm
  model: llama-3.1-8b
axes:
  - device: [a100-80gb-sxm, h100-sxm, h200-sxm]
  - task: [step, request]
  - parallel.tp: [1, 2, 3]
  - step.batch: {powers_of_two: [1, 1024]}
  - request.prompt: {values: [128, 1024], when: "task == 'request'"}
  - sample: {latin_hypercube: %d, of: {device.l2_capacity: [30 MB, 200 MB], device.clock: [1.2 GHz, 2.6 GHz]}}
require: ["step.batch <= 512"]
derive: {step.context: "step.batch * 16 + 1"}
seed: 7
"""
# Enough work that a kill often hits in the middle: some seconds on one thread.
SAMPLES = 400


def command(spec, folder, *options):
    return [BINARY, "run", str(spec), "-o", str(folder), *options]


def run(spec, folder, *options):
    subprocess.run(command(spec, folder, *options), check=True, stdout=subprocess.DEVNULL)


def tables(folder):
    points = parquet.read_table(folder / "points").sort_by("index")
    keys = [("index", "ascending"), ("phase", "ascending"), ("op", "ascending"), ("family", "ascending")]
    kernels = parquet.read_table(folder / "kernels").sort_by(keys)
    return points.combine_chunks(), kernels.combine_chunks()


class SameRows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-same-rows-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.spec = cls.home / "sweep.yaml"
        cls.spec.write_text(SPEC % SAMPLES)
        start = time.monotonic()
        run(cls.spec, cls.home / "reference", "-j", "1")
        cls.seconds = time.monotonic() - start
        cls.reference = tables(cls.home / "reference")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def assert_same(self, folder):
        points, kernels = tables(folder)
        self.assertTrue(points.equals(self.reference[0]), "points differ")
        self.assertTrue(kernels.equals(self.reference[1]), "kernels differ")

    def test_reference_is_worth_comparing(self):
        points, kernels = self.reference
        self.assertGreater(points.num_rows, 10_000)
        self.assertEqual(len(set(points["status"].to_pylist())), 2)
        self.assertGreater(kernels.num_rows, points.num_rows)
        self.assertEqual(len(set(points["index"].to_pylist())), points.num_rows)

    def test_thread_counts(self):
        for threads in (2, 7):
            with self.subTest(threads=threads):
                folder = self.home / f"threads-{threads}"
                run(self.spec, folder, "-j", str(threads))
                self.assert_same(folder)

    def test_shards(self):
        folder = self.home / "shards"
        for shard in (2, 3, 1):
            run(self.spec, folder, "--shard", f"{shard}/3")
        self.assert_same(folder)

    def test_twenty_kills(self):
        folder = self.home / "killed"
        generator = random.Random(11)
        kills = 0
        while kills < 20:
            process = subprocess.Popen(
                command(self.spec, folder, "-j", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            # Up to twice the time of what is left on average, so that kills spread over the run.
            time.sleep(generator.uniform(0, self.seconds / 6))
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:
                # Finished before the kill: start over, so that every kill hits a running process.
                self.assert_same(folder)
                folder = self.home / f"killed-{kills}"
                continue
            kills += 1
        run(self.spec, folder)
        self.assert_same(folder)

    def test_finished_run_does_nothing_again(self):
        folder = self.home / "reference"
        before = {f: f.stat().st_mtime_ns for f in folder.rglob("*.parquet")}
        run(self.spec, folder)
        after = {f: f.stat().st_mtime_ns for f in folder.rglob("*.parquet")}
        self.assertEqual(before, after)

    def test_extended_sweep_reuses_finished_points(self):
        wider = self.home / "wider.yaml"
        wider.write_text((SPEC % SAMPLES).replace("[1, 2, 3]", "[1, 2, 3, 4]"))
        run(wider, self.home / "plain")
        output = subprocess.run(
            command(wider, self.home / "reused", "--reuse", str(self.home / "reference")),
            check=True, capture_output=True, text=True,
        ).stdout
        self.assertIn("(reused)", output)
        for name in ("points", "kernels"):
            plain, reused = (parquet.read_table(self.home / f / name) for f in ("plain", "reused"))
            order = [(c, "ascending") for c in ("index", "phase", "op", "family") if c in plain.column_names]
            self.assertTrue(plain.sort_by(order).equals(reused.sort_by(order)), name)

    def test_another_spec_is_refused(self):
        other = self.home / "other.yaml"
        other.write_text((SPEC % SAMPLES).replace("seed: 7", "seed: 8"))
        result = subprocess.run(
            command(other, self.home / "reference"), capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 2)
        self.assertIn("--reuse", result.stderr)

    def test_ctrl_c_stops_and_resumes(self):
        folder = self.home / "stopped"
        process = subprocess.Popen(
            command(self.spec, folder, "-j", "1"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        time.sleep(min(0.5, self.seconds / 4))
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        self.assertEqual(process.returncode, 3, output)
        self.assertIn(f"llmsweep run {self.spec} -o {folder}", output)
        run(self.spec, folder)
        self.assert_same(folder)


if __name__ == "__main__":
    unittest.main()
