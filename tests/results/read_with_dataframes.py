"""Reads the toy run of dataframes_test.cc as a user would, and checks what the three readers see."""

import pathlib
import sys

import duckdb
import pandas as pd
import polars as pl

DIR = pathlib.Path(sys.argv[1])
ROWS, WORKING, KERNELS = 900, 771, 3

points = pd.read_parquet(DIR / "points")
kernels = pd.read_parquet(DIR / "kernels")
assert len(points) == ROWS, len(points)
assert len(kernels) == WORKING * KERNELS, len(kernels)
assert points["index"].is_unique and points["key"].is_unique
assert set(points["device"]) == {"toy-a", "toy-b", "toy-c"}
assert (points["model"] == "toy-model").all()
assert points["axis.step.batch"].isna().sum() == (points["device"] == "toy-c").sum()
assert points["step_time_s"].isna().sum() == ROWS - WORKING
assert points["reason"].notna().sum() == ROWS - WORKING
assert points["extrapolated"].dtype == bool
assert points["step.batch"].dtype == "int64"
joined = points.merge(kernels, on=["index", "key"], suffixes=("", "_kernel"))
assert len(joined) == len(kernels)

frame = pl.read_parquet(DIR / "points/*.parquet")
assert frame.shape == points.shape, frame.shape
assert frame.filter(pl.col("status") == "ok").height == WORKING
long = pl.read_parquet(DIR / "kernels/*.parquet")
assert frame.join(long, on="key").height == len(kernels)
assert frame["step_time_s"].null_count() == ROWS - WORKING

rows = duckdb.sql(f"select status, count(*) from '{DIR}/points/*.parquet' group by 1").fetchall()
assert dict(rows) == {"ok": WORKING, "infeasible": ROWS - WORKING}, rows
per_point = duckdb.sql(
    f"select p.index, p.step_time_s, sum(k.seconds), count(*) from '{DIR}/points/*.parquet' p "
    f"join '{DIR}/kernels/*.parquet' k using (key) group by all"
).fetchall()
assert len(per_point) == WORKING and all(row[3] == KERNELS for row in per_point)



def cells(values):
    """Values as Python's own, whatever a reader calls null."""
    return [None if value is None or value != value else value for value in values]


requests = pd.read_parquet(DIR / "requests")
assert requests["arrival_s"].notna().all() and requests["prompt_tokens"].dtype == "int64"
assert (requests["finish_s"].isna() == (requests["end"] == "refused")).all()
assert requests["measured"].dtype == bool
assert requests.merge(points, on="key").shape[0] == len(requests)
mean = duckdb.sql(f"select avg(finish_s - arrival_s) from '{DIR}/requests/*.parquet' where measured").fetchall()[0][0]
assert abs(mean - 2) < 1e-9, mean
assert pl.read_parquet(DIR / "requests/*.parquet")["scheduled_s"].null_count() * 4 == len(requests)

# Every cell of every table is the same to all three.
for table in ("points", "kernels", "requests", "timeline"):
    by_pandas = pd.read_parquet(DIR / table)
    by_polars = pl.read_parquet(DIR / table / "*.parquet")
    by_duckdb = duckdb.sql(f"select * from '{DIR}/{table}/*.parquet'")
    columns = dict(zip(by_duckdb.columns, zip(*sorted(by_duckdb.fetchall(), key=lambda r: r[0]))))
    by_pandas = by_pandas.sort_values("index", kind="stable")
    by_polars = by_polars.sort("index", maintain_order=True)
    assert list(columns) == list(by_pandas) == by_polars.columns
    for name, values in columns.items():
        assert cells(by_pandas[name].tolist()) == cells(values), f"{table}.{name} in pandas"
        assert cells(by_polars[name].to_list()) == cells(values), f"{table}.{name} in Polars"

total = kernels["seconds"].sum()
assert abs(long["seconds"].sum() - total) < 1e-9 * total
assert abs(sum(row[2] for row in per_point) - total) < 1e-9 * total
