"""One table of a run, in the dataframe of one's choice."""

from __future__ import annotations

import difflib
import pathlib
from typing import TYPE_CHECKING, Any, Iterator

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset

from llmsweep.preview import html_of
from llmsweep.program import MISTAKE, LlmsweepError

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars

TABLES = ("points", "kernels", "requests", "timeline")
PREVIEW_ROWS = 5


def in_order(table: pa.Table) -> pa.Table:
    """By index. Threads and shards write parts as they end, so the files may have another order; rows of one point stay as they are."""
    index = table["index"]
    if len(index) < 2 or not pa.compute.any(pa.compute.less(index[1:], index[:-1])).as_py():
        return table
    return table.sort_by("index")


class Table:
    """Much like a dataframe: columns by name, rows in the order of `index`. Nothing is read before it is asked for, and then only the
    columns named."""

    def __init__(self, folder: pathlib.Path, store: Any = None):
        self.folder, self._store = folder, store
        self._opened: tuple[tuple[list[str], int], pyarrow.dataset.Dataset] | None = None

    @property
    def dataset(self) -> pyarrow.dataset.Dataset:
        """Its files, opened again once there are others: a run may go on, or take the place of another."""
        if self._store is None:
            files = sorted(map(str, self.folder.glob("part-*.parquet")))
        else:
            files = sorted(self._store.glob(f"{self.folder}/part-*.parquet"))
        if not files:
            raise LlmsweepError(f"{self.folder}: the run has no such table, or not one row for it", MISTAKE)
        state = (files, self.folder.stat().st_mtime_ns if self._store is None else 0)
        if self._opened is None or self._opened[0] != state:
            self._opened = (state, pyarrow.dataset.dataset(files, format="parquet", filesystem=self._store))
        return self._opened[1]

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
        if columns is None:
            return in_order(self.dataset.to_table(filter=filter))
        known = self.columns
        for column in columns:
            if column not in known:
                near = difflib.get_close_matches(column, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else "'columns' of the table lists those it has"
                raise LlmsweepError(f"{self.folder}: error: there is no column {column!r}\n  hint: {hint}", MISTAKE)
        read = list(dict.fromkeys([*columns, "index"]))
        return in_order(self.dataset.to_table(columns=read, filter=filter)).select(columns)

    def pandas(self, columns: list[str] | None = None) -> pandas.DataFrame:
        return self.arrow(columns).to_pandas()

    def polars(self) -> polars.LazyFrame:
        import polars

        return polars.scan_pyarrow_dataset(self.dataset).sort("index", maintain_order=True)

    def duckdb(self) -> duckdb.DuckDBPyRelation:
        import duckdb

        return duckdb.from_arrow(self.dataset).order('"index"')

    # The names that dataframes give to these.
    to_arrow, to_pandas, to_polars = arrow, pandas, polars

    def head(self, n: int = PREVIEW_ROWS) -> pandas.DataFrame:
        return self._first(n).to_pandas()

    def _first(self, n: int) -> pa.Table:
        """Reads the index of all rows, and of the other columns what the first rows need."""
        index = self.arrow(["index"])["index"]
        if n <= 0 or len(index) == 0:
            return self.dataset.schema.empty_table()
        last = index[min(n, len(index)) - 1]
        return self.arrow(filter=pyarrow.dataset.field("index") <= last).slice(0, n)

    def __len__(self) -> int:
        return self.dataset.count_rows()

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str | list[str]) -> pandas.Series | pandas.DataFrame:
        """A column, or a frame of those in a list."""
        return self.pandas([name])[name] if isinstance(name, str) else self.pandas(list(name))

    def __getattr__(self, name: str) -> pandas.Series:
        # Names with underscores in front are asked for by notebooks and by pickle, which must not have files opened for that.
        if name.startswith("_") or name not in self._known_columns():
            raise AttributeError(f"a table has no {name!r}, neither as a column nor otherwise")
        return self[name]

    def _known_columns(self) -> list[str]:
        """None where there is no such table: who looks around is told nothing wrong."""
        try:
            return self.columns
        except LlmsweepError:
            return []

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *filter(str.isidentifier, self._known_columns())]

    def _ipython_key_completions_(self) -> list[str]:
        return self._known_columns()

    def __repr__(self) -> str:
        if not self._known_columns():
            return f"{self.folder}: no rows"
        count = len(self)
        return f"{self.folder}: {count:,} row{'s' * (count != 1)}, {len(self.columns)} columns"

    def _repr_html_(self) -> str | None:
        if not self._known_columns():
            return None
        rows = self._first(PREVIEW_ROWS)
        return html_of(rows, self.units, f"{self!r}; the first rows, and columns that tell them apart")
