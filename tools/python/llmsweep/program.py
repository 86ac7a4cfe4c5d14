"""Where the program is, and how it is called."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, Iterable

FAILURE, MISTAKE, STOPPED = 1, 2, 3
MOST_LINES_KEPT = 200  # of what a program said that failed
NO_POINT_WORKS = 4  # done all the same: every row says why


class LlmsweepError(RuntimeError):
    """What the program said, and its exit code: 1 a failure, 2 a mistake, 3 stopped, 4 no point works."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message.strip())
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (str(self), self.exit_code)  # to other processes and back


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, for json.dumps."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot stand in a scenario")


def program() -> str:
    """LLMSWEEP_BINARY, else the one in the wheel, else that of the checkout around this file, else the one on PATH."""
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("LLMSWEEP_BINARY")
    for place in (named, here / "program/bin/llmsweep", here.parents[2] / "build/release/llmsweep"):
        if place and pathlib.Path(place).exists():
            return str(place)
    found = shutil.which("llmsweep")
    if found:
        return found
    raise LlmsweepError("there is no program 'llmsweep': build it (tools/run), or name it in LLMSWEEP_BINARY", MISTAKE)


def _shown(command: list[str]) -> subprocess.CompletedProcess[str]:
    """What the program says is shown and kept. In a terminal it draws on a line of its own, so only there it is left alone."""
    if os.isatty(2):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout, f"llmsweep {command[1]} failed; what it said stands above")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        # Results are a few lines, so they wait in the pipe until the program has ended.
        said = []
        for line in child.stderr:
            sys.stderr.write(line)
            said.append(line)
        stdout = child.stdout.read()
    return subprocess.CompletedProcess(command, child.returncode, stdout, "".join(said[-MOST_LINES_KEPT:]))


def call(*words: object, good: Iterable[int] = (0,), show: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs the program; with `show` its progress goes to where this process's errors go: a terminal, or a notebook."""
    command = [program(), *map(str, words)]
    if show:
        done = _shown(command)
    else:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in tuple(good):
        raise LlmsweepError(done.stderr or done.stdout or f"llmsweep {words[0]} failed", done.returncode)
    return done
