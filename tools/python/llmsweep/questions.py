"""Questions to runs: fronts, differences, where the time goes, a plot."""

from __future__ import annotations

import dataclasses
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Sequence

import pyarrow as pa
import pyarrow.parquet

from llmsweep.calls import call
from llmsweep.program import MISTAKE, LlmsweepError
from llmsweep.runs import Run, open_run

if TYPE_CHECKING:
    import pandas

SAME, DRIFT = 0, 1


def _answer(*words: object, good: Sequence[int] = (0,)) -> tuple[pa.Table, int]:
    with tempfile.TemporaryDirectory(prefix="llmsweep-answer-") as scratch:
        file = pathlib.Path(scratch) / "answer.parquet"
        done = call(*words, "-o", file, good=good)
        return pyarrow.parquet.read_table(file), done.returncode


def _opened(run: Run | str | pathlib.Path) -> Run:
    return run if isinstance(run, Run) else open_run(run)


def _names(what: str, names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str):  # would be one figure for each of its letters
        raise LlmsweepError(f"{what} is a list: [{names!r}]", MISTAKE)
    return names


def pareto(
    run: Run | str | pathlib.Path, minimize: Sequence[str] = (), maximize: Sequence[str] = (), where: str | None = None, group_by: str | None = None
) -> pandas.DataFrame:
    """The points that no other point beats in every figure."""
    words: list[object] = ["pareto", _opened(run).folder]
    for name in _names("minimize", minimize):
        words += ["--min", name]
    for name in _names("maximize", maximize):
        words += ["--max", name]
    if where:
        words += ["--where", where]
    if group_by:
        words += ["--group-by", group_by]
    return _answer(*words)[0].to_pandas()


@dataclasses.dataclass(frozen=True)
class Comparison:
    same: bool
    differences: pandas.DataFrame  # one row a point and column that differ
    text: str  # as 'llmsweep compare' prints it


def compare(old: Run | str | pathlib.Path, new: Run | str | pathlib.Path, tolerance: str | None = None) -> Comparison:
    """What differs between two runs, or between the runs of two folders."""
    words: list[object] = ["compare", _opened(old).folder, _opened(new).folder]
    if tolerance is not None:
        words += ["--tolerance", tolerance]
    table, code = _answer(*words, good=(SAME, DRIFT))
    text = call(*words, good=(SAME, DRIFT)).stdout
    return Comparison(code == SAME, table.to_pandas(), text)


def breakdown(run: Run | str | pathlib.Path, indices: Sequence[int] | None = None, by: str = "family") -> pandas.DataFrame:
    """Seconds of each point (a row) by family, op or phase (a column)."""
    import pyarrow.dataset as dataset

    chosen = None if indices is None else dataset.field("index").isin(list(indices))
    kernels = _opened(run).kernels.arrow(["index", by, "seconds"], filter=chosen).to_pandas()
    return kernels.pivot_table(index="index", columns=by, values="seconds", aggfunc="sum", fill_value=0.0)


@dataclasses.dataclass(frozen=True)
class Replay:
    requests: pa.Table  # one row a request
    timeline: pa.Table  # one row a moment and replica


def replay(run: Run | str | pathlib.Path, index: int, every: float | None = None) -> Replay:
    """Requests and moments of one served point of a finished run, by simulating it alone; `every` so many seconds."""
    run = _opened(run)
    with tempfile.TemporaryDirectory(prefix="llmsweep-replay-") as scratch:
        words: list[object] = ["trace", run.folder, "--point", index, "--tables", scratch, "-o", f"{scratch}/trace.json", "--steps", 0]
        call(*words, *([] if every is None else ["--every", every]))
        files = [pathlib.Path(scratch) / f"{table}.parquet" for table in ("requests", "timeline")]
        if not all(file.exists() for file in files):
            raise LlmsweepError(f"{run.folder}: point {index} does not serve a load", MISTAKE)
        return Replay(*(pyarrow.parquet.read_table(file) for file in files))


def plot(run: Run | str | pathlib.Path, x: str, y: str, color: str | None = None, ax: Any = None) -> Any:
    """Points that work, one mark each; matplotlib's axes come back, with units at them."""
    import matplotlib.pyplot as pyplot

    run = _opened(run)
    ax = ax or pyplot.subplots()[1]
    columns = ["status", x, y] + ([color] if color else [])
    points = run.points.pandas(list(dict.fromkeys(columns)))
    points = points[points.status == "ok"].dropna(subset=[x, y])
    for name, group in points.groupby(color) if color else [(None, points)]:
        ax.plot(group[x], group[y], "o", label=name, alpha=0.7)
    units = run.points.units
    for set_label, column in ((ax.set_xlabel, x), (ax.set_ylabel, y)):
        set_label(f"{column} [{units[column]}]" if column in units else column)
    if color:
        ax.legend(title=color)
    return ax
