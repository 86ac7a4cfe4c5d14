"""A Python that is killed or interrupted takes the program with it that it started, and what that had done is kept."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
BINARY = os.environ["LLMSWEEP_BINARY"]
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(SOURCE / "tools" / "python")]

import llmsweep  # noqa: E402
from in_terminal import ENVIRONMENT, Terminal  # noqa: E402
from processes import ended, programs_of  # noqa: E402

POINTS = 1200
SLOW = {"base": {"task": "serve", "model": "llama-3.1-8b", "device": "h100-sxm", "load": {"requests": 4000}},
        "axes": [{"load.rate": {"linear": ["1 req/s", "20 req/s"], "count": POINTS}}]}
PROGRAM = f"import llmsweep, sys\nllmsweep.run({SLOW!r}, sys.argv[1], threads=1, progress=sys.argv[2] == 'shown')\n"
# A notebook interrupts its Python alone, and a thread that is not the first is never interrupted.
IN_THREAD = """import concurrent.futures, sys
import llmsweep
with concurrent.futures.ThreadPoolExecutor() as threads:
    threads.submit(llmsweep.run, %r, sys.argv[1], threads=1, progress=True).result()
""" % SLOW


class Killed(unittest.TestCase):
    def test_the_program_ends_with_the_python_that_is_killed(self):
        for how in ("shown", "hidden"):
            with tempfile.TemporaryDirectory(prefix="llmsweep-killed-") as home:
                folder = pathlib.Path(home) / "run"
                python = subprocess.Popen([sys.executable, "-c", PROGRAM, folder, how], cwd=home, stderr=subprocess.DEVNULL,
                                          env=ENVIRONMENT)
                end = time.monotonic() + 120
                while not list(folder.glob("manifest-*")) and time.monotonic() < end:
                    self.assertIsNone(python.poll())
                    time.sleep(0.02)
                program, = programs_of(python.pid)
                python.send_signal(signal.SIGKILL)
                python.wait()
                self.assertTrue(ended(program, end))
                self.assert_sound(folder)

    def assert_sound(self, folder):
        verified = subprocess.run([BINARY, "verify", folder], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def assert_stopped_in_order(self, folder, program):
        """It has ended, its last rows are written, and the same call goes on with the others."""
        self.assertTrue(ended(program, time.monotonic() + 120))
        self.assert_sound(folder)
        done = len(llmsweep.open_run(folder).points)
        self.assertTrue(0 < done < POINTS, done)
        files = {file: file.stat().st_mtime_ns for file in (folder / "points").iterdir()}
        points = llmsweep.run(SLOW, folder, progress=False).points
        self.assertEqual(list(points["index"]), list(range(POINTS)))
        self.assertEqual({file: file.stat().st_mtime_ns for file in files}, files)

    def interrupted(self, script, interrupt):
        with tempfile.TemporaryDirectory(prefix="llmsweep-interrupted-") as home:
            folder = pathlib.Path(home) / "run"
            terminal = Terminal(script, folder, "shown", cwd=home)
            self.assertTrue(terminal.wait_for(r" ok \d"), terminal.shown)
            program, = programs_of(terminal.python.pid)
            interrupt(terminal)
            self.assertNotEqual(terminal.end(), 0)
            self.assert_stopped_in_order(folder, program)
            return terminal.shown

    def test_ctrl_c_ends_a_run_in_order(self):
        shown = self.interrupted(PROGRAM, lambda terminal: terminal.press_ctrl_c())
        self.assertRegex(shown, r"KeyboardInterrupt: stopped; what is done is kept, and the same call with the folder '.*/run' goes on")

    def test_a_notebook_that_is_interrupted_ends_a_run_in_order(self):
        shown = self.interrupted(PROGRAM, lambda terminal: terminal.python.send_signal(signal.SIGINT))
        self.assertIn("KeyboardInterrupt: stopped; what is done is kept", shown)

    def test_a_kill_ends_a_run_in_order_though_its_terminal_is_gone(self):
        self.interrupted(PROGRAM, lambda terminal: terminal.python.kill())

    def test_ctrl_c_ends_a_run_of_another_thread_in_order(self):
        self.interrupted(IN_THREAD, lambda terminal: terminal.press_ctrl_c())


if __name__ == "__main__":
    unittest.main()
