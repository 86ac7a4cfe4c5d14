"""The power goes at any change of a file, and any change may fail: nothing is lost that was said to be done, nothing is doubled.

LLMSWEEP_FAULTS=1000 and LLMSWEEP_POWER_CUTS=1000 do the whole matrix; by default it is 16 of each, evenly spread. What changes is
taken from the programs themselves by file_shim.cc; a power cut is replayed (disk.py) and needs no disk of its own.
"""

import errno
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import same_rows_test as same
from disk import Disk, changes, restore

FAULTS = int(os.environ.get("LLMSWEEP_FAULTS", "16"))
POWER_CUTS = int(os.environ.get("LLMSWEEP_POWER_CUTS", "16"))
SHIM = pathlib.Path(same.BINARY).with_name("llmsweep_file_shim.so")
SPEC = """
base: {task: serve, device: h100-sxm, model: llama-3.1-8b, load: {requests: 50}, output: {requests: true}}
axes:
  - load.rate: [1 req/s, 2 req/s, 4 req/s, 8 req/s]
  - parallel.tp: [1, 2, 3]
replicates: 2
"""
# Three folders that are not there, two jobs that share the work, the last one's parts joined, means over replicates.
WORKERS = [["run", "SPEC", "-o", "RUN", "--worker", "1/2", "-j", "1"], ["run", "SPEC", "-o", "RUN", "--worker", "2/2", "-j", "1"]]
SHARDS = [["run", "SPEC", "-o", "RUN", "--shard", "1/2", "-j", "1"], ["run", "SPEC", "-o", "RUN", "--shard", "2/2", "-j", "1"]]
LAST = [["finish", "RUN"], ["summarise", "RUN"]]
RUN = "new/of/night/run"


def spread(most, among):
    """So many of the numbers from 1, evenly."""
    if most >= among:
        return range(1, among + 1)
    return sorted({1 + round(i * (among - 1) / max(1, most - 1)) for i in range(most)})


