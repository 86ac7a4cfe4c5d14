"""Set-up and `llmsweep sql` start Python from any folder: nothing that lies there is run. A package that is not the pinned one ends
set-up, and a CMake that is too old is said to be."""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
PYTHON = os.environ.get("LLMSWEEP_PYTHON", sys.executable)
TAMPERED = 4
# Every module that Python could be asked for by a name, those of packages that are looked for, and what a start looks for.
PLANTED = {*sys.stdlib_module_names, "duckdb", "numpy", "pandas", "pip", "pyarrow", "setuptools", "sitecustomize", "usercustomize"}
CHARTS = "panel/dist/bundled/echarts/echarts@6.0.0/dist/echarts.min.js"


def called(*command, cwd, **environment):
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment})


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def pin(name, file):
    return f"{name}==99.0 \\\n    --hash=sha256:{sha256(file)}\n"


def wheel(folder, name, version, tag, files):
    """A wheel that pip takes, with these files in it."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text)}\n"
    made = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return made


class Planted(unittest.TestCase):
    """A folder in which every Python module that anybody could import has a namesake that leaves a trace when it is run."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-set-up-")
        cls.addClassCleanup(scratch.cleanup)
        cls.home = pathlib.Path(scratch.name)
        cls.folder = cls.home / "planted"
        cls.folder.mkdir()
        cls.trace = cls.home / "TRACE"
        for name in PLANTED:
            (cls.folder / f"{name}.py").write_text(f"import posix\nposix.write(posix.open({str(cls.trace)!r}, 0o2101, 0o600), b'{name}\\n')\n")

    def setUp(self):
        self.trace.unlink(missing_ok=True)

    def nothing_ran(self):
        self.assertFalse(self.trace.exists(), self.trace.exists() and self.trace.read_text())

    def test_what_is_planted_would_tell(self):
        called(PYTHON, "-c", "import zipfile", cwd=self.folder)
        self.assertTrue(self.trace.exists())


# What PYTHONPATH=$PYTHONPATH:/somewhere leaves has an empty place in it, which Python takes for the working directory.
PATHS = ({}, {"PYTHONPATH": ":/nowhere"}, {"PYTHONPATH": "."})


class Sql(Planted):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        spec = cls.home / "one.yaml"
        spec.write_text("base: {task: step, model: llama-3.1-8b, device: l4}\n")
        done = called(BINARY, "run", spec, "-o", cls.home / "run", cwd=cls.home)
        assert done.returncode == 0, done.stderr

    def test_a_query_runs_nothing_of_the_working_directory(self):
        for path in PATHS:
            asked = called(BINARY, "sql", self.home / "run", "select device from points", cwd=self.folder, LLMSWEEP_PYTHON=PYTHON, **path)
            self.nothing_ran()
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertIn("l4", asked.stdout)

    def test_duckdb_is_found_where_the_user_has_put_it(self):
        place = self.home / "mine"
        place.mkdir()
        (place / "duckdb.py").write_text("raise SystemExit('mine was asked')\n")
        bare = self.home / "bare"
        self.assertEqual(called("/usr/bin/env", PYTHON, "-m", "venv", "--without-pip", bare, cwd=self.home).returncode, 0)
        ask = lambda **path: called(BINARY, "sql", self.home / "run", "select 1", cwd=self.folder, LLMSWEEP_PYTHON=str(bare / "bin/python"), **path)
        self.assertIn("has no DuckDB", ask().stderr)
        self.assertEqual(ask(PYTHONPATH=f"{place}:").stderr, "mine was asked\n")
        self.nothing_ran()


