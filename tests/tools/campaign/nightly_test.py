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

    def command(self, *options):
        return [CAMPAIGN / "nightly", self.spec, self.home / "kept", *options]

    def night(self, *options, code, said="", **environment):
        done = subprocess.run(
            self.command(*options), capture_output=True, text=True, env={**os.environ, "LLMSWEEP": BINARY, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(said, done.stderr)
        return done.stdout

    def stand_in(self, verb, instead):
        """A program that does this shell command for one verb, and is llmsweep for all others."""
        program = self.home / f"llmsweep-{verb}"
        program.write_text(f'#!/bin/sh\nif [ "$1" = {verb} ]; then {instead}; else exec {BINARY} "$@"; fi\n')
        program.chmod(0o755)
        return str(program)

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
        self.night(code=0, LLMSWEEP=self.stand_in("--version", "echo another"))
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
        answer = self.home / "answer.txt"
        answer.write_text("median error 3%\n")
        say = {"LLMSWEEP": self.stand_in("validate", f"cat {answer}"), "LLMSWEEP_VALIDATE": "serving"}
        self.night(code=0)
        self.night(code=0, **say)  # the first night that is asked for errors says what they are
        self.night(code=0, **say)
        answer.write_text("median error 9%\n")
        self.assertIn("+median error 9%", self.night(code=1, **say))
        self.night(code=0)  # nobody asks for them
        answer.unlink()
        self.night(code=2, **say)
        self.night("--accept", code=0)  # half an answer is nobody's baseline
        self.assertEqual((self.home / "kept" / "validate_baseline.txt").read_text(), "median error 3%\n")

    def test_a_night_that_still_runs_is_left_alone(self):
        self.night(code=0)
        going, end = self.home / "going", self.home / "end"
        slow = self.stand_in("run", f'touch {going}; until [ -e {end} ]; do sleep 0.01; done; exec {BINARY} "$@"')
        first = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, env={**os.environ, "LLMSWEEP": slow})
        while not going.exists():
            self.assertIsNone(first.poll())
        for option in [], ["--accept"]:
            self.night(*option, code=2, said="a night is still running here")
        end.touch()
        self.assertEqual(first.wait(), 0)
        self.night(code=0)

    def test_a_night_that_somebody_stops_is_kept_and_not_begun_again(self):
        self.night(code=0)
        log, runs = self.home / "kept" / "run.log", self.home / "runs"
        for status in 3, 130, 137:
            runs.write_text("")
            stopped = self.stand_in("run", f'echo run >> {runs}; {BINARY} "$@"; exit {status}')
            self.night(code=2, LLMSWEEP=stopped)
            self.assertEqual(runs.read_text(), "run\n")
            self.night(code=0)
            self.assertIn("already done", log.read_text())

    def test_a_broken_spec_is_no_drift_and_leaves_no_report_of_yesterday(self):
        report = self.home / "kept" / "report.md"
        self.night(code=0)
        self.assertFalse(report.exists())  # the baseline has nothing to be compared with
        self.night(code=0)
        self.assertIn("same", report.read_text())
        whole = self.spec.read_text()
        self.spec.write_text("base: {modell: x}\n")
        self.night(code=2)
        self.assertTrue(report.read_text().startswith(f"## No comparison tonight\n\nThe sweep {self.spec} ended with exit code 2; the end of run.log:\n"))
        self.assertIn("error: unknown key 'modell'", report.read_text())
        self.spec.write_text(whole)
        self.night(code=0)
        self.assertIn("same", report.read_text())

    def test_whatever_breaks_a_night_there_is_no_report_of_yesterday(self):
        report = self.home / "kept" / "report.md"
        self.night(code=0)
        for verb, more in (("run", {}), ("finish", {}), ("compare", {}), ("validate", {"LLMSWEEP_VALIDATE": "serving"})):
            self.night(code=0)
            self.night(code=2, LLMSWEEP=self.stand_in(verb, "echo broken >&2; exit 9"), **more)
            self.assertIn("No comparison tonight", report.read_text(), verb)
            self.assertIn("broken", report.read_text(), verb)


if __name__ == "__main__":
    unittest.main()
