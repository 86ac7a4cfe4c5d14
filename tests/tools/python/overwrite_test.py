"""A folder that holds a run of another spec: said so, replaced if asked for, and nothing else is ever deleted."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(SOURCE / "tools" / "python")]

import llmsweep  # noqa: E402
from processes import ended, programs_of  # noqa: E402

BASE = {"task": "step", "model": "llama-3.1-8b", "device": "h100-sxm"}
OLD, NEW = {"base": BASE, "axes": [{"step.batch": [1, 2, 3]}]}, {"base": BASE, "axes": [{"step.batch": [4, 5]}]}
SERVED = {"base": {**BASE, "task": "serve", "load": {"requests": 4000}}, "axes": [{"load.rate": {"linear": ["1 req/s", "20 req/s"], "count": 2000}}]}


def batches(folder):
    return list(llmsweep.open_run(folder).points["step.batch"])


class Overwrite(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-overwrite-")
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)
        self.folder = self.home / "run"

    def refusal(self, spec, folder, **options):
        with self.assertRaises(llmsweep.LlmsweepError) as caught:
            llmsweep.run(spec, folder, **options)
        self.assertEqual(caught.exception.exit_code, 2)
        return str(caught.exception)

    def test_without_it_the_old_run_stays_and_the_mistake_says_what_to_do(self):
        llmsweep.run(OLD, self.folder)
        said = self.refusal(NEW, self.folder)
        self.assertIn(f"{self.folder}: error: the folder holds a run of another spec (3 positions, now 2)", said)
        self.assertTrue(said.endswith("\n  hint: choose another folder (reuse=... takes over its finished points), or overwrite=True, which replaces that run"), said)
        self.assertEqual(batches(self.folder), [1, 2, 3])

    def test_with_it_the_new_run_is_all_there_is(self):
        llmsweep.run(OLD, self.folder)
        (self.folder / "diary.txt").write_text("mine")
        self.assertEqual(list(llmsweep.run(NEW, self.folder, overwrite=True).points["step.batch"]), [4, 5])
        self.assertEqual(batches(self.folder), [4, 5])
        verified = subprocess.run([llmsweep.program(), "verify", self.folder], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stderr)
        # What no run wrote is nobody's to delete.
        self.assertEqual((self.folder / "diary.txt").read_text(), "mine")

    def test_tables_that_the_new_run_has_not_go_with_the_old_one(self):
        llmsweep.run({"base": {**BASE, "task": "serve", "load": {"requests": 50}, "output": {"requests": True}}}, self.folder)
        self.assertGreater(len(llmsweep.open_run(self.folder).requests), 0)
        llmsweep.run(NEW, self.folder, overwrite=True)
        self.assertEqual(sorted(entry.name for entry in self.folder.iterdir() if entry.is_dir()), ["kernels", "points"])

    def test_a_run_of_the_same_spec_goes_on_and_is_not_done_again(self):
        llmsweep.run(OLD, self.folder)
        part, = (self.folder / "points").iterdir()
        before = part.stat().st_mtime_ns
        llmsweep.run(OLD, self.folder, overwrite=True)
        self.assertEqual(part.stat().st_mtime_ns, before)

    def test_a_spec_with_mistakes_replaces_nothing(self):
        llmsweep.run(OLD, self.folder)
        self.refusal({"base": {**BASE, "task": "stp"}}, self.folder, overwrite=True)
        self.assertEqual(batches(self.folder), [1, 2, 3])

    def test_a_folder_that_is_no_runs_stays_as_it_is(self):
        # Some are much like a run's, and a name of a file is all that one has.
        for files in (["thesis.tex"], ["thesis.tex", "points/night.parquet"], ["manifest-mine.jsonl"], ["points/part-1of1-000000.parquet"]):
            with tempfile.TemporaryDirectory(dir=self.home) as folder:
                for name in files:
                    file = pathlib.Path(folder) / name
                    file.parent.mkdir(exist_ok=True)
                    file.write_text(name)
                with self.assertRaises(llmsweep.LlmsweepError):
                    llmsweep.run(NEW, folder, overwrite=True)
                self.assertEqual({name: (pathlib.Path(folder) / name).read_text() for name in files}, {name: name for name in files})
        file = self.home / "notes.txt"
        file.write_text("mine")
        self.assertIn("is a file, not a folder", self.refusal(NEW, file, overwrite=True))

    def test_a_run_that_is_being_written_stays(self):
        script = "import llmsweep, sys\nllmsweep.run(eval(sys.argv[1]), sys.argv[2], threads=1)"
        other = subprocess.Popen([sys.executable, "-c", script, str(SERVED), self.folder], stderr=subprocess.DEVNULL,
                                 env={**os.environ, "PYTHONPATH": str(SOURCE / "tools" / "python")})
        try:
            end = time.monotonic() + 120
            while not list(self.folder.glob("manifest-*")) and time.monotonic() < end:
                self.assertIsNone(other.poll())
                time.sleep(0.02)
            # The same shard says so itself; of another one only the run as a whole knows.
            for shard in (None, "2/2"):
                self.assertIn("another process is writing", self.refusal(NEW, self.folder, overwrite=True, shard=shard))
            self.assertTrue(list(self.folder.glob("manifest-*")))
        finally:
            programs = programs_of(other.pid)
            other.kill()
            other.wait()
            # Its folder is deleted next, and must not be written into any more.
            self.assertTrue(all(ended(program, time.monotonic() + 120) for program in programs))

    def test_points_to_take_over_are_not_deleted_first(self):
        llmsweep.run(OLD, self.folder)
        self.assertIn("needs a folder of its own", self.refusal(NEW, self.folder, overwrite=True, reuse=self.folder))
        self.assertEqual(batches(self.folder), [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
