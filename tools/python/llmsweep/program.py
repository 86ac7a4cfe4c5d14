"""Where the program is, and how it is called."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from typing import Iterable

FAILURE, MISTAKE = 1, 2


class LlmsweepError(RuntimeError):
    """What the program said, and its exit code: 1 a failure, 2 a mistake, 3 stopped, 4 no point works."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message.strip())
        self.exit_code = exit_code


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


def call(*words: object, good: Iterable[int] = (0,), show: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs the program; with `show` its progress goes to this process's terminal."""
    done = subprocess.run([program(), *map(str, words)], stdout=subprocess.PIPE, stderr=None if show else subprocess.PIPE, text=True)
    if done.returncode not in tuple(good):
        raise LlmsweepError(done.stderr or done.stdout or f"llmsweep {words[0]} failed", done.returncode)
    return done
