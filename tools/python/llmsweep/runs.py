"""Runs: made from a spec, opened from a folder, their tables in the dataframe of one's choice."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import pathlib
import tempfile
from functools import cached_property
from typing import TYPE_CHECKING, Any, Iterator, Mapping

import pyarrow as pa
import pyarrow.dataset

from llmsweep.cluster import run_on_ray
from llmsweep.program import MISTAKE, NO_POINT_WORKS, LlmsweepError, call, plain

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


class Table:
    """One table of a run. Nothing is read before it is asked for, and then only the columns named."""

    def __init__(self, folder: pathlib.Path, store: Any = None):
        self.folder, self._store = folder, store

    @cached_property
    def dataset(self) -> pyarrow.dataset.Dataset:
        found = self.folder.glob("part-*.parquet") if self._store is None else self._store.glob(f"{self.folder}/part-*.parquet")
        files = sorted(map(str, found))
        if not files:
            raise LlmsweepError(f"{self.folder}: the run has no such table, or not one row for it", MISTAKE)
        return pyarrow.dataset.dataset(files, format="parquet", filesystem=self._store)

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
        for column in columns or []:
            if column not in self.dataset.schema.names:
                near = difflib.get_close_matches(column, self.columns, 1)
                hint = f"did you mean {near[0]!r}?" if near else "'columns' of the table lists those it has"
                raise LlmsweepError(f"{self.folder}: error: there is no column {column!r}\n  hint: {hint}", MISTAKE)
        return self.dataset.to_table(columns=columns, filter=filter)

    def pandas(self, columns: list[str] | None = None) -> pandas.DataFrame:
        return self.arrow(columns).to_pandas()

    def polars(self) -> polars.LazyFrame:
        import polars

        return polars.scan_pyarrow_dataset(self.dataset)

    def duckdb(self) -> duckdb.DuckDBPyRelation:
        import duckdb

        return duckdb.from_arrow(self.dataset)


def _located(folder: str | os.PathLike[str]) -> tuple[pathlib.Path, Any]:
    """Where a run is: a path, and the store that it is a path of; no store for this machine's own files."""
    if "://" not in os.fspath(folder):
        return pathlib.Path(folder), None
    try:
        import fsspec
    except ImportError:
        raise LlmsweepError(f"{folder}: to read from an object store, install fsspec and the store's own package", MISTAKE) from None
    store, path = fsspec.core.url_to_fs(os.fspath(folder))
    return pathlib.Path(path), store


class Run:
    """A run folder: `points`, `kernels`, `requests`, `timeline`. One in an object store ("s3://bucket/run") can be read."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder, self._store = _located(folder)
        run_yaml = f"{self.folder}/run.yaml"
        if not (os.path.exists(run_yaml) if self._store is None else self._store.exists(run_yaml)):
            raise LlmsweepError(f"{folder}: not a run folder: it has no run.yaml", MISTAKE)

    @property
    def points(self) -> Table:
        return Table(self.folder / "points", self._store)

    @property
    def kernels(self) -> Table:
        return Table(self.folder / "kernels", self._store)

    @property
    def requests(self) -> Table:
        return Table(self.folder / "requests", self._store)

    @property
    def timeline(self) -> Table:
        return Table(self.folder / "timeline", self._store)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def open_run(folder: str | os.PathLike[str]) -> Run:
    return Run(folder)


@contextlib.contextmanager
def _written(spec: Mapping[str, Any]) -> Iterator[pathlib.Path]:
    """A spec as a file, for as long as it is needed. It lies in the working directory, where one may write there: paths in it,
    and a folder `specs`, are looked for beside it."""
    text = json.dumps({"name": "sweep", **spec}, default=plain)  # JSON is YAML
    with contextlib.ExitStack() as open_files:
        name = {"mode": "w", "prefix": ".llmsweep-spec-", "suffix": ".yaml"}
        try:
            file = open_files.enter_context(tempfile.NamedTemporaryFile(dir=os.getcwd(), **name))
        except OSError:
            file = open_files.enter_context(tempfile.NamedTemporaryFile(**name))
        file.write(text)
        file.flush()
        yield pathlib.Path(file.name)


def run(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    shard: str | None = None,
    reuse: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    progress: bool = True,
    cluster: str | None = None,
    shards: int | None = None,
    pull: bool = False,
) -> Run:
    """Runs a sweep, given as a file or as what such a file says, and opens what it wrote.

    Paths in a spec that is no file are relative to the working directory. A run that was stopped goes on. Without `folder` a spec of a file goes to runs/NAME, any other to a folder that is
    left in the system's temporary one.

    With `cluster="ray"` shards of the sweep are tasks of the Ray cluster that is there, `threads` cores each (one unless
    said); those of a node that is lost run again elsewhere, and go on where they were. `folder` must be the same place on
    all nodes, or `pull` true: then each shard is done on its node's own disk and sent back.
    """
    if cluster not in (None, "ray"):
        raise LlmsweepError(f"there is no cluster {cluster!r}; it can be 'ray'", MISTAKE)
    if cluster is not None and (shard is not None or folder is None):
        raise LlmsweepError("a run on a cluster needs a folder, and chooses its shards itself", MISTAKE)
    if cluster is None and (shards is not None or pull):
        raise LlmsweepError("shards and pull are for runs on a cluster", MISTAKE)
    words: list[object] = []
    for option, value in (("--reuse", reuse), ("--limit", limit)):
        if value is not None:
            words += [option, value]
    if cluster is not None and folder is not None:
        text = json.dumps(spec, default=plain) if isinstance(spec, Mapping) else None
        run_on_ray(text if text is not None else os.fspath(spec), text is not None, pathlib.Path(folder), words,
                   threads=threads or 1, shards=shards, pull=pull, progress=progress)
        return Run(folder)
    for option, value in (("--threads", threads), ("--shard", shard)):
        if value is not None:
            words += [option, value]
    if isinstance(spec, Mapping):
        place = pathlib.Path(folder if folder is not None else tempfile.mkdtemp(prefix="llmsweep-"))
        with _written(spec) as file:
            try:
                call("run", file, "-o", place, *words, good=(0, NO_POINT_WORKS), show=progress)
            except LlmsweepError as error:
                # Nobody wrote that file, and it is gone: what is wrong is the value that was given.
                raise LlmsweepError(str(error).replace(str(file), "spec"), error.exit_code) from None
    else:
        place = pathlib.Path(folder) if folder is not None else pathlib.Path("runs") / pathlib.Path(spec).stem
        call("run", spec, "-o", place, *words, good=(0, NO_POINT_WORKS), show=progress)
    return Run(place)
