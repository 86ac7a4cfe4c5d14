"""Designs that stand in a table, as an optimiser or a data frame leaves them: `axes: - table: designs.csv`."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


DESIGNS = pd.DataFrame({
    "device": ["h100-sxm", "a100-80gb-sxm", "h100-sxm"],
    "device.memory_bandwidth": [2e12, 3.3517e12, 4e12],
    "parallel.tp": [1, 2, 4],
    "quant.weights": ["bf16", "bf16", "fp8"],
})
BASE = "base: {task: step, device: h100-sxm, model: llama-3.1-8b, step: {batch: 8}}\n"


class DesignTable(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-designs-")
        self.home = pathlib.Path(self.scratch.name)
        DESIGNS.to_csv(self.home / "designs.csv")
        DESIGNS.to_parquet(self.home / "designs.parquet")

    def tearDown(self):
        self.scratch.cleanup()

    def rows(self, name, axes):
        spec, run = self.home / f"{name}.yaml", self.home / name
        spec.write_text(BASE + "axes:\n" + axes)
        done = llmsweep("run", spec, "-o", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pd.read_parquet(run / "points").sort_values("index")

    def refused(self, text, axes="  - table: designs.csv\n"):
        (self.home / "designs.csv").write_text(text)
        spec = self.home / "sweep.yaml"
        spec.write_text(BASE + "axes:\n" + axes)
        done = llmsweep("check", spec)
        self.assertEqual(done.returncode, 2)
        return done.stderr.replace(str(self.home) + "/", "")

    def test_csv_parquet_and_a_zip_say_the_same(self):
        zipped = self.rows("zip", """
  - zip:
      device: [h100-sxm, a100-80gb-sxm, h100-sxm]
      device.memory_bandwidth: [2 TB/s, 3351.7 GB/s, 4 TB/s]
      parallel.tp: [1, 2, 4]
      quant.weights: [bf16, bf16, fp8]
""")
        for name in ("designs.csv", "designs.parquet"):
            with self.subTest(name):
                found = self.rows(name.replace(".", "_"), f"  - table: {name}\n")
                self.assertEqual(list(found.key), list(zipped.key))
                self.assertEqual(list(found["device.memory_bandwidth"]), [2e12, 3.3517e12, 4e12])
                self.assertEqual(list(found["axis.device"]), list(DESIGNS.device))

    def test_a_run_goes_on_without_the_table(self):
        rows = self.rows("first", "  - table: designs.csv\n")
        (self.home / "designs.csv").unlink()
        again = llmsweep("run", self.home / "first" / "run.yaml", "-o", self.home / "again")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(list(pd.read_parquet(self.home / "again" / "points").sort_values("index").key), list(rows.key))

    def test_some_columns_beside_other_axes(self):
        rows = self.rows("some", "  - table: {file: designs.csv, columns: [parallel.tp, quant.weights]}\n  - step.batch: [1, 8]\n")
        self.assertEqual(len(rows), 6)
        self.assertNotIn("axis.device", rows.columns)

    def test_a_table_in_a_sub_sweep(self):
        rows = self.rows("inner", "  - concat:\n      - {name: wide, axes: [{table: designs.csv}]}\n      - {name: one, axes: [{step.batch: [2]}]}\n")
        self.assertEqual(len(rows), 4)

    def test_mistakes_are_told_at_their_cell(self):
        self.assertEqual(self.refused("parallel.tp,step.batch\n1,8\n2,\n"),
                         "designs.csv:3:3: error: 'step.batch' is empty in this design\n  hint: a design states every column; designs "
                         "that state others are a table of their own, in another sub-sweep of a concat\n")
        self.assertIn("designs.csv:1:13: error: unknown", self.refused("parallel.tp,step.bach\n1,8\n"))
        self.assertIn("designs.csv:2:1: error: parallel.tp", self.refused("parallel.tp\nmany\n"))
        self.assertIn("sweep.yaml:3:12: error: table: there is no file 'design.csv'", self.refused("a\n", "  - table: design.csv\n"))
        self.assertIn("table: there is no column 'parallel.tpp'",
                      self.refused("parallel.tp\n1\n", "  - table: {file: designs.csv, columns: [parallel.tpp]}\n"))


if __name__ == "__main__":
    unittest.main()
