"""llmsweep summarise: what a user would work out by hand over the replicates of a run, in one file."""

import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as parquet

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  load: {requests: 200, lengths: {distribution: lognormal, prompt: 300, output: 60}}
axes:
  - load.rate: [2 req/s, 20 req/s, 60 req/s]
  - parallel.tp: [1, 3]
replicates: 5
"""
STUDENT = 2.776445  # 95%, four degrees of freedom


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Summarise(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-summarise-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.spec = cls.home / "sweep.yaml"
        cls.spec.write_text(SPEC)
        assert llmsweep("run", cls.spec, "-o", cls.home / "run").returncode == 0
        cls.said = llmsweep("summarise", cls.home / "run")
        cls.points = pd.read_parquet(cls.home / "run" / "points")
        cls.summary = pd.read_parquet(cls.home / "run" / "summary.parquet")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_says_what_it_did(self):
        self.assertEqual(self.said.returncode, 0, self.said.stderr)
        self.assertIn("30 points, 6 designs with 5 replicates each", self.said.stdout)

    def test_means_and_intervals_are_those_of_the_points(self):
        self.assertEqual(len(self.summary), 6)
        self.assertEqual(set(self.summary.replicates), {5})
        metrics = [c for c in self.summary if c + "_ci_low" in self.summary]
        for wanted in ("ttft_s", "ttft_p99_s", "tpot_p50_s", "output_tokens_per_s", "goodput_req_per_s"):
            self.assertIn(wanted, metrics)
        groups = self.points.groupby(["load.rate", "parallel.tp"])
        for _, row in self.summary.iterrows():
            group = groups.get_group((row["load.rate"], row["parallel.tp"]))
            for metric in metrics:
                values = group[metric].dropna()
                if values.empty:
                    self.assertTrue(math.isnan(row[metric]), metric)
                    continue
                half = STUDENT * values.std() / math.sqrt(5)
                scale = abs(values.mean()) * 1e-6 + 1e-12
                self.assertAlmostEqual(row[metric], values.mean(), delta=scale, msg=metric)
                self.assertAlmostEqual(row[metric + "_ci_low"], values.mean() - half, delta=scale, msg=metric)
                self.assertAlmostEqual(row[metric + "_ci_high"], values.mean() + half, delta=scale, msg=metric)
        spread = self.summary["ttft_p99_s_ci_high"] - self.summary["ttft_p99_s_ci_low"]
        self.assertTrue((spread.dropna() > 0).all())

    def test_says_what_a_design_is_and_what_its_replicates_agree_on(self):
        self.assertNotIn("replicate", self.summary)
        self.assertNotIn("axis.replicate", self.summary)
        self.assertEqual(list(self.summary["index"]), [0, 5, 10, 15, 20, 25])
        self.assertEqual(set(self.summary.key), set(self.points.key[self.points.replicate == 0]))
        infeasible = self.summary["parallel.tp"] == 3  # 32 heads over three devices
        self.assertEqual(list(self.summary.status), ["infeasible" if bad else "ok" for bad in infeasible])
        self.assertTrue(self.summary.ttft_s[infeasible].isna().all())
        self.assertTrue(self.summary.reason[infeasible].notna().all())

    def test_shards_give_the_same_file(self):
        for shard in (2, 1, 3):
            llmsweep("run", self.spec, "-o", self.home / "shards", "--shard", f"{shard}/3", "-j", 1)
        llmsweep("summarise", self.home / "shards", "-o", self.home / "other.parquet")
        self.assertEqual(
            (self.home / "other.parquet").read_bytes(), (self.home / "run" / "summary.parquet").read_bytes()
        )

    def test_every_dataframe_reads_it(self):
        file = self.home / "run" / "summary.parquet"
        self.assertEqual(pl.read_parquet(file).shape, self.summary.shape)
        rows = duckdb.sql(f"select ttft_s from '{file}' where status = 'ok' order by index").fetchall()
        self.assertEqual([row[0] for row in rows], list(self.summary.ttft_s.dropna()))
        field = parquet.read_schema(file).field("ttft_p99_s_ci_low")
        self.assertEqual(field.metadata[b"unit"], b"s")
        self.assertIn(b"95% interval", field.metadata[b"description"])

    def test_a_file_is_what_its_name_says(self):
        for name in ("summary.csv", "summary"):
            done = llmsweep("summarise", self.home / "run", "-o", self.home / name)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("the summary is a Parquet file\n  hint: name it .parquet\n", done.stderr)
            self.assertFalse((self.home / name).exists())

    def test_a_folder_that_is_no_run_is_a_mistake(self):
        result = llmsweep("summarise", self.home)
        self.assertEqual(result.returncode, 2)
        self.assertIn("not a run folder", result.stderr)


if __name__ == "__main__":
    unittest.main()
