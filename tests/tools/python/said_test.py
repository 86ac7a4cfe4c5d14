"""What one is told by llmsweep.run: how far it is where a person looks on, and a mistake once, with the key it is at."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "tools" / "python")]

import llmsweep  # noqa: E402
from in_terminal import ENVIRONMENT, Terminal  # noqa: E402
from llmsweep.progress import Progress  # noqa: E402

STEP = {"task": "step", "model": "llama-3.1-8b", "device": "h100-sxm"}
MISTAKEN = {"base": {**STEP, "task": "stp"}}
MISTAKE = "base.task: error: task: unknown name 'stp'\n  hint: did you mean 'step'? one of: step, request, serve, train, denoise, classify"
SLOW = {"base": {"task": "serve", "model": "llama-3.1-8b", "device": "h100-sxm", "load": {"requests": 4000}},
        "axes": [{"load.rate": {"linear": ["1 req/s", "20 req/s"], "count": 150}}]}
RUN = "import llmsweep, sys\nllmsweep.run(eval(sys.argv[1]), sys.argv[2], threads=1, progress=eval(sys.argv[3]))\n"
BAR = r"\r\[#*\.*\] +\d+\.\d%  \d+ of 150 "


class InFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-said-")
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)

    def in_terminal(self, spec, progress):
        terminal = Terminal(RUN, spec, self.home / "run", progress, cwd=self.home)
        return terminal.end(), terminal.shown

    def in_log(self, spec, progress):
        done = subprocess.run([sys.executable, "-c", RUN, str(spec), str(self.home / "run"), str(progress)], cwd=self.home, capture_output=True,
                              text=True, env=ENVIRONMENT)
        return done.returncode, done.stdout + done.stderr


class Mistakes(InFolder):
    def said_of(self, spec):
        with self.assertRaises(llmsweep.LlmsweepError) as caught:
            llmsweep.run(spec, self.home / "wrong")
        return str(caught.exception)

    def test_a_mistake_is_said_once_wherever_one_looks(self):
        for way, progress in ((self.in_terminal, None), (self.in_terminal, False), (self.in_log, True)):
            code, said = way(MISTAKEN, progress)
            self.assertEqual(code, 1)
            self.assertEqual(said.count("unknown name 'stp'"), 1, said)
            self.assertIn("LlmsweepError: " + MISTAKE, said.replace("\r\n", "\n"))

    def test_places_of_a_dict_are_its_keys(self):
        self.assertEqual(self.said_of(MISTAKEN), MISTAKE)
        spec = {"base": STEP, "require": ["step.batch * nothing < 3"], "axes": [
            {"step.batch": (1, "x")}, {"zip": {"parallel.tp": [1, 2], "step.context": [1]}}, {"serving.policy": ["nope"]}, {"step.batch": [2]}]}
        self.assertEqual(
            [line for line in self.said_of(spec).splitlines() if " error: " in line or "axes[" in line],
            ["require[0]: error: unknown name 'nothing'",
             "axes[0].step.batch[1]: error: step.batch: 'x' is not a whole number",
             "axes[1].zip.step.context: error: zip: 'step.context' has 1 values, but 'parallel.tp' has 2",
             "axes[2].serving.policy[0]: error: serving.policy: unknown name 'nope'",
             "axes[3].step.batch: error: 'step.batch' is set by two axes",
             "  hint: the other one is at axes[0].step.batch; remove one of them"])
        self.assertEqual(self.said_of({"base": {**STEP, "step": {"batch": 4}, "step.batch": 5}}),
                         "base.step.batch: error: 'step.batch' is set twice\n  hint: it is already set at base.step.batch")

    def test_a_mistake_that_is_in_no_one_place_is_one_of_the_spec(self):
        self.assertIn("spec: error: the sweep names no device", self.said_of({"base": {"model": "llama-3.1-8b"}}))

    def test_places_of_files_are_lines_of_them(self):
        (self.home / "mine.yaml").write_text("base:\n  task: stp\n")
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "mine.yaml:2:9: error: task: unknown name 'stp'"):
            llmsweep.run(self.home / "mine.yaml", self.home / "wrong")
        (self.home / "device.yaml").write_text("from: h100-sxm\nclok: 1 GHz\n")
        self.assertIn(f"{self.home}/device.yaml:2:1: error: ", self.said_of({"base": {**STEP, "device": str(self.home / "device.yaml")}}))

    def test_lines_of_a_dict_are_counted_as_json_writes_them(self):
        holder = {"a": {}, "b": [], "c": [[], {"d": [1, {}]}, "two\nlines"], "e": {"f": None}}
        spec = {"base": STEP, "axes": [{"step.batch": [1]}], "x": holder, "nope": 1}
        said = self.said_of(spec)
        self.assertIn("x: error: unknown key 'x'", said)
        self.assertIn("\nnope: error: unknown key 'nope'", said)


class Shown(InFolder):
    def test_a_bar_moves_in_a_terminal_and_goes_when_the_run_is_done(self):
        code, shown = self.in_terminal(SLOW, None)
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, BAR)
        self.assertRegex(shown.rpartition("]")[2], r"\r +\r")

    def test_a_terminal_that_is_told_so_shows_none(self):
        self.assertEqual(self.in_terminal(SLOW, False), (0, ""))

    def test_a_script_without_a_terminal_says_nothing_unless_asked(self):
        self.assertEqual(self.in_log(SLOW, None), (0, ""))

    def test_a_log_that_asks_gets_plain_lines(self):
        log = io.StringIO()
        with contextlib.redirect_stderr(log):
            self.assertFalse(Progress(None).shown)
            progress = Progress(True)
            self.assertTrue(progress.far(" 62.5%  5 of 8  1 points/s  3 s left  ok 5"))
            self.assertFalse(progress.far("note: 100.0% of it"))
            progress.clear()
        self.assertEqual(log.getvalue(), " 62.5%  5 of 8  1 points/s  3 s left  ok 5\n")

    def test_a_notebook_has_a_bar(self):
        notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
        with contextlib.redirect_stderr(notebook):
            run = llmsweep.run(SLOW, self.home / "run", threads=1)
        self.assertEqual(len(run.points), 150)
        self.assertRegex(notebook.getvalue(), BAR)
        # Notes are shown beside it, on lines of their own.
        self.assertRegex(notebook.getvalue(), r" \rnote: .*\n")

    def test_a_bar_is_as_long_as_what_is_done_and_no_wider_than_the_terminal(self):
        notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
        with contextlib.redirect_stderr(notebook):
            progress = Progress(None)
            for share in ("  0.0", " 50.0", "100.0"):
                progress.far(f"{share}%  {'many words ' * 20}")
        lines = notebook.getvalue().split("\r")[1:]
        self.assertEqual([line.count("#") for line in lines], [0, 12, 24])
        self.assertEqual({len(line) for line in lines}, {110})


if __name__ == "__main__":
    unittest.main()
