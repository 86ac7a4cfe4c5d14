"""llmsweep status and finish: what the manifests say of every shard, who is dead, and whether a run is whole."""

import fcntl
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base: {task: step, model: llama-3.1-8b, device: h100-sxm}
axes:
  - step.batch: {linear: [1, 1000], count: 1000}
  - step.context: [512, 1024, 2048, 4096]
"""
POSITIONS = 4000
SLOW = """
base: {task: serve, model: llama-3.1-8b, device: h100-sxm, load: {requests: 4000}}
axes:
  - load.rate: {linear: [1 req/s, 20 req/s], count: 200}
"""


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Status(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-status-")
        self.home = pathlib.Path(self.scratch.name)
        self.spec = self.home / "sweep.yaml"
        self.spec.write_text(SPEC)
        self.run_folder = self.home / "run"

    def tearDown(self):
        self.scratch.cleanup()

    def shard(self, which):
        self.assertEqual(llmsweep("run", self.spec, "-o", self.run_folder, "--shard", which).returncode, 0)

    def rows(self, text):
        lines = text.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("shard"))
        return {line.split()[0]: line for line in lines[start + 1:] if "/" in line.split()[0]}

    def test_a_part_that_is_gone_does_not_count_in_the_pace(self):
        self.shard("1/1")
        before = self.rows(llmsweep("status", self.run_folder).stdout)["1/1"]
        os.remove(max((self.run_folder / "points").glob("*.parquet")))
        after = self.rows(llmsweep("status", self.run_folder).stdout)["1/1"]
        self.assertNotIn("e-", after)
        self.assertNotIn("e+2", after + before)

    def test_a_clock_that_is_ahead_makes_no_time_before_now(self):
        self.shard("1/1")
        for file in self.run_folder.rglob("*"):
            os.utime(file, (time.time() + 3600, time.time() + 3600))
        self.assertIn(" 0 us ago", self.rows(llmsweep("status", self.run_folder).stdout)["1/1"])

    def test_shards_that_nobody_works_on_are_named_with_the_command_that_goes_on(self):
        self.shard("1/3")
        status = llmsweep("status", self.run_folder)
        self.assertEqual(status.returncode, 0, status.stderr)
        rows = self.rows(status.stdout)
        self.assertEqual(set(rows), {"1/3", "2/3", "3/3"})
        self.assertIn("done", rows["1/3"])
        self.assertIn("not started", rows["2/3"])
        commands = [line.removeprefix("go on with: llmsweep ") for line in status.stdout.splitlines() if line.startswith("go on with")]
        self.assertEqual(len(commands), 2)
        for command in commands:
            self.assertEqual(subprocess.run(f"{BINARY} {command}", shell=True, capture_output=True).returncode, 0)
        done = llmsweep("status", self.run_folder).stdout
        self.assertIn(f"{POSITIONS:,} of {POSITIONS:,} positions done (100.0%)", done)
        self.assertNotIn("go on with", done)

    def test_a_split_into_very_many_is_told_in_few_lines(self):
        self.shard("3/1000000")
        self.shard("7/1000000")
        said = llmsweep("status", self.run_folder).stdout
        self.assertEqual(set(self.rows(said)), {"3/1000000", "7/1000000"})
        self.assertIn("and 999,998 that have written nothing", said)
        self.assertIn("and 3,934 more such; or all of it in one: llmsweep run", said)
        self.assertLess(len(said.splitlines()), 100)
        # What is said finishes the run.
        self.assertEqual(llmsweep("run", self.run_folder / "run.yaml", "-o", self.run_folder).returncode, 0)
        self.assertEqual(len(pd.read_parquet(self.run_folder / "points")), POSITIONS)

    def test_a_split_into_more_than_anybody_has_is_a_mistake(self):
        for option in ("--shard", "--worker"):
            done = llmsweep("run", self.spec, "-o", self.run_folder, option, "1/1000001")
            self.assertEqual(done.returncode, 2)
            self.assertIn("N is at most 1,000,000", done.stderr)
        self.assertFalse(self.run_folder.exists())

    def test_a_writer_that_lives_is_seen_and_not_disturbed(self):
        self.shard("1/2")
        # A second writer, as its lock shows it.
        with open(self.run_folder / ".manifest-2of2.jsonl.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            status = llmsweep("status", self.run_folder).stdout
            self.assertIn("writing", self.rows(status)["2/2"])
            self.assertNotIn("go on with", status)
        self.assertIn("not started", self.rows(llmsweep("status", self.run_folder).stdout)["2/2"])

    def test_a_worker_that_was_killed_is_named_and_goes_on_with_its_pieces(self):
        self.spec.write_text(SLOW)
        worker = subprocess.Popen([BINARY, "run", self.spec, "-o", self.run_folder, "--threads", "1", "--worker", "2/3"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        claims = self.run_folder / ".claims-3"
        while worker.poll() is None and not (claims.exists() and "2" in claims.read_text().split()):
            time.sleep(0.005)
        worker.kill()
        worker.wait()
        status = llmsweep("status", self.run_folder).stdout
        self.assertIn("waiting for a worker: ", status)
        self.assertIn("not started", self.rows(status)["1/3"])
        command = f"run {self.run_folder}/run.yaml -o {self.run_folder} --worker 2/3"
        self.assertIn(f"go on with: llmsweep {command}\n", status)
        # Another worker does what nobody has taken; the dead one's piece waits for it.
        self.assertEqual(llmsweep("run", self.spec, "-o", self.run_folder, "--worker", "1/3").returncode, 0)
        self.assertEqual(llmsweep("finish", self.run_folder).returncode, 1)
        self.assertEqual(subprocess.run(f"{BINARY} {command}", shell=True, capture_output=True).returncode, 0)
        finished = llmsweep("finish", self.run_folder)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("complete and sound: 200 positions", finished.stdout)

    def test_a_worker_that_comes_late_says_so_and_ends_well(self):
        self.assertEqual(llmsweep("run", self.spec, "-o", self.run_folder, "--worker", "1/3").returncode, 0)
        for number in (2, 1):  # one that never took a piece, one that took them all
            late = llmsweep("run", self.spec, "-o", self.run_folder, "--worker", f"{number}/3")
            self.assertEqual((late.returncode, late.stderr), (0, ""), late.stdout)
            self.assertIn("nothing was left for this worker: others have done or taken all of it\n" if number == 2 else "already done", late.stdout)

    def test_a_worker_that_comes_late_tells_of_the_whole_run_that_nothing_works(self):
        self.spec.write_text(SPEC.replace("device: h100-sxm", "device: {from: h100-sxm, memory_capacity: 1 GB}"))
        for number in (1, 2):
            done = llmsweep("run", self.spec, "-o", self.run_folder, "--worker", f"{number}/2")
            self.assertEqual(done.returncode, 4)
            self.assertIn("warning: not one of 4,000 points works (memory 4,000)", done.stderr)

    def test_the_last_worker_says_what_a_dead_one_holds(self):
        self.spec.write_text(SLOW)
        dead = subprocess.Popen([BINARY, "run", self.spec, "-o", self.run_folder, "--threads", "1", "--worker", "2/3"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        claims = self.run_folder / ".claims-3"
        while dead.poll() is None and not (claims.exists() and "2" in claims.read_text().split()):
            time.sleep(0.005)
        dead.kill()
        dead.wait()
        held = claims.read_text().split().count("2")  # 200 positions in 96 pieces: two or three each
        last = llmsweep("run", self.spec, "-o", self.run_folder, "--worker", "1/3")
        self.assertEqual(last.returncode, 0, last.stderr)
        command = f"llmsweep run {self.run_folder}/run.yaml -o {self.run_folder} --worker 2/3"
        self.assertRegex(last.stderr, rf"^note: \d+ positions? (is|are) not done: worker 2 stopped with (it|them), and no other worker takes what one has taken\n"
                                      rf"go on with: {command}\n$")
        self.assertGreaterEqual(held, 1)
        self.assertEqual(subprocess.run(command.replace("llmsweep", BINARY, 1), shell=True, capture_output=True).returncode, 0)
        self.assertEqual(llmsweep("finish", self.run_folder).returncode, 0)
        # Nothing is held any more, and nobody says so.
        self.assertNotIn("not done", llmsweep("run", self.spec, "-o", self.run_folder, "--worker", "3/3").stderr)

    def test_damage_to_what_workers_share_is_named_and_repaired(self):
        self.assertEqual(llmsweep("run", self.spec, "-o", self.run_folder, "--worker", "1/3").returncode, 0)
        claims = self.run_folder / ".claims-3"
        sound = claims.read_text()
        for damaged in (sound[:50], sound.replace("1", "9"), sound + "7 5\n", "", "x" * len(sound)):
            claims.write_text(damaged)
            found = llmsweep("verify", self.run_folder)
            self.assertEqual(found.returncode, 1, found.stdout)
            self.assertIn(".claims-3 is damaged: it does not say which worker does what", found.stderr)
            self.assertEqual(llmsweep("verify", self.run_folder, "--repair").returncode, 0)
            self.assertEqual(llmsweep("verify", self.run_folder).returncode, 0)
            self.assertEqual(llmsweep("run", self.spec, "-o", self.run_folder, "--worker", "1/3").returncode, 0)
        self.assertEqual(len(pd.read_parquet(self.run_folder / "points")), POSITIONS)

    def test_finish_joins_small_parts_and_keeps_the_rows(self):
        for k in range(1, 9):
            self.shard(f"{k}/8")
        before = pd.read_parquet(self.run_folder / "kernels").sort_values(["index"], kind="stable").reset_index(drop=True)
        self.assertIn("8 parts", llmsweep("finish", self.run_folder, "--keep-parts").stdout)
        self.assertEqual(len(list((self.run_folder / "points").iterdir())), 8)
        finished = llmsweep("finish", self.run_folder)
        self.assertIn("8 parts joined into 1", finished.stdout, finished.stderr)
        self.assertEqual([f.name for f in (self.run_folder / "points").iterdir()], ["part-1of1-000000.parquet"])
        self.assertEqual([f.name for f in self.run_folder.glob("manifest-*")], ["manifest-1of1.jsonl"])
        pd.testing.assert_frame_equal(pd.read_parquet(self.run_folder / "kernels"), before)
        self.assertEqual(llmsweep("verify", self.run_folder).returncode, 0)
        again = llmsweep("run", self.spec, "-o", self.run_folder)
        self.assertIn(f"{POSITIONS:,} already done", again.stdout)

    def test_status_changes_nothing(self):
        self.shard("1/2")
        listing = lambda: sorted((str(f), f.stat().st_mtime_ns) for f in self.run_folder.rglob("*"))  # noqa: E731
        before = listing()
        llmsweep("status", self.run_folder)
        llmsweep("finish", self.run_folder)
        self.assertEqual(listing(), before)

    def test_finish_says_what_is_missing_and_what_is_damaged(self):
        self.shard("2/2")
        half = llmsweep("finish", self.run_folder)
        self.assertEqual(half.returncode, 1)
        self.assertIn("positions missing: 0-", half.stdout)
        self.shard("1/2")
        whole = llmsweep("finish", self.run_folder)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertIn(f"complete and sound: {POSITIONS:,} positions", whole.stdout)
        part = next((self.run_folder / "points").glob("part-*.parquet"))
        damaged = bytearray(part.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        part.write_bytes(damaged)
        broken = llmsweep("finish", self.run_folder)
        self.assertEqual(broken.returncode, 1)
        self.assertIn(part.name, broken.stderr)

    def test_what_is_no_run_is_said(self):
        for verb in ("status", "finish"):
            done = llmsweep(verb, self.home / "nowhere")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main()
