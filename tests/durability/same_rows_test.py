"""The same spec gives the same rows: at any thread count, shard split, stopped, resumed or reused.

Runs the real command and compares whole tables, sorted. Kills are in kill_matrix_test.py.
"""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import pyarrow.compute as pc
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
# Enough work that Ctrl-C hits in the middle: some seconds on one thread.
SAMPLES = 400

# A served load with all tables; half of the points ask for rows of requests.
SERVING = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  serving: {replicas: 2, router: least_outstanding}
  load: {requests: 800, lengths: {distribution: lognormal, prompt: 400, output: 100, prompt_max: 8000}}
  output: {timeline: 200 ms, timeline_moments: 500}
axes:
  - serving.policy: [vllm_v1, sarathi, sglang]
  - output.requests: [true, false]
  - serving.kv_blocks: [200, auto]
  - load.rate: {geometric: [1 req/s, 200 req/s], count: 10}
replicates: 4
"""


def command(spec, folder, *options):
    return [BINARY, "run", str(spec), "-o", str(folder), *options]


def run(spec, folder, *options):
    subprocess.run(command(spec, folder, *options), check=True, stdout=subprocess.DEVNULL)


# What makes a row of a table unique.
ROW = {
    "points": ["index"],
    "kernels": ["index", "phase", "op", "family"],
    "requests": ["index", "request"],
    "timeline": ["index", "time_s", "replica"],
}


def tables(folder):
    """Every table of a run by its name, in one order."""
    return {
        name: parquet.read_table(folder / name).sort_by([(c, "ascending") for c in columns]).combine_chunks()
        for name, columns in ROW.items()
        if (folder / name).exists()
    }


class SameRows:
    """What holds for any spec; SPEC and WIDER (the same with more points) are the subclass's."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-same-rows-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.spec = cls.home / "sweep.yaml"
        cls.spec.write_text(cls.SPEC)
        start = time.monotonic()
        run(cls.spec, cls.home / "reference", "-j", "1")
        cls.seconds = time.monotonic() - start
        cls.reference = tables(cls.home / "reference")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def assert_same(self, folder):
        found = tables(folder)
        self.assertEqual(list(found), list(self.reference))
        for name, table in found.items():
            self.assertTrue(table.equals(self.reference[name]), f"{name} differ")

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

    def test_finished_run_does_nothing_again(self):
        folder = self.home / "reference"
        before = {f: f.stat().st_mtime_ns for f in folder.rglob("*.parquet")}
        run(self.spec, folder)
        after = {f: f.stat().st_mtime_ns for f in folder.rglob("*.parquet")}
        self.assertEqual(before, after)

    def test_extended_sweep_reuses_finished_points(self):
        wider = self.home / "wider.yaml"
        wider.write_text(self.WIDER)
        run(wider, self.home / "plain")
        output = subprocess.run(
            command(wider, self.home / "reused", "--reuse", str(self.home / "reference")),
            check=True, capture_output=True, text=True,
        ).stdout
        self.assertIn("(reused)", output)
        plain, reused = tables(self.home / "plain"), tables(self.home / "reused")
        self.assertEqual(list(plain), list(reused))
        for name, table in plain.items():
            self.assertTrue(table.equals(reused[name]), name)

    def test_points_given_up_are_done_again_with_more_work_allowed(self):
        folder = self.home / "budget"
        for budget in ("1", "20"):
            subprocess.run(command(self.spec, folder, "--point-budget", budget), capture_output=True)  # in which no point may work
        points = parquet.read_table(folder / "points")
        reasons = set(points.filter(pc.equal(points["reason_class"], "budget"))["reason"].to_pylist())
        self.assertEqual(reasons, {"takes more than 20 units of work; --point-budget allows more"})
        before = {f: f.stat().st_mtime_ns for f in folder.rglob("*.parquet")}
        for budget in ("20", "7"):
            subprocess.run(command(self.spec, folder, "--point-budget", budget), capture_output=True)
        self.assertEqual(before, {f: f.stat().st_mtime_ns for f in folder.rglob("*.parquet")})
        run(self.spec, folder)
        self.assert_same(folder)

    def test_another_spec_is_refused(self):
        other = self.home / "other.yaml"
        other.write_text(self.WIDER)
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
        process.stdout.readline()  # the run begins; before that, Ctrl-C simply ends the program
        time.sleep(min(0.2, self.seconds / 8))
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        self.assertEqual(process.returncode, 3, output)
        self.assertIn(f"llmsweep run {self.spec} --output {folder}", output)
        run(self.spec, folder)
        self.assert_same(folder)


class SameStepRows(SameRows, unittest.TestCase):
    SPEC = SPEC % SAMPLES
    WIDER = SPEC.replace("[1, 2, 3]", "[1, 2, 3, 4]")

    def test_reference_is_worth_comparing(self):
        points, kernels = self.reference["points"], self.reference["kernels"]
        self.assertGreater(points.num_rows, 10_000)
        self.assertEqual(len(set(points["status"].to_pylist())), 2)
        self.assertGreater(kernels.num_rows, points.num_rows)
        self.assertEqual(len(set(points["index"].to_pylist())), points.num_rows)
        self.assertEqual(list(self.reference), ["points", "kernels"], "tables nobody asked for")


class SameServingRows(SameRows, unittest.TestCase):
    SPEC = SERVING
    WIDER = SERVING.replace("sarathi, sglang]", "sarathi, sglang, orca]")

    def test_reference_is_worth_comparing(self):
        points, requests = self.reference["points"], self.reference["requests"]
        self.assertEqual(points.num_rows, 480)
        self.assertEqual(requests.num_rows, 240 * 800)
        self.assertGreater(sum(points["preemptions"].to_pylist()), 500)
        self.assertEqual(set(requests["end"].to_pylist()), {"finished", "refused"})
        moments = self.reference["timeline"].group_by(["index", "replica"]).aggregate([([], "count_all")])
        self.assertEqual(moments.num_rows, 960)
        self.assertLessEqual(max(moments["count_all"].to_pylist()), 500)

    def test_the_rows_of_a_request_give_the_figures_of_its_point(self):
        requests = self.reference["requests"].to_pandas()
        points = self.reference["points"].to_pandas().set_index("index")
        asked = points[points["output.requests"]]
        done = requests[(requests.end == "finished") & requests.measured]
        e2e = (done.finish_s - done.arrival_s).groupby(done["index"])
        self.assertLess((e2e.mean() / asked.e2e_s - 1).abs().max(), 1e-9)
        self.assertLess((e2e.quantile(0.99) / asked.e2e_p99_s - 1).abs().max(), 0.05)
        refused = requests.groupby("index").end.agg(lambda end: (end == "refused").sum())
        self.assertTrue((refused == asked.requests_refused).all())
        preempted = requests.groupby("index").preemptions.sum()
        self.assertTrue((preempted == asked.preemptions).all())
        self.assertEqual(set(requests["index"]), set(asked.index))


if __name__ == "__main__":
    unittest.main()
