"""A finished run that was copied into an object store is read there, through fsspec.

Skipped, with the reason, where there is no fsspec; `tools/test --with cluster` installs it.
"""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"]) / "tools" / "python"))
import llmsweep  # noqa: E402

try:
    import fsspec
except ImportError:
    fsspec = None

SPEC = {"base": {"task": "step", "model": "llama-3.1-8b", "device": "h100-sxm"}, "axes": [{"step.batch": [1, 2, 4, 8]}]}


class ObjectStore(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if fsspec is None:
            raise unittest.SkipTest("there is no fsspec: tools/test --with cluster installs it")

    def test_a_run_in_a_store_has_the_rows_of_the_folder(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-store-") as scratch:
            here = llmsweep.run(SPEC, f"{scratch}/run", progress=False)
            fsspec.filesystem("memory").put(f"{scratch}/run", "/bucket/night", recursive=True)
            there = llmsweep.open_run("memory://bucket/night")
            for table in ("points", "kernels"):
                self.assertTrue(getattr(there, table).arrow().equals(getattr(here, table).arrow()), table)
            self.assertEqual(there.points.units["step_time_s"], "s")

    def test_what_is_no_run_is_said(self):
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "memory://bucket/nothing: not a run folder"):
            llmsweep.open_run("memory://bucket/nothing")


if __name__ == "__main__":
    unittest.main()