class SetUp(Planted):
    """The scripts in a tree of their own, with an index of packages that is a folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tree = cls.home / "tree"
        cls.deps = cls.tree / ".deps"
        cls.index = cls.home / "index"
        cls.index.mkdir()
        cls.dev = cls.tree / "tools" / "dev"
        shutil.copytree(SOURCE / "tools" / "dev", cls.dev, ignore=shutil.ignore_patterns("cmake"))
        shutil.copy(SOURCE / "CMakeLists.txt", cls.tree)
        machine = os.uname().machine
        cls.arrow = wheel(cls.index, "pyarrow", "99.0", f"cp312-cp312-manylinux_2_28_{machine}",
                          {"pyarrow/libarrow.so.9900": "arrow", "pyarrow/libparquet.so.9900": "parquet", "pyarrow/include/arrow/api.h": ""})
        cls.panel = wheel(cls.index, "panel", "99.0", "py3-none-any", {CHARTS: "charts"})
        (cls.dev / "requirements.txt").write_text(pin("pyarrow", cls.arrow))
        (cls.dev / "charts.txt").write_text(pin("panel", cls.panel))
        (cls.dev / "python.txt").write_text(pin("panel", cls.panel))
        cls.expect_charts(hashlib.sha256(b"charts").hexdigest())
        (cls.dev / "arrow_source.sh").write_text(f"#!/bin/sh\necho built > {cls.home}/BUILT\n")
        # A pkg-config that knows no Arrow: a machine may have one of its own.
        cls.programs = cls.home / "programs"
        cls.programs.mkdir()
        cls.stand_in("pkg-config", "exit 1")
        made = cls.set_up("need_venv", PYTHONPATH=":/nowhere")
        assert made.returncode == 0 and not cls.trace.exists(), made.stderr

    def setUp(self):
        super().setUp()
        for left in (self.deps / "arrow-wheel", self.deps / "charts"):
            shutil.rmtree(left, ignore_errors=True)
        for left in (self.deps / "py/python.txt", self.home / "BUILT"):
            left.unlink(missing_ok=True)

    @classmethod
    def expect_charts(cls, digest):
        charts = cls.dev / "charts.sh"
        charts.write_text(re.sub(r"(?m)^hash=.*$", f"hash={digest}", charts.read_text()))

    @classmethod
    def stand_in(cls, name, script):
        (cls.programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (cls.programs / name).chmod(0o755)

    @classmethod
    def set_up(cls, commands, **environment):
        script = f"set -euo pipefail; source {cls.dev}/setup.sh; {commands}"
        environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(cls.index), "PIP_CONFIG_FILE": "/dev/null", **environment}
        return called("bash", "-c", script, cwd=cls.folder, PATH=f"{cls.programs}:{os.environ['PATH']}", **environment)

    def test_no_step_runs_anything_of_the_working_directory(self):
        for path in PATHS:
            self.setUp()
            done = self.set_up("need_arrow; need_charts; need_extra python", **path)
            self.nothing_ran()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.deps / "arrow-wheel/lib/libarrow.so.9900").read_text(), "arrow")
            self.assertEqual((self.deps / "charts/echarts.min.js").read_text(), "charts")
            self.assertTrue((self.deps / "py/python.txt").exists(), done.stderr)
            self.assertFalse((self.home / "BUILT").exists())

    def test_a_package_that_was_changed_ends_set_up(self):
        for file, step in ((self.arrow, "need_arrow"), (self.panel, "need_charts"), (self.panel, "need_extra python")):
            whole = file.read_bytes()
            file.write_bytes(whole + b"\0")
            done = self.set_up(f"{step}; echo went on")
            file.write_bytes(whole)
            self.assertEqual((done.returncode, done.stdout), (TAMPERED, ""), done.stderr)
            self.assertIn("llmsweep: a package is not the one that was pinned: it was cut short on its way here, or somebody changed it\n", done.stderr)
            self.assertFalse((self.home / "BUILT").exists())

    def test_what_is_in_a_package_is_looked_at_too(self):
        self.expect_charts("0" * 64)
        self.addCleanup(self.expect_charts, hashlib.sha256(b"charts").hexdigest())
        done = self.set_up("need_charts; echo went on")
        self.assertEqual((done.returncode, done.stdout), (TAMPERED, ""), done.stderr)

    def test_without_a_package_another_way_is_taken(self):
        done = self.set_up("need_arrow; need_charts; echo went on", PIP_FIND_LINKS="/nowhere")
        self.assertEqual((done.returncode, done.stdout), (0, "went on\n"), done.stderr)
        self.assertIn("building Arrow from source instead", done.stderr)
        self.assertTrue((self.home / "BUILT").exists())

    def test_an_old_cmake_is_said_to_be_old(self):
        oldest = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (SOURCE / "CMakeLists.txt").read_text())[1]
        for version in ("3.9.6", "3.22.1", "2.8"):
            self.stand_in("cmake", f"echo 'cmake version {version}'")
            done = self.set_up("build release llmsweep")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"llmsweep: CMake {version} ({self.programs}/cmake) is too old; this needs {oldest} or newer, as Debian 12 and "
                                          "Ubuntu 24.04 have it; pip has newer ones, too\n")
        self.stand_in("cmake", "exit 127")
        self.assertEqual(self.set_up("need_cmake").stderr, f"llmsweep: there is no CMake here; this needs {oldest} or newer\n")
        for version in (oldest, "3.31.0-rc2", "4.1.0"):
            self.stand_in("cmake", f"echo 'cmake version {version}'")
            self.assertEqual(self.set_up("need_cmake").returncode, 0, version)


class EveryCall(unittest.TestCase):
    def test_whoever_starts_python_says_that_it_be_isolated(self):
        """Python with an option or a script, in what is no Python itself; `import` and text for people are not calls."""
        call = re.compile(r"""(?:python3?"?|\$\{?python\}?"?|\$\{Python3_EXECUTABLE\}|\$\{LLMSWEEP_PYTHON\}|python\(\),) +("?-\S*|\S+\.py\b|\S*check_\S+)""")
        calls = []
        for file in sorted([*(SOURCE / "tools").rglob("*"), SOURCE / "CMakeLists.txt", *(SOURCE / ".ci").rglob("*")]):
            if not file.is_file() or file.suffix in (".py", ".md", ".js", ".png", ".csv", ".gz", ".calibration"):
                continue
            for line in file.read_text(errors="replace").splitlines():
                if line.lstrip().startswith(("#", "//")):
                    continue
                calls += [(f"{file.relative_to(SOURCE)}: {line.strip()}", found[1]) for found in call.finditer(line)]
        self.assertGreaterEqual(len(calls), 9, calls)
        for where, first in calls:
            if "_test.py" in where or "launch_server" in where:  # a test imports its neighbour; a server is the user's to start
                continue
            self.assertEqual(first.strip('",'), "-I", where)


if __name__ == "__main__":
    unittest.main()
