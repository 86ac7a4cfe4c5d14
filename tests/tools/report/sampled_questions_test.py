"""llmsweep top, pareto and sensitivity where a sweep draws: values of a sample are an axis like those that are listed, and numbers of
replicates are no amounts."""

import io
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Sampled(unittest.TestCase):
    """What a sample draws is an axis like those that are listed: shown, weighed, and told apart by it."""

    SPEC = """
base: {task: step, model: llama-3.1-8b, step: {phase: decode}, calibration: {tier: roofline}}
axes:
  - device: [h100-sxm, l4]
  - sample: {latin_hypercube: 60, of: {device.memory_bandwidth: {geometric: [1 TB/s, 4 TB/s]}, device.l2_capacity: [20 MB, 80 MB]}}
"""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-sampled-")
        cls.home = pathlib.Path(cls.scratch.name)
        (cls.home / "sweep.yaml").write_text(cls.SPEC)
        done = llmsweep("run", cls.home / "sweep.yaml", "-o", cls.home / "run")
        assert done.returncode == 0, done.stderr
        cls.points = pd.read_parquet(cls.home / "run" / "points").set_index("index")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def answer(self, verb, *options):
        done = llmsweep(verb, self.home / "run", *options, "--format", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        return pd.read_csv(io.StringIO(done.stdout))

    def test_drawn_values_are_shown(self):
        for answer in (self.answer("top", "--by", "step_time_s"), self.answer("pareto", "--min", "step_time_s", "--min", "price_usd_per_mtok")):
            rows = self.points.loc[answer["index"]]
            for column in ("device", "device.memory_bandwidth", "device.l2_capacity"):
                self.assertEqual(list(answer[column]), list(rows[column]), column)

    def test_drawn_axes_are_weighed(self):
        answer = self.answer("sensitivity", "--of", "step_time_s").set_index("axis")
        self.assertEqual(set(answer.index), {"device", "device.memory_bandwidth", "device.l2_capacity"})
        # No two points share what was drawn, so all of them together say how the time follows bandwidth.
        slope = np.polyfit(np.log(self.points["device.memory_bandwidth"]), np.log(self.points.step_time_s), 1)[0]
        self.assertAlmostEqual(answer.elasticity["device.memory_bandwidth"], slope, delta=1e-3)
        # A step of one sequence waits for memory: its spread is that of bandwidth, and the size of the cache has no part in it.
        self.assertGreater(answer.explained_percent["device.memory_bandwidth"], 80)
        self.assertLess(answer.explained_percent["device.l2_capacity"], 20)

    def test_a_flag_of_a_role_that_is_not_there_is_neither_true_nor_false(self):
        (self.home / "roles.yaml").write_text("""
base: {task: request, device: h100-sxm, model: llama-3.1-8b}
axes: [prefill: [none, {}]]
""")
        done = llmsweep("run", self.home / "roles.yaml", "-o", self.home / "roles")
        self.assertEqual(done.returncode, 0, done.stderr)
        for where, indices in (("prefill.device.peer_access", [1]), ("prefill.device.peer_access == false", [])):
            done = llmsweep("top", self.home / "roles", "--by", "e2e_s", "--where", where, "--format", "csv")
            self.assertEqual(list(pd.read_csv(io.StringIO(done.stdout))["index"]) if done.stdout else [], indices, where)
        done = llmsweep("top", self.home / "roles", "--by", "e2e_s", "--show", "prefill.device.peer_access", "--format", "csv")
        shown = pd.read_csv(io.StringIO(done.stdout)).set_index("index")["prefill.device.peer_access"]
        self.assertTrue(pd.isna(shown[0]))
        self.assertTrue(shown[1])

    def test_what_moves_nothing_has_no_effect_at_all(self):
        (self.home / "inert.yaml").write_text("""
base: {task: step, device: l4, model: phi-2}
axes: [device.rent: [1 USD/h, 2 USD/h, 3.3 USD/h], step.batch: [1, 7, 30], step.context: [100, 333, 1000]]
""")
        run = self.home / "inert"
        self.assertEqual(llmsweep("run", self.home / "inert.yaml", "-o", run).returncode, 0)
        done = llmsweep("sensitivity", run, "--of", "step_time_s", "--format", "csv")
        rent = pd.read_csv(io.StringIO(done.stdout)).set_index("axis").loc["device.rent"]
        self.assertEqual((rent.explained_percent, rent.ratio, rent.elasticity), (0, 1, 0))
        self.assertTrue(pd.isna(rent.best))
        # Nothing explains the spread of a figure that has none.
        for where in ("step.batch > 0", "step.batch == 7", "step.context > 100"):
            for figure in ("weights_bytes", "devices"):
                done = llmsweep("sensitivity", run, "--of", figure, "--where", where, "--format", "csv")
                self.assertEqual(set(pd.read_csv(io.StringIO(done.stdout)).explained_percent), {0}, (figure, where))

    def test_what_always_moves_together_is_not_told_apart(self):
        (self.home / "zip.yaml").write_text("""
base: {task: step, device: h100-sxm, model: llama-3.1-8b, step: {phase: decode}}
axes:
  - zip: {step.batch: [1, 8, 64], step.context: [512, 1024, 4096]}
  - parallel.tp: [1, 2]
""")
        done = llmsweep("run", self.home / "zip.yaml", "-o", self.home / "zip")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = llmsweep("sensitivity", self.home / "zip", "--of", "step_time_s", "--format", "csv")
        answer = pd.read_csv(io.StringIO(done.stdout)).set_index("axis")
        for axis in ("step.batch", "step.context"):
            self.assertGreater(answer.explained_percent[axis], 10)
            self.assertEqual(answer.sets[axis], 0)
            self.assertTrue(math.isnan(answer.elasticity[axis]), axis)
        self.assertLess(answer.elasticity["parallel.tp"], 0)

    def test_a_replicate_is_no_knob(self):
        (self.home / "replicates.yaml").write_text("""
base: {task: serve, device: h100-sxm, model: llama-3.1-8b, load: {requests: 50, lengths: {distribution: lognormal, prompt: 100, output: 20}}}
axes: [load.rate: [1 req/s, 20 req/s], seed: [1, 5]]
replicates: 4
""")
        done = llmsweep("run", self.home / "replicates.yaml", "-o", self.home / "replicates")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = llmsweep("sensitivity", self.home / "replicates", "--of", "ttft_s", "--format", "csv")
        answer = pd.read_csv(io.StringIO(done.stdout)).set_index("axis")
        # How much chance moves a figure is worth knowing; there is no percent of a replicate, and none to choose.
        for axis in ("replicate", "seed"):
            self.assertGreater(answer.ratio[axis], 1, axis)
            self.assertTrue(math.isnan(answer.elasticity[axis]), axis)
            self.assertTrue(pd.isna(answer.best[axis]), axis)
        self.assertGreater(answer.elasticity["load.rate"], 0)


if __name__ == "__main__":
    unittest.main()
