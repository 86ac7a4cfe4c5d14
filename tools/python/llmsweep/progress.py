"""How far something is, on one line where errors go: drawn over and over in a terminal or a notebook, line by line in a log."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TextIO

BAR = 24  # characters
NOTEBOOK = 110  # characters of a line that no notebook wraps
# As the program says it: " 62.5%  5 of 8  1 points/s  3 s left  ok 5".
FAR = re.compile(r" *(\d+(?:\.\d+)?)%  ")


def _columns(stream: TextIO | None) -> int:
    """How long a line can be that is drawn over; 0 where none can."""
    if stream is None:
        return 0
    # The kernel of a notebook puts a stream of its own in place of this one.
    if type(stream).__module__.startswith("ipykernel"):
        return NOTEBOOK
    try:
        return shutil.get_terminal_size().columns - 1 if os.isatty(stream.fileno()) else 0
    except (AttributeError, OSError, ValueError):  # a stream that is no file
        return 0


class Progress:
    """Shown where a person looks on (None), always, or never. What is said beside it is shown where it is."""

    def __init__(self, shown: bool | None):
        self._stream = sys.stderr
        self._columns = _columns(self._stream)
        self.shown = self._stream is not None and (self._columns > 0 if shown is None else shown)
        self.moves = self.shown and self._columns > 0
        self._drawn = ""

    def far(self, line: str) -> bool:
        """Shows a line if it says how far things are."""
        found = FAR.match(line)
        if found is None:
            return False
        if not self.moves:
            self.say(line.rstrip() + "\n")
            return True
        full = round(BAR * min(1.0, float(found[1]) / 100))
        text = f"[{'#' * full}{'.' * (BAR - full)}] {line.strip()}"[: self._columns]
        if text != self._drawn:
            self._write("\r" + text.ljust(len(self._drawn)))
            self._drawn = text
        return True

    def say(self, text: str) -> None:
        if self.shown and text:
            self.clear()
            self._write(text)

    def clear(self) -> None:
        if self._drawn:
            self._write("\r" + " " * len(self._drawn) + "\r")
            self._drawn = ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self.shown = self.moves = False  # whoever looked on has gone; the run goes on
