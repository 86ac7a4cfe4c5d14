"""Runs: made from a spec, opened from a folder."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import tempfile
from typing import Any, Mapping

from llmsweep.calls import call
from llmsweep.cluster import run_on_ray
from llmsweep.overwrite import hint_at_overwrite, replacing
from llmsweep.program import MISTAKE, NO_POINT_WORKS, LlmsweepError
from llmsweep.spec import by_key, text_of, written
from llmsweep.table import TABLES, Table


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
        # No properties: the Tab key looks into what is there, and calls nothing to find out.
        self.points, self.kernels, self.requests, self.timeline = (Table(self.folder / name, self._store) for name in TABLES)

    @property
    def notes(self) -> list[str]:
        """What to know before one ranks the points: what the program says when a run is done."""
        return call("notes", self.folder).stdout.splitlines()

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def open_run(folder: str | os.PathLike[str]) -> Run:
    return Run(folder)


def _place(spec: Mapping[str, Any] | str | os.PathLike[str], folder: str | os.PathLike[str] | None) -> pathlib.Path:
    if folder is not None:
        return pathlib.Path(folder)
    return pathlib.Path(tempfile.mkdtemp(prefix="llmsweep-")) if isinstance(spec, Mapping) else pathlib.Path("runs") / pathlib.Path(spec).stem


def run(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    shard: str | None = None,
    reuse: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    cluster: str | None = None,
    shards: int | None = None,
    pull: bool = False,
) -> Run:
    """Runs a sweep, given as a file or as what such a file says, and opens what it wrote.

    Paths in a spec that is no file are relative to the working directory. A run that was stopped, by Ctrl-C too, goes on. Without
    `folder` a spec of a file goes to runs/NAME, any other to a folder that is left in the system's temporary one. A folder that
    holds a run of another spec is a mistake, unless `overwrite` lets the new run take its place.

    How far it is, is shown in terminals and notebooks; `progress` True or False shows it always or never.

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
    if pull and overwrite:  # no program that knows the spec sees the folder
        raise LlmsweepError("shards are pulled into a new folder, or one of the same spec: overwrite is not for pull", MISTAKE)
    if overwrite and reuse is not None and folder is not None and pathlib.Path(reuse).resolve() == pathlib.Path(folder).resolve():
        raise LlmsweepError("a run that takes over points of another needs a folder of its own: overwrite would delete them first", MISTAKE)
    text = text_of(spec) if isinstance(spec, Mapping) else None
    place = _place(spec, folder)
    words = [word for option, value in (("--reuse", reuse), ("--limit", limit)) if value is not None for word in (option, value)]

    def go() -> None:
        if cluster is not None:
            run_on_ray(os.fspath(spec) if text is None else text, text is not None, place, words,
                       threads=threads or 1, shards=shards, pull=pull, progress=progress)
            return
        here = [word for option, value in (("--threads", threads), ("--shard", shard)) if value is not None for word in (option, value)]
        with contextlib.nullcontext(spec) if text is None else written(text) as file:
            reword = str if text is None else functools.partial(by_key, file=file, text=text)
            call("run", file, "-o", place, *words, *here, good=(0, NO_POINT_WORKS), progress=progress, reword=reword)

    try:
        with hint_at_overwrite(place):
            replacing(place, go) if overwrite else go()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; what is done is kept, and the same call with the folder {str(place)!r} goes on") from None
    return Run(place)
