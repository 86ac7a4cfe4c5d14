"""What is said of rows that are `ok` and mislead: once a run is done, and wherever its rows are looked at."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tools" / "python"))

import llmsweep as package  # noqa: E402

FULL_AND_FREE = """
base: {task: serve, device: h100-sxm, model: llama-3.1-8b, load: {requests: 2000}}
axes:
  - load.rate: [1 req/s, 500 req/s]
"""
OVERLOADED = ("1 of 2 points finish less than arrives (saturation overloaded): waits depend on how long the run was, and prices are "
              "those of a machine that is always full; ")
STATE = OVERLOADED + "state a lower 'load.rate', 'load.trace_speed' or 'load.curve', or more 'serving.replicas'"


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Notes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-notes-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.spec, cls.run_folder = cls.home / "sweep.yaml", cls.home / "out"
        cls.spec.write_text(FULL_AND_FREE)
        cls.said = llmsweep("run", cls.spec, "-o", cls.run_folder)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_a_run_says_at_its_end_how_many_rows_mislead_and_what_to_state(self):
        self.assertEqual(self.said.returncode, 0)
        self.assertIn("note: " + STATE + "\n", self.said.stderr)

    def test_every_look_at_the_rows_says_the_same(self):
        self.assertIn(STATE, llmsweep("notes", self.run_folder).stdout.splitlines())
        self.assertIn("note: " + STATE + "\n", llmsweep("check", self.spec).stdout)
        page = self.home / "report.html"
        self.assertIn(STATE, llmsweep("report", self.run_folder, "-o", page).stderr)
        self.assertIn("finish less than arrives", page.read_text())
        self.assertIn(STATE, package.open_run(self.run_folder).notes)

    def test_points_that_rest_on_kernels_nobody_measured_are_counted(self):
        # Of an L40S nothing was measured, of an H200 every kernel of this step.
        spec = self.home / "measured.yaml"
        spec.write_text("base: {task: step, model: llama-3.1-8b}\naxes: [device: [h200-sxm, l40s]]\n")
        run = self.home / "measured"
        self.assertIn("note: 1 of 2 points spend more than a quarter of their time on kernels outside what was measured (extrapolated_share)",
                      llmsweep("run", spec, "-o", run).stderr)
        left = llmsweep("top", run, "--by", "step_time_s", "--show", "extrapolated_share", "--where", "not (extrapolated_share > 0.25)")
        self.assertRegex(left.stdout, r"h200-sxm .* 0(\.0\d*)?\n")

    def test_engines_on_devices_that_they_do_not_run_on_are_counted(self):
        # TensorRT-LLM is for one maker's devices, vLLM is not.
        spec = self.home / "engines.yaml"
        spec.write_text("base: {task: step, model: llama-3.1-8b}\n"
                        "axes: [device: [h200-sxm, mi300x], serving: [vllm-v1, {from: tensorrt-llm, max_num_seqs: 96}]]\n")
        run = self.home / "engines"
        self.assertIn("note: 1 of 4 points have an engine that does not run on their devices (serving.vendor)",
                      llmsweep("run", spec, "-o", run).stderr)
        shown = llmsweep("top", run, "--by", "step_time_s", "--where", "serving.vendor != '' and serving.vendor != device.vendor")
        self.assertEqual(shown.stdout.count("mi300x"), 1, shown.stdout)
        self.assertNotIn("h200-sxm", shown.stdout)

    def test_a_ranking_says_how_to_leave_such_rows_out_and_that_way_works(self):
        where = "not (saturation == 'overloaded')"
        told = llmsweep("top", self.run_folder, "--by", "ttft_s").stderr
        self.assertIn(OVERLOADED + f'--where "{where}" leaves them out', told)
        rest = llmsweep("top", self.run_folder, "--by", "ttft_s", "--where", where).stderr
        self.assertIn("1 of them asked for", rest)
        self.assertNotIn("finish less", rest)

    def test_a_run_in_two_pieces_says_in_the_end_what_one_piece_says(self):
        pieces = self.home / "pieces"
        llmsweep("run", self.spec, "-o", pieces, "--shard", "1/2")
        last = llmsweep("run", self.spec, "-o", pieces, "--shard", "2/2")
        self.assertIn("note: " + STATE + "\n", last.stderr)
        again = llmsweep("run", self.spec, "-o", self.run_folder)
        self.assertIn("note: " + STATE + "\n", again.stderr)

    def test_rows_without_trouble_say_nothing(self):
        spec, run = self.home / "plain.yaml", self.home / "plain"
        spec.write_text("base: {device: h100-sxm, model: llama-3.1-8b}\naxes:\n  - step.batch: [1, 8]\n")
        self.assertEqual(llmsweep("run", spec, "-o", run).stderr.count("note: "), 0)
        self.assertEqual(llmsweep("notes", run).stdout, "")

    def test_a_folder_that_is_no_run_is_a_mistake(self):
        self.assertEqual(llmsweep("notes", self.home / "nowhere").returncode, 2)


if __name__ == "__main__":
    unittest.main()
