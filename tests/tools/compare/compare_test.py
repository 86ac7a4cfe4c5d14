"""llmsweep compare: what a dataframe would find between two runs, a gate by exit code, and a baseline that changes whole or not at all."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base: {{task: step, model: llama-3.1-8b, step: {{phase: decode}}, device: {device}}}
axes:
  - parallel.tp: [1, 2, 3, 4]
  - step.batch: {batches}
  - step.context: [512, 8192]
"""
SERVED = """
base: {{task: serve, model: llama-3.1-8b, device: {device}, load: {{from: chat, requests: 200}}}}
axes: [load.rate: [2 req/s, 8 req/s]]
"""


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def points_of(folder):
    return pd.read_parquet(folder / "points").sort_values("index").reset_index(drop=True)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-compare-")
        cls.home = pathlib.Path(cls.scratch.name)
        small = "[1, 16, 256]"
        cls.old = cls.run_spec("old", SPEC.format(device="h100-sxm", batches=small))
        # The same labels, another machine behind them: every key differs.
        slower = "{from: h100-sxm, memory_bandwidth: 2 TB/s, memory_capacity: 20 GB}"
        cls.new = cls.run_spec("new", SPEC.format(device=slower, batches=small))
        cls.wider = cls.run_spec("wider", SPEC.format(device="h100-sxm", batches="[16, 256, 64]"))
        cls.served = cls.run_spec("served", SERVED.format(device="h100-sxm"))
        cls.served_slower = cls.run_spec("served_slower", SERVED.format(device="{from: h100-sxm, memory_bandwidth: 2 TB/s}"))

    @classmethod
    def run_spec(cls, name, text):
        (cls.home / f"{name}.yaml").write_text(text)
        done = llmsweep("run", cls.home / f"{name}.yaml", "-o", cls.home / name)
        assert done.returncode == 0, done.stderr
        return cls.home / name

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def compare(self, old, new, *options, code):
        done = llmsweep("compare", old, new, *options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_points_of_a_sample_are_told_apart_by_what_was_drawn(self):
        spec = """
base: {{task: step, model: llama-3.1-8b, step: {{phase: decode, context: {context}}}, device: h100-sxm}}
axes:
  - sample: {{random: 3000, of: {{device.memory_bandwidth: [1 TB/s, 8 TB/s], step.batch: [1, 500]}}}}
require: ["{required}"]
"""
        whole = self.run_spec("sampled", spec.format(context=1024, required="true"))
        shards = self.home / "sampled_shards"
        for shard in ("1/3", "2/3", "3/3"):
            llmsweep("run", self.home / "sampled.yaml", "-o", shards, "--shard", shard)
        self.assertIn("same\n", self.compare(whole, shards, "--by", "labels", "--tolerance", "0", code=0).stdout)
        # Some of them, with another context: no key is there twice, and each is held to its own.
        some = self.run_spec("sampled_some", spec.format(context=512, required="step.batch > 250"))
        said = self.compare(whole, some, "--common", code=1).stdout
        self.assertIn(f"joined: {len(points_of(some)):,}, ", said)
        self.assertNotIn("step.batch ", said.split("Settings")[1])

    def test_sub_sweeps_without_names_are_told_apart(self):
        spec = """
base: {{task: step, model: llama-3.1-8b, step: {{phase: decode, context: {context}}}, device: h100-sxm}}
axes: [{{concat: [{{base: {{step.batch: 1}}}}, {{base: {{step.batch: 256}}}}]}}]
require: ["{required}"]
"""
        both = self.run_spec("both", spec.format(context=1024, required="true"))
        second = self.run_spec("second", spec.format(context=1000, required="step.batch > 1"))
        said = self.compare(both, second, "--common", code=1).stdout
        self.assertNotIn("step.batch ", said.split("Settings")[1])

    def test_a_role_that_only_one_run_names_is_a_setting_that_differs(self):
        alone = self.run_spec("alone", SERVED.format(device="h100-sxm"))
        apart = self.run_spec("apart", SERVED.format(device="h100-sxm").replace("load:", "prefill: {}, load:"))
        nobody = self.run_spec("nobody", SERVED.format(device="h100-sxm").replace("load:", "prefill: none, load:"))
        for old, new, words in ((alone, apart, r"prefill.present +2 +false +true"), (apart, alone, r"prefill.present +2 +true +false")):
            self.assertRegex(self.compare(old, new, code=1).stdout.split("Settings")[1], words)
        self.assertIn("same\n", self.compare(alone, nobody, "--by", "labels", code=0).stdout)

    def differences(self, old, new, *options):
        file = self.home / "differences.csv"
        self.compare(old, new, "-o", file, *options, code=1)
        return pd.read_csv(file)

    def test_a_run_is_the_same_as_itself_however_it_was_split(self):
        self.assertIn("same\n", self.compare(self.old, self.old, code=0).stdout)
        halves = self.home / "halves"
        for shard in ("1/2", "2/2"):
            llmsweep("run", self.home / "old.yaml", "-o", halves, "--shard", shard)
        self.compare(self.old, halves, "--tolerance", "0", code=0)

    def test_points_of_one_run_alone_are_new_or_missing(self):
        found = self.differences(self.old, self.wider)
        old, wider = points_of(self.old), points_of(self.wider)
        self.assertEqual(set(found[found.change == "new"].new_index), set(wider[wider["step.batch"] == 64]["index"]))
        self.assertEqual(set(found[found.change == "missing"].old_index), set(old[old["step.batch"] == 1]["index"]))
        # Points of both have the same figures, wherever they stand in the grid.
        self.assertEqual(set(found.change), {"new", "missing"})

    def test_drift_is_what_a_dataframe_says(self):
        found = self.differences(self.old, self.new)
        old, new = points_of(self.old), points_of(self.new)
        ok = (old.status == "ok") & (new.status == "ok")
        broken = (old.status == "ok") & (new.status != "ok")
        self.assertGreater(broken.sum(), 0)
        self.assertEqual(set(found[(found.change == "status")].new_index), set(new[broken]["index"]))
        for metric in ("step_time_s", "output_tokens_per_s", "price_usd_per_mtok"):
            change = (100 * (new[metric] / old[metric] - 1))[ok]
            rows = found[found.column == metric].set_index("new_index").change_percent
            expected = change[change.abs() > 1e-7]
            self.assertEqual(set(rows.index), set(new["index"][expected.index]))
            np.testing.assert_allclose(rows.loc[new["index"][expected.index]], expected, rtol=1e-6)
            self.assertEqual(list(rows.abs()), sorted(rows.abs(), reverse=True))

    def test_a_tolerance_is_a_gate(self):
        old, new = points_of(self.served), points_of(self.served_slower)
        rests_on = ("extrapolated_share", "power_limited_share")  # no figures: what these rest on
        metrics = [c for c in old if old[c].dtype == float and (old[c] != new[c]).any() and not c.startswith("device.") and c not in rests_on]
        largest = max(float((new[m] / old[m] - 1).abs().max()) for m in metrics if np.isfinite(new[m] / old[m]).all())
        self.compare(self.served, self.served_slower, "--tolerance", f"{largest / 2}", code=1)
        everything = [f"--tolerance={m}=100000000%" for m in metrics]
        result = self.compare(self.served, self.served_slower, "--tolerance", "100000000%", *everything, code=0)
        self.assertIn("device.memory_bandwidth", result.stdout)  # told, though nothing drifted beyond it

    def test_a_tolerance_below_zero_is_none(self):
        self.assertIn("'-1%' is not a share", self.compare(self.old, self.old, "--tolerance=-1%", code=2).stderr)

    def test_labels_join_where_keys_differ(self):
        self.assertIn("by the labels of their axes", self.compare(self.old, self.new, code=1).stdout)
        alone = self.compare(self.old, self.new, "--by", "key", code=2)
        self.assertIn("no point has a key that is in", alone.stderr)
        # Points that share a key stay joined by it, whatever their labels say.
        self.compare(self.old, self.old, "--by", "labels", code=0)

    def test_parts_of_the_time_add_up_to_its_drift(self):
        for old, new, time in ((self.old, self.new, "step_time_s"), (self.served, self.served_slower, "e2e_s")):
            text = self.compare(old, new, code=1).stdout.split("Where the time went: ")[1].split("\n\n")[0].splitlines()
            a, b = points_of(old), points_of(new)
            ok = (a.status == "ok") & (b.status == "ok")
            mean = float((100 * (b[time] / a[time] - 1))[ok].mean())
            self.assertTrue(text[0].startswith(f"{time} of {ok.sum()} points drifted, by {mean:+.3g}%"), text[0])
            parts = [line.split()[:3] for line in text[2:]]
            self.assertAlmostEqual(sum(float(share) for _, _, share in parts), mean, delta=0.02 * abs(mean))
            # Less bandwidth: it is the products, which read the weights, that take longer.
            self.assertEqual(parts[0][:2], ["gemm", "kernel"])

    def test_the_front_moves_by_what_its_points_moved(self):
        faster = "{from: h100-sxm, memory_bandwidth: 6.7 TB/s}"
        new = self.run_spec("faster", SPEC.format(device=faster, batches="[1, 16, 256]"))
        text = self.compare(self.old, new, "--min", "step_time_s", code=1).stdout
        a, b = points_of(self.old), points_of(new)
        shift = 100 * (a.step_time_s.min() / b.step_time_s.min() - 1)
        self.assertIn(f"moved by {shift:+.3g}% in the median", text)
        self.assertNotIn("Pareto front", self.compare(self.old, self.old, code=0).stdout)

    def test_every_format_tells_the_same(self):
        before = contents(self.old)
        for end in ("txt", "md", "html", "csv", "csv.gz", "parquet"):
            file = self.home / f"out.{end}"
            self.compare(self.old, self.new, "-o", file, code=1)
            self.assertGreater(file.stat().st_size, 100)
        text = self.compare(self.old, self.new, code=1).stdout
        self.assertEqual((self.home / "out.txt").read_text(), text)
        self.assertEqual((self.home / "out.md").read_text(), self.compare(self.old, self.new, "--format", "markdown", code=1).stdout)
        for line in (self.home / "out.md").read_text().splitlines():
            if line.startswith("|"):
                self.assertTrue(line.endswith("|"))
        pd.testing.assert_frame_equal(pd.read_csv(self.home / "out.csv"), pd.read_parquet(self.home / "out.parquet"), check_dtype=False)
        self.assertEqual(contents(self.old), before)

    def test_labels_stay_text_on_a_page(self):
        hostile = "base: {task: step, model: llama-3.1-8b}\naxes: [{device: [{from: l4, name: '<img src=x>'}, {from: h100-sxm, name: '<b>'}]}]\n"
        old = self.run_spec("hostile", hostile)
        new = self.run_spec("hostile2", hostile.replace("llama-3.1-8b", "{from: llama-3.1-8b, layers: 16}"))
        self.compare(old, new, "-o", self.home / "hostile.html", code=1)
        self.assertNotIn("<img", (self.home / "hostile.html").read_text())

    def test_broken_input_is_told_and_changes_nothing(self):
        damaged = self.home / "damaged"
        shutil.copytree(self.old, damaged)
        part = next((damaged / "points").glob("*.parquet"))
        part.write_bytes(part.read_bytes()[:-100])
        newer = self.home / "newer"
        shutil.copytree(self.old, newer)
        (newer / "manifest-1of1.jsonl").write_text('{"llmsweep_manifest":99}\n')
        empty = self.home / "empty"
        empty.mkdir(exist_ok=True)
        before = contents(self.home)
        cases = [
            ([self.home / "nowhere", self.new], "nowhere"),
            ([empty, self.new], "empty"),
            ([damaged, self.new], "bytes, not"),
            ([newer, self.new], "newer version of the program"),
            ([self.old, self.served, "--by", "key"], "no point has a key that is in"),
            ([self.old, self.new, "--tolerance", "step_tim_s=1%"], "did you mean 'step_time_s'?"),
            ([self.old, self.new, "--tolerance", "device=1%"], "is not a figure"),
            ([self.old, self.new, "--tolerance", "much"], "'much' is not a share"),
            ([self.old, self.new, "--min", "step_tim_s"], "did you mean 'step_time_s'?"),
            ([self.old, self.new, "-o", self.home / "x.pdf"], "which kind of file to write"),
            ([self.old, self.new, "--by", "colour"], "--by"),
        ]
        for command, message in cases:
            done = self.compare(*command, code=2)
            self.assertIn(message, done.stderr, command)
            self.assertEqual(done.stdout, "", command)
        self.assertEqual(contents(self.home), before)
        for folder in (damaged, newer, empty):
            shutil.rmtree(folder)

    def test_accept_makes_the_new_run_the_baseline(self):
        baseline = self.home / "kept" / "baseline"
        baseline.parent.mkdir()
        self.compare(baseline, self.old, "--accept", code=0)  # the first one
        self.compare(baseline, self.old, code=0)
        self.compare(baseline, self.new, code=1)
        self.compare(baseline, self.new, "--accept", code=0)
        self.compare(baseline, self.new, code=0)
        self.assertEqual(llmsweep("verify", baseline).returncode, 0)
        self.assertEqual(os.listdir(baseline.parent), ["baseline"])
        # What is no whole run does not become one, and what is no baseline is not replaced.
        half = self.home / "half"
        (self.home / "half.yaml").write_text(SPEC.format(device="h100-sxm", batches="{linear: [1, 1000], count: 1000}"))
        llmsweep("run", self.home / "half.yaml", "-o", half, "--shard", "1/2")
        kept = contents(baseline)
        self.assertIn("not finished", self.compare(baseline, half, "--accept", code=2).stderr)
        self.assertEqual(contents(baseline), kept)
        # A run that is not finished may be somebody's work of this moment: it is not thrown away.
        unfinished = contents(half)
        self.assertIn("would be lost", self.compare(half, self.new, "--accept", code=2).stderr)
        self.assertEqual(contents(half), unfinished)
        other = self.home / "other"
        other.mkdir()
        (other / "thesis.txt").write_text("precious")
        self.compare(other, self.new, "--accept", code=2)
        self.assertEqual((other / "thesis.txt").read_text(), "precious")

    def test_a_baseline_that_somebody_writes_is_left_alone(self):
        baseline = self.home / "held" / "baseline"
        baseline.parent.mkdir()
        self.compare(baseline, self.old, "--accept", code=0)
        self.assertEqual(llmsweep("run", self.home / "old.yaml", "-o", baseline).returncode, 0)  # its locks are there now
        kept = points_of(baseline)
        locks = [file for file in baseline.glob(".manifest-*") if file.suffix == ".lock"]
        self.assertTrue(locks)
        with open(locks[0]) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another process is writing", self.compare(baseline, self.new, "--accept", code=2).stderr)
        pd.testing.assert_frame_equal(points_of(baseline), kept)
        self.compare(baseline, self.new, "--accept", code=0)
        self.assertEqual(os.listdir(baseline.parent), ["baseline"])

    def test_of_several_that_accept_at_once_the_last_one_stays(self):
        baseline = self.home / "several" / "baseline"
        baseline.parent.mkdir()
        self.compare(baseline, self.old, "--accept", code=0)
        runs = [self.old, self.new] * 4
        asked = [subprocess.Popen([BINARY, "compare", baseline, run, "--accept"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for run in runs]
        # Whoever reads meanwhile sees one of them, never a manifest of one with the files of another.
        asked += [subprocess.Popen([BINARY, "top", baseline, "--by", "step_time_s"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in runs]
        for process in asked:
            _, error = process.communicate()
            self.assertEqual(process.returncode, 0, error)
        self.assertEqual(os.listdir(baseline.parent), ["baseline"])
        self.assertEqual(llmsweep("verify", baseline).returncode, 0)
        self.assertIn(list(points_of(baseline).key), [list(points_of(run).key) for run in (self.old, self.new)])


if __name__ == "__main__":
    unittest.main()
