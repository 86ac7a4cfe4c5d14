"""Where the program is, and what is made of its mistakes."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Any

FAILURE, MISTAKE, STOPPED = 1, 2, 3
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
