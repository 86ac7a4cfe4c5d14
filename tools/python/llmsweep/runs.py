"""Runs: made from a spec, opened from a folder, their tables in the dataframe of one's choice."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from functools import cached_property
from typing import TYPE_CHECKING, Any, Mapping

import pyarrow as pa
import pyarrow.dataset

from llmsweep.program import MISTAKE, LlmsweepError, call

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

NO_POINT_WORKS = 4  # done all the same: every row says why


class Table:
    """One table of a run. Nothing is read before it is asked for, and then only the columns named."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    @cached_property
    def dataset(self) -> pyarrow.dataset.Dataset:
        files = sorted(str(file) for file in self.folder.glob("part-*.parquet"))
        if not files:
            raise LlmsweepError(f"{self.folder}: the run has no such table", MISTAKE)
        return pyarrow.dataset.dataset(files, format="parquet")

    @property
    def columns(self) -> list[str]:
        return list(self.dataset.schema.names)

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one."""
        return self._metadata(b"unit")

    @property
    def descriptions(self) -> dict[str, str]:
        return self._metadata(b"description")

    def _metadata(self, name: bytes) -> dict[str, str]:
        fields = ((field.name, (field.metadata or {}).get(name, b"").decode()) for field in self.dataset.schema)
        return {column: text for column, text in fields if text}

    def arrow(self, columns: list[str] | None = None, filter: Any = None) -> pa.Table:
        return self.dataset.to_table(columns=columns, filter=filter)

    def pandas(self, columns: list[str] | None = None) -> pandas.DataFrame:
        return self.arrow(columns).to_pandas()

    def polars(self) -> polars.LazyFrame:
        import polars

        return polars.scan_pyarrow_dataset(self.dataset)

    def duckdb(self) -> duckdb.DuckDBPyRelation:
        import duckdb

        return duckdb.from_arrow(self.dataset)


class Run:
    """A run folder: `points`, `kernels`, `requests`, `timeline`."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = pathlib.Path(folder)
        if not (self.folder / "run.yaml").exists():
            raise LlmsweepError(f"{folder}: not a run folder: it has no run.yaml", MISTAKE)

    @property
    def points(self) -> Table:
        return Table(self.folder / "points")

    @property
    def kernels(self) -> Table:
        return Table(self.folder / "kernels")

    @property
    def requests(self) -> Table:
        return Table(self.folder / "requests")

    @property
    def timeline(self) -> Table:
        return Table(self.folder / "timeline")

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def open_run(folder: str | os.PathLike[str]) -> Run:
    return Run(folder)


def run(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    shard: str | None = None,
    reuse: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    progress: bool = True,
) -> Run:
    """Runs a sweep, given as a file or as what such a file says, and opens what it wrote.

    A run that was stopped goes on. Without `folder` a spec of a file goes to runs/NAME, any other to a folder that is
    left in the system's temporary one.
    """
    words: list[object] = []
    for option, value in (("--threads", threads), ("--shard", shard), ("--reuse", reuse), ("--limit", limit)):
        if value is not None:
            words += [option, value]
    if isinstance(spec, Mapping):
        place = pathlib.Path(folder if folder is not None else tempfile.mkdtemp(prefix="llmsweep-"))
        with tempfile.TemporaryDirectory(prefix="llmsweep-spec-") as scratch:
            # JSON is YAML.
            file = pathlib.Path(scratch) / "sweep.yaml"
            file.write_text(json.dumps(spec))
            call("run", file, "-o", place, *words, good=(0, NO_POINT_WORKS), show=progress)
    else:
        place = pathlib.Path(folder) if folder is not None else pathlib.Path("runs") / pathlib.Path(spec).stem
        call("run", spec, "-o", place, *words, good=(0, NO_POINT_WORKS), show=progress)
    return Run(place)
