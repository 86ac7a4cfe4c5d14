"""A folder that holds another run: how is that known, and what of it may go?"""

from __future__ import annotations

import contextlib
import pathlib
import re
from typing import Callable, Iterator

from llmsweep.calls import call
from llmsweep.program import MISTAKE, LlmsweepError
from llmsweep.table import TABLES

# What the program says of a folder whose rows do not go with those that were asked for. Points that were measured are not among
# them: no call makes them again.
OTHER_SPEC, OTHER_VERSION = "the folder holds a run of another spec", "the run was made with model version"


def holds_another_run(error: LlmsweepError, folder: pathlib.Path) -> bool:
    return any(f"{folder}: error: {words}" in str(error) for words in (OTHER_SPEC, OTHER_VERSION))


@contextlib.contextmanager
def hint_at_overwrite(folder: pathlib.Path) -> Iterator[None]:
    """The program's words, with a hint in Python's."""
    try:
        yield
    except LlmsweepError as error:
        if not holds_another_run(error, folder):
            raise
        what = str(error).partition("\n  hint: ")[0]
        other = " (reuse=... takes over its finished points)" if OTHER_SPEC in what else ""
        raise LlmsweepError(f"{what}\n  hint: choose another folder{other}, or overwrite=True, which replaces that run", error.exit_code) from None


def forget_run(folder: pathlib.Path) -> None:
    """Deletes the rows of a run, and what says that they are there. All else stays: locks, and files that no run wrote."""
    if re.search(" writing$", call("status", folder).stdout, re.MULTILINE):
        raise LlmsweepError(f"{folder}: error: another process is writing the run in it\n  hint: wait for it, or choose another folder", MISTAKE)
    # Manifests last: without them nobody would know it as a run, should this be killed.
    for pattern in (*(f"{table}/part-*.parquet" for table in TABLES), "manifest-*.jsonl"):
        for file in sorted(folder.glob(pattern)):
            file.unlink()
    for table in TABLES:
        with contextlib.suppress(OSError):  # it is not there, or holds something else
            (folder / table).rmdir()


def replacing(folder: pathlib.Path, go: Callable[[], None]) -> None:
    """Goes, and where all that is wrong is that the folder holds another run, once more without it. So a spec with mistakes replaces
    nothing."""
    try:
        return go()
    except LlmsweepError as error:
        if not holds_another_run(error, folder):
            raise
    forget_run(folder)
    go()
