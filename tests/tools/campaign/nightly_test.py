"""tools/campaign/nightly: the first night is the baseline, a quiet night exits 0, a drift exits 1 with a report, and --accept settles it."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
CAMPAIGN = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"]) / "tools" / "campaign"


class Nightly(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-nightly-")
        self.home = pathlib.Path(self.scratch.name)
        self.spec = self.home / "night.yaml"
        shutil.copy(CAMPAIGN / "nightly.yaml", self.spec)

    def tearDown(self):
        self.scratch.cleanup()

    def night(self, *options, code, **environment):
        done = subprocess.run(
            [CAMPAIGN / "nightly", self.spec, self.home / "kept", *options],
            capture_output=True, text=True, env={**os.environ, "LLMSWEEP": BINARY, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_a_drift_is_told_until_it_is_accepted(self):
        self.assertIn("the first night is the baseline", self.night(code=0))
        self.assertIn("same", self.night(code=0))
        self.spec.write_text(self.spec.read_text().replace("llama-3.1-8b", "{from: llama-3.1-8b, layers: 40}"))
        report = self.night(code=1)
        self.assertIn("step_time_s", report)
        self.assertEqual((self.home / "kept" / "report.md").read_text(), report)
        self.night(code=1)  # it stays until somebody accepts it
        self.night("--accept", code=0)
        self.night(code=0)

    def test_every_night_computes_and_one_that_was_killed_goes_on(self):
        log = self.home / "kept" / "run.log"
        for _ in range(2):
            self.night(code=0)
            self.assertNotIn("already done", log.read_text())
        (self.home / "kept" / "tonight.whole").unlink()  # as if it had been killed before the end
        self.night(code=0)
        self.assertIn("already done", log.read_text())
        # Another program answers for itself.
        (self.home / "kept" / "tonight.whole").unlink()
        other = self.home / "llmsweep"
        other.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo another; else exec {BINARY} "$@"; fi\n')
        other.chmod(0o755)
        self.night(code=0, LLMSWEEP=str(other))
        self.assertNotIn("already done", log.read_text())

    def test_without_a_program_nothing_is_touched(self):
        self.night(code=0)
        before = sorted(self.home.rglob("*"))
        self.night(code=2, LLMSWEEP="/nowhere/llmsweep")
        self.assertEqual(sorted(self.home.rglob("*")), before)

    def test_a_tolerance_is_handed_on(self):
        self.night(code=0)
        self.spec.write_text(self.spec.read_text().replace("llama-3.1-8b", "{from: llama-3.1-8b, vocabulary: 128000}"))
        self.night(code=1)
        self.night("--tolerance", "50%", code=0)

    def test_errors_beside_measurements_are_gated_too(self):
        # A program that stands in for 'validate', whose answer changes.
        stand_in = self.home / "llmsweep"
        answer = self.home / "answer.txt"
        stand_in.write_text(f'#!/bin/sh\nif [ "$1" = validate ]; then cat {answer}; else exec {BINARY} "$@"; fi\n')
        stand_in.chmod(0o755)
        answer.write_text("median error 3%\n")
        say = {"LLMSWEEP": str(stand_in), "LLMSWEEP_VALIDATE": "serving"}
        self.night(code=0, **say)
        self.night(code=0, **say)
        answer.write_text("median error 9%\n")
        self.assertIn("+median error 9%", self.night(code=1, **say))

    def test_a_broken_spec_is_no_drift(self):
        self.night(code=0)
        self.spec.write_text("base: {modell: x}\n")
        self.night(code=2)


if __name__ == "__main__":
    unittest.main()