@unittest.skipUnless(SHIM.exists(), "a build with sanitizers has no shim: their libraries have to come first")
class PowerCut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-power-cut-")
        cls.addClassCleanup(scratch.cleanup)
        cls.home = pathlib.Path(scratch.name).resolve()
        cls.spec = cls.home / "sweep.yaml"
        cls.spec.write_text(SPEC)
        cls.place = cls.home / "place"
        for words in SHARDS + LAST:
            cls.called(words)
        cls.expected = same.tables(cls.place / RUN)
        cls.summary = (cls.place / RUN / "summary.parquet").read_bytes()

    @classmethod
    def called(cls, words, good=(0,), **shim):
        names = {"SPEC": str(cls.spec), "RUN": str(cls.place / RUN)}
        shim = {f"LLMSWEEP_SHIM{name}": str(value) for name, value in shim.items()}
        if shim:
            shim |= {"LD_PRELOAD": str(SHIM), "LLMSWEEP_SHIM_UNDER": str(cls.place)}
        done = subprocess.run([same.BINARY, *(names.get(word, word) for word in words)], capture_output=True, text=True, env={**os.environ, **shim})
        assert good is None or done.returncode in good, (words, done.returncode, done.stderr)
        return done

    def setUp(self):
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()

    def assert_goes_on(self, commands, what):
        """What is there is sound, and the same commands end with the same tables."""
        run = self.place / RUN
        if list(run.glob("manifest-*")) and not list(run.glob("*exchange*")) and not list(run.glob(".exchange*")):
            found = self.called(["verify", "RUN"], good=None)
            if found.returncode != 0:
                self.assertIn("its parts are being exchanged", found.stderr, what)
        for words in commands + LAST:
            self.called(words)
        tables = same.tables(run)
        self.assertEqual(list(tables), list(self.expected), what)
        for name, table in tables.items():
            self.assertTrue(table.equals(self.expected[name]), (what, name))
        self.assertEqual((run / "summary.parquet").read_bytes(), self.summary, what)
        self.assertEqual([file.name for file in run.rglob("*.tmp")], [], what)

    def test_after_a_power_cut_at_any_change(self):
        for commands in (SHARDS, WORKERS):
            self.setUp()
            log = self.home / "log"
            log.unlink(missing_ok=True)
            for words in commands + LAST:
                self.called(words, **{"": "note", "_LOG": log})
            made = changes(log.read_bytes())
            self.assertGreater(len(made), 50)
            # All that was said to be done is there when the power goes at the end, though nobody waited.
            self.cut(made, len(made), "least")
            self.assertIn("complete and sound", self.called(["finish", "RUN"]).stdout)
            self.assertEqual((self.place / RUN / "summary.parquet").read_bytes(), self.summary)
            for number, after in enumerate(spread(POWER_CUTS, len(made))):
                how = ("least", "names", "torn")
                for one in how if POWER_CUTS >= len(made) else [how[number % 3]]:
                    self.cut(made, after, one)
                    again = commands if number % 2 else commands[::-1]  # whoever is first does not know what the other has done
                    self.assert_goes_on(again, (after, one, made[after - 1].what, made[after - 1].path))

    def cut(self, made, after, how):
        disk = Disk()
        for change in made[:after]:
            disk.apply(change)
        shutil.rmtree(self.place)
        restore(disk.after_power_cut(how), self.place, self.place)

    def counts(self, commands):
        """How many changes each command makes, of a whole sequence."""
        log, counts = self.home / "count", []
        for words in commands:
            log.write_text("")
            self.called(words, **{"": "count", "_LOG": log})
            counts.append(len(log.read_text()))
        return counts

    def test_whatever_change_fails_the_same_command_goes_on(self):
        for commands in (SHARDS, WORKERS):
            self.setUp()
            counts = self.counts(commands + LAST)
            for number, at in enumerate(spread(FAULTS, sum(counts))):
                self.setUp()
                for words, count in zip(commands + LAST, counts):
                    if at < 1 or at > count:
                        at -= count
                        self.called(words)
                        continue
                    error = (errno.ENOSPC, errno.EIO, errno.EMFILE)[number % 3]
                    done = self.called(words, good=(0, 1), **{"": "fail", "_AT": at, "_ERROR": error})
                    if done.returncode == 1:
                        self.assertIn("error: cannot ", done.stderr)
                        self.assertIn(os.strerror(error), done.stderr)
                    break
                self.assert_goes_on(commands, (words, at, done.stderr))

    def test_a_summary_is_the_old_one_or_the_new_one_and_leaves_nothing_else(self):
        for words in SHARDS:
            self.called(words)
        run, windows = self.place / RUN, 0
        for before in (None, b"an old one"):
            count, = self.counts([["summarise", "RUN"]])
            for at in range(1, count + 1):
                for mode, code in (("kill", -signal.SIGKILL), ("fail", 1)):
                    (run / "summary.parquet").unlink(missing_ok=True)
                    if before is not None:
                        (run / "summary.parquet").write_bytes(before)
                    names = sorted(file.name for file in run.iterdir())
                    self.called(["summarise", "RUN"], good=(code, 0), **{"": mode, "_AT": at, "_ERROR": errno.ENOSPC})
                    left = {file.name for file in run.iterdir()} - set(names)
                    found = (run / "summary.parquet").read_bytes() if (run / "summary.parquet").exists() else None
                    self.assertIn(found, (before, self.summary), (mode, at))
                    # Where an old one is replaced, the new one has two names for a moment. Whoever writes it next takes the other away.
                    more = {name for name in left if name.endswith(".tmp")}
                    self.assertLessEqual(len(more), 1 if (mode, before) == ("kill", b"an old one") else 0, (mode, at))
                    self.assertLessEqual(left - more, {"summary.parquet"}, (mode, at))
                    if more:
                        self.called(["summarise", "RUN"])
                        self.assertEqual(list(run.glob(".summary*")), [])
                        windows += 1
        self.assertLessEqual(windows, 1)


if __name__ == "__main__":
    unittest.main()
