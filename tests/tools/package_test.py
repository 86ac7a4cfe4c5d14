"""The packages of `cpack` on a machine with nothing but a C library: a Debian tree as debootstrap makes it, no compiler, no root.

Skipped, with the reason, where there is no such tree; `tools/test --with package` makes one.
"""

import glob
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["LLMSWEEP_BINARY"])
TREE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"]) / ".deps" / "debian"
NOBODY = "65534"


def called(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not TREE.exists():
            raise unittest.SkipTest("there is no Debian tree: tools/test --with package makes one")
        if os.geteuid() != 0 or not shutil.which("unshare"):
            raise unittest.SkipTest("only root may enter the Debian tree")
        if called("unshare", "--mount", "--pid", "--fork", "--root", TREE, "--mount-proc", "/bin/true").returncode != 0:
            raise unittest.SkipTest("this machine does not let a process enter the Debian tree")
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-package-", dir=TREE / "tmp")
        cls.addClassCleanup(scratch.cleanup)
        cls.home = pathlib.Path(scratch.name)
        cls.home.chmod(0o777)
        made = called("cpack", "--config", BINARY.parent / "CPackConfig.cmake", "-B", cls.home / "made")
        assert made.returncode == 0, made.stdout + made.stderr
        cls.tarball, = glob.glob(f"{cls.home}/made/*.tar.gz")
        cls.deb, = glob.glob(f"{cls.home}/made/*.deb")

    def inside(self, *command, user=NOBODY):
        """Runs in the tree, as a user without rights, in the folder of this test."""
        words = [f"/{pathlib.Path(word).relative_to(TREE)}" if str(word).startswith(str(TREE)) else str(word) for word in command]
        enter = ["unshare", "--mount", "--pid", "--fork", f"--root={TREE}", "--mount-proc", f"--setgid={user}", f"--setuid={user}", f"--wd=/tmp/{self.home.name}"]
        return called(*enter, *words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"})

    def sweep_with(self, program, out):
        first = program.parents[1] / "share/llmsweep/specs/sweeps/first_sweep.yaml"
        done = self.inside(program, "run", first, "-o", self.home / out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(list((self.home / out / "points").glob("*.parquet")))

    def test_the_tarball_runs_wherever_it_is_unpacked(self):
        for name in ("here", "moved there"):
            place = self.home / name
            place.mkdir()
            self.assertEqual(called("tar", "-xzf", self.tarball, "-C", place, "--strip-components=1").returncode, 0)
            self.sweep_with(place / "bin/llmsweep", f"rows of {name}")
        self.assertFalse((TREE / "usr/bin/cc").exists(), "the tree has a compiler: the test shows nothing")
        for words in (["finish", self.home / "rows of here"], ["report", self.home / "rows of here", "-o", self.home / "page.html"]):
            done = self.inside(self.home / "here/bin/llmsweep", *words)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_only_the_c_library_is_the_machines_own(self):
        place = self.home / "libraries"
        place.mkdir()
        called("tar", "-xzf", self.tarball, "-C", place, "--strip-components=1")
        listed = self.inside("ldd", place / "bin/llmsweep").stdout.splitlines()
        outside = [line.split()[0] for line in listed if "=>" in line and "lib/llmsweep" not in line]
        self.assertLessEqual({name.split(".")[0] for name in outside}, {"libc", "libm", "libdl", "librt", "libpthread"}, listed)

    def test_the_deb_installs_with_what_is_there(self):
        self.addCleanup(self.inside, "dpkg", "--purge", "llmsweep", user="0")
        installed = self.inside("dpkg", "--install", self.deb, user="0")
        self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
        self.sweep_with(TREE / "usr/bin/llmsweep", "rows of the deb")


if __name__ == "__main__":
    unittest.main()
