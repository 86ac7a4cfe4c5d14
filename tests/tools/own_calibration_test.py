"""A device of one's own, from a table of its kernels to rows that say by which calibration they are."""

import csv
import gzip
import io
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
SWEEP = SOURCE / "specs" / "calibration" / "h200-sxm" / "kernels.csv.gz"
SPEC = ("base: {task: step, model: llama-3.2-1b, step: {batch: 8, context: 1024}}\n"
        "axes: [device: [my-gpu, h200-sxm, h100-sxm]]\n")


FAMILIES = ("gemm", "attn_decode", "norm", "rope", "act", "embed", "sample")


def some_rows():
    """Up to a hundred kernels of each family that a step needs."""
    with gzip.open(SWEEP, "rt") as table:
        head, *rows = table
    text = head
    for family in FAMILIES:
        own = [row for row in rows if row.startswith(family + ",") and ",bf16," in row]
        text += "".join(own[::1 + len(own) // 100])
    return text


class OwnCalibration(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-own-calibration-")
        self.home = pathlib.Path(self.scratch.name)
        (self.home / "specs" / "devices").mkdir(parents=True)
        (self.home / "specs" / "calibration").mkdir()
        (self.home / "specs" / "devices" / "my-gpu.yaml").write_text("from: h200-sxm\nname: my-gpu\nl2_capacity: 60 MiB\n")
        (self.home / "kernels.csv").write_text(some_rows())
        (self.home / "sweep.yaml").write_text(SPEC)

    def tearDown(self):
        self.scratch.cleanup()

    def llmsweep(self, *arguments):
        done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, cwd=self.home,
                              env={**os.environ, "LLMSWEEP_SPECS": str(self.home / "specs")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def calibrations_of_rows(self, run):
        answer = self.llmsweep("top", run, "--by", "step_time_s", "--show", "device,calibration,tier", "--format", "csv")
        return {row["device"]: (row["calibration"], row["tier"]) for row in csv.DictReader(io.StringIO(answer))}

    def test_a_measured_device_takes_its_own_file_and_rows_name_it(self):
        self.assertIn("calibration h200-sxm, tier transfer: my-gpu\n", self.llmsweep("check", "sweep.yaml"))
        said = self.llmsweep("calibrate", "kernels.csv", "--device", "my-gpu", "-o", "specs/calibration/my-gpu.calibration")
        self.assertIn("put it where sweeps look: specs/calibration/my-gpu.calibration beside the sweep, or calibration/my-gpu.calibration in "
                      "a folder of $LLMSWEEP_SPECS\npoints on my-gpu then take it; 'calibration: {name: my-gpu}' takes it for any device", said)
        checked = self.llmsweep("check", "sweep.yaml")
        for line in ("my-gpu, tier measured: my-gpu", "h200-sxm, tier measured: h200-sxm", "transfer, tier transfer: h100-sxm"):
            self.assertIn(f"calibration {line}\n", checked)
        self.llmsweep("run", "sweep.yaml", "-o", "run")
        self.assertEqual(self.calibrations_of_rows("run"), {"my-gpu": ("my-gpu", "measured"), "h200-sxm": ("h200-sxm", "measured"),
                                                            "h100-sxm": ("transfer", "transfer")})

    def test_of_two_files_about_one_device_the_sweep_says_which(self):
        said = self.llmsweep("calibrate", "kernels.csv", "--device", "h200-sxm", "-o", "specs/calibration/today.calibration")
        self.assertIn("state 'calibration: {name: today}' in the sweep: 'h200-sxm' was measured on such a device, too\n", said)
        (self.home / "sweep.yaml").write_text(SPEC.replace("base: {", "base: {calibration: {name: today}, "))
        self.llmsweep("run", "sweep.yaml", "-o", "run")
        # Other devices have it rescaled to their datasheets, which is no longer measured.
        self.assertEqual(self.calibrations_of_rows("run"), {"my-gpu": ("today", "transfer"), "h200-sxm": ("today", "measured"),
                                                            "h100-sxm": ("today", "transfer")})

    def test_points_without_a_calibration_name_none(self):
        (self.home / "sweep.yaml").write_text(SPEC.replace("base: {", "base: {calibration: {tier: roofline}, "))
        self.assertIn("calibration none, tier roofline: h100-sxm, h200-sxm, my-gpu\n", self.llmsweep("check", "sweep.yaml"))
        self.llmsweep("run", "sweep.yaml", "-o", "run")
        self.assertEqual(set(self.calibrations_of_rows("run").values()), {("", "roofline")})


if __name__ == "__main__":
    unittest.main()
