"""What the system refuses stops a run with exit code 1 and a message, and costs nothing that is committed.

File sizes (a full disk), open files, memory, and readers that go away; after each the same command,
without the limit, ends with the same rows.
"""

import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

import same_rows_test as same

SPEC = """
base: {task: step, device: h100-sxm, model: llama-3.1-8b}
axes:
  - step.batch: {linear: [1, 100], count: 100}
  - step.context: {linear: [1000, 11000], count: 200}
  - parallel.tp: [1, 2]
"""


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-limits-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.spec = cls.home / "sweep.yaml"
        cls.spec.write_text(SPEC)
        same.run(cls.spec, cls.home / "reference", "-j", "2")
        cls.expected = same.tables(cls.home / "reference")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def limited(self, folder, what, limit):
        return subprocess.run(
            same.command(self.spec, folder, "-j", "2"), capture_output=True, text=True,
            preexec_fn=lambda: resource.setrlimit(what, (limit, limit)),
        )

    def assert_resumes(self, folder):
        same.run(self.spec, folder)
        for name, table in same.tables(folder).items():
            self.assertTrue(table.equals(self.expected[name]), name)
        self.assertEqual(subprocess.run([same.BINARY, "verify", folder], capture_output=True).returncode, 0)

    def test_a_full_disk(self):
        # At the start, in the first file of a table, and in a later one.
        for limit in (0, 100_000, 900_000):
            with self.subTest(limit=limit):
                folder = self.home / f"full-{limit}"
                result = self.limited(folder, resource.RLIMIT_FSIZE, limit)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("File too large", result.stderr)
                self.assertIn("make room on that disk", result.stderr)
                self.assert_resumes(folder)

    def test_no_place_for_a_folder(self):
        result = subprocess.run(same.command(self.spec, "/proc/llmsweep-run"), capture_output=True, text=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("/proc/llmsweep-run", result.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_one_may_not_write(self):
        parent = self.home / "locked"
        parent.mkdir(mode=0o555)
        result = subprocess.run(same.command(self.spec, parent / "run"), capture_output=True, text=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("choose a folder you may write to", result.stderr)

    def test_a_file_instead_of_a_folder_is_a_mistake(self):
        result = subprocess.run(same.command(self.spec, self.spec), capture_output=True, text=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("is a file, not a folder", result.stderr)

    @unittest.skipIf(pathlib.Path(same.BINARY).parent.name == "asan", "its checks open files of their own")
    def test_few_open_files(self):
        refused = 0
        for limit in range(4, 8):
            with self.subTest(limit=limit):
                folder = self.home / f"files-{limit}"
                result = self.limited(folder, resource.RLIMIT_NOFILE, limit)
                if result.returncode == 2 or not folder.exists():
                    continue  # not even the spec and its library could be read
                self.assertIn(result.returncode, (0, 1), result.stderr)
                if result.returncode == 1:
                    refused += 1
                    self.assertIn("Too many open files", result.stderr)
                self.assert_resumes(folder)
        self.assertGreater(refused, 0)

    def test_little_memory(self):
        # From too little for the libraries to plenty: it works, or says that it does not.
        for megabytes in (300, 500, 800):
            with self.subTest(megabytes=megabytes):
                folder = self.home / f"memory-{megabytes}"
                result = self.limited(folder, resource.RLIMIT_AS, megabytes << 20)
                if not folder.exists():
                    continue  # the program itself did not fit
                self.assertIn(result.returncode, (0, 1), result.stderr)
                self.assert_resumes(folder)

    def test_a_reader_that_goes_away_does_not_stop_a_run(self):
        read, write = os.pipe()
        os.close(read)
        folder = self.home / "unread"
        process = subprocess.run(same.command(self.spec, folder), stdout=write, stderr=write)
        os.close(write)
        self.assertEqual(process.returncode, 0)
        self.assert_resumes(folder)

    def test_a_list_nobody_reads_ends_quietly(self):
        read, write = os.pipe()
        os.close(read)
        result = subprocess.run([same.BINARY, "list", "models"], stdout=write, stderr=subprocess.PIPE, text=True)
        os.close(write)
        self.assertIn(result.returncode, (0, 1))
        self.assertEqual(result.stderr, "")

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([same.BINARY, "list", "devices"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device", result.stderr)


if __name__ == "__main__":
    unittest.main()
