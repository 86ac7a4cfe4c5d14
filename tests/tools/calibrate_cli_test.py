"""The verbs kernels, validate and calibrate as a user meets them: files in, files out, and every kind of bad table."""

import csv
import gzip
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
SWEEP = SOURCE / "specs" / "calibration" / "h200-sxm" / "kernels.csv.gz"
HEADER = "family,impl,dtype,m,n,k,seconds\n"


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


def products(count, scale=1.0):
    """Rows of a plausible H100: a floor, and 600 TFLOP/s or 3 TB/s."""
    rows = []
    for i in range(count):
        m, n, k = 2 ** (i % 12), 1024 * (1 + i // 12 % 8), 1024 * (1 + i // 96)
        seconds = 3e-6 + max(2 * m * n * k / 6e14, 2 * n * k / 3e12)
        rows.append(f"gemm,toy:mm,bf16,{m},{n},{k},{seconds * scale:.6g}\n")
    return HEADER + "".join(rows)


class CalibrateCommands(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-calibrate-")
        self.home = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def table(self, text, name="table.csv"):
        file = self.home / name
        file.write_text(text)
        return file

    def refused(self, text, *words, verb=("validate", "kernels")):
        ran = llmsweep(*verb, self.table(text), "--device", "h100-sxm", *(("-o", self.home / "out") if verb == ("calibrate",) else ()))
        self.assertEqual(ran.returncode, 2, ran.stdout)
        for word in words:
            self.assertIn(word, ran.stderr)

    def test_kernels_adds_its_columns_to_every_format(self):
        table = self.table(products(30))
        packed = self.home / "table.csv.gz"
        packed.write_bytes(gzip.compress(table.read_bytes()))
        self.assertEqual(llmsweep("kernels", table, "--device", "h100-sxm", "-o", self.home / "a.parquet").returncode, 0)
        answers = []
        for source in (table, packed, self.home / "a.parquet"):
            out = self.home / "out.csv"
            ran = llmsweep("kernels", source, "--device", "h100-sxm", "-o", out)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            with open(out) as text:
                answers.append(list(csv.DictReader(text)))
        self.assertEqual(answers[0], answers[1])
        self.assertEqual([row["predicted_s"] for row in answers[0]], [row["predicted_s"] for row in answers[2]])
        row = answers[0][0]
        self.assertEqual(row["impl"], "toy:mm")
        self.assertLess(float(row["lo_s"]), float(row["hi_s"]))
        self.assertIn(row["extrapolated"], ("true", "false"))

    def test_unknown_families_are_counted_and_left_empty(self):
        table = self.table(HEADER + "gemm,a,bf16,1,1024,1024,1e-5\nsoftmax,a,bf16,1,1,1,1e-6\n")
        ran = llmsweep("kernels", table, "--device", "h100-sxm", "-o", self.home / "out.csv")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("1 of 2 rows predicted", ran.stdout)
        self.assertIn("table.csv:3:1: family 'softmax' has no model here: 1 rows left out", ran.stderr)

    def test_bad_tables_are_refused_with_their_place(self):
        row = HEADER + "gemm,a,bf16,{},2048,1024,{}\n"
        too_slow = "half of the gemm rows take more than"
        cases = [
            ("family,m,n,seconds\ngemm,1,2,1e-6\n", "table.csv:2:1: error: family gemm needs 'k'\n"),
            ("m,n,k,seconds\n1,2,3,1e-6\n", "table.csv:1:1: error: the table has no column 'family'\n"),
            ("family,m,n,k\ngemm,1,2,3\n", "table.csv:1:1: error: the table has no column 'seconds'\n"),
            (row.format(1, -1), "table.csv:2:25: error: seconds: '-1' is no time\n"),
            (row.format(1, 0), "table.csv:2:25: error: seconds: '0' is no time\n"),
            (row.format(1, "nan"), "table.csv:2:25: error: seconds: 'nan' is no time\n"),
            (row.format(1, "fast"), "table.csv:2:25: error: seconds: 'fast' is no time\n"),
            (row.format(0, 1e-5), "table.csv:2:13: error: m: '0' is no size\n"),
            (row.format("", 1e-5), "table.csv:2:13: error: family gemm needs 'm'\n  hint: the cell is empty\n"),
            (HEADER + "gemm,a,bf16\n", "error: the row has 3 of 7 cells\n"),
            (products(40, 1e3), too_slow, "hint: are they milliseconds? the column is in seconds\n"),
            (products(40, 1e6), too_slow, "hint: are they microseconds? the column is in seconds\n"),
            (products(40, 1e-4), "half of the gemm rows take less than", "hint: is this the right device, and are the times of one call?\n"),
            ("", "table.csv:1:1: error: the table is empty\n"),
            (HEADER, "table.csv:1:1: error: the table has no rows\n"),
        ]
        for text, *words in cases:
            for verb in (("validate", "kernels"), ("calibrate",)):
                with self.subTest(table=text[:80], verb=verb):
                    self.refused(text, *words, verb=verb)
                    self.assertFalse((self.home / "out").exists())
        self.refused(row.format(64, 1e-5), "no family has the 12 calls that a fit and its check need", verb=("calibrate",))

    def test_a_file_without_a_folder_is_written_here(self):
        table = self.table(products(30))
        ran = subprocess.run([BINARY, "kernels", table, "--device", "h100-sxm", "-o", "out.csv"], cwd=self.home, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue((self.home / "out.csv").exists())

    def test_an_engine_is_predicted_by_its_own_parameters(self):
        row = "gemm,{},fp8,64,4096,4096,1e-5\n"
        table = self.table(HEADER + row.format("trtllm_1.3.0rc20:torch_flow") + row.format("sglang_0.5.14:sgl_kernel") + row.format("torch2.11:scaled_mm"))
        out = self.home / "out.csv"
        ran = llmsweep("kernels", table, "--device", "h100-sxm", "--tier", "transfer", "-o", out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(out) as text:
            trtllm, sglang, alone = [float(row["predicted_s"]) for row in csv.DictReader(text)]
        # TensorRT-LLM's tables have a floor of 12 us, SGLang's one of 4; a library's kernel does not quantise.
        self.assertGreater(trtllm, sglang + 3e-6)
        self.assertGreater(sglang, alone)

    def test_conflicting_duplicates_are_said(self):
        table = self.table(products(30) + products(30, 1.5).removeprefix(HEADER))
        ran = llmsweep("validate", "kernels", table, "--device", "h100-sxm")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("30 calls were measured more than once", ran.stderr)
        ran = llmsweep("calibrate", table, "--device", "h100-sxm", "-o", self.home / "toy.calibration")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("table.csv:2:1: 30 calls were measured more than once with times that differ by more than 10% (up to 1.5x): "
                      "their median counts", ran.stderr)
        with_medians = self.home / "out.csv"
        llmsweep("kernels", table, "--device", "h100-sxm", "--calibration", self.home / "toy.calibration", "-o", with_medians)
        with open(with_medians) as text:
            rows = list(csv.DictReader(text))
        for first, second in zip(rows[:30], rows[30:]):
            middle = (float(first["seconds"]) + float(second["seconds"])) / 2
            self.assertAlmostEqual(float(first["predicted_s"]) / middle, 1, places=5)

    def test_a_calibration_returns_what_it_was_made_of_and_is_refused_when_edited(self):
        table, file = self.table(products(60)), self.home / "toy.calibration"
        ran = llmsweep("calibrate", table, "--device", "h100-sxm", "-o", file)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("unseen shapes", ran.stdout)
        out = self.home / "out.csv"
        llmsweep("kernels", table, "--device", "h100-sxm", "--calibration", file, "-o", out)
        with open(out) as text:
            for row in csv.DictReader(text):
                self.assertAlmostEqual(float(row["predicted_s"]) / float(row["seconds"]), 1, places=5)
                self.assertEqual(row["tier"], "measured")
        file.write_text(file.read_text().replace("floor: ", "floor: 1"))
        ran = llmsweep("kernels", table, "--device", "h100-sxm", "--calibration", file, "-o", out)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("checksum", ran.stderr)

    def test_unknown_device_gets_a_suggestion(self):
        ran = llmsweep("kernels", self.table(products(1)), "--device", "h100-smx", "-o", self.home / "out.csv")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("h100-sxm", ran.stderr)

    def test_our_own_sweep_is_predicted_exactly_in_the_measured_tier(self):
        out = self.home / "out.csv"
        ran = llmsweep("kernels", SWEEP, "--device", "h200-sxm", "--tier", "measured", "-o", out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(out) as text:
            rows = [row for row in csv.DictReader(text) if row["impl"] == "torch2.11:cublas"]
        exact = sum(abs(float(row["predicted_s"]) / float(row["seconds"]) - 1) < 1e-5 for row in rows)
        self.assertEqual(exact, len(rows))

    def test_a_calibration_of_a_million_rows(self):
        file = self.home / "big.csv"
        with open(file, "w") as big:
            big.write(HEADER)
            body = products(1000).removeprefix(HEADER)
            for _ in range(1000):
                big.write(body)
        begin = time.monotonic()
        ran = llmsweep("calibrate", file, "--device", "h100-sxm", "-o", self.home / "toy.calibration")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("gemm/bf16                 1000 before", ran.stdout)
        self.assertLess(time.monotonic() - begin, 240)  # seconds; 15 on an idle machine

    def test_a_million_rows(self):
        with open(self.home / "big.csv", "w") as big:
            big.write(HEADER)
            body = products(1000).removeprefix(HEADER)
            for _ in range(1000):
                big.write(body)
        begin = time.monotonic()
        ran = llmsweep("kernels", self.home / "big.csv", "--device", "h100-sxm", "-o", self.home / "out.parquet")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("1,000,000 of 1,000,000 rows predicted", ran.stdout)
        self.assertLess(time.monotonic() - begin, 120)  # seconds on an idle machine


if __name__ == "__main__":
    unittest.main()
