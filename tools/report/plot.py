#!/usr/bin/env python3
"""Plots one column of a run against another, a line for each value of a third.

    plot.py runs/first_sweep --x step.batch --y price_usd_per_mtok --by device --where "step.context == 2048"

Where several rows share x and line, the best one is drawn (--best min or max). Needs pandas, pyarrow
and matplotlib. Only rows with status ok are taken; the command prints what it left out.
"""

import argparse
import pathlib

import matplotlib
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)


def quoted(expression, columns):
    """Column names with dots need backticks in a pandas query."""
    for name in sorted(columns, key=len, reverse=True):
        if "." in name and name in expression:
            expression = expression.replace(name, f"`{name}`")
    return expression


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="run folder")
    parser.add_argument("--x", required=True)
    parser.add_argument("--y", required=True)
    parser.add_argument("--by", required=True, help="column that tells the lines apart")
    parser.add_argument("--where", help="pandas query, as in \"step.context == 2048\"")
    parser.add_argument("--best", choices=("min", "max"), default="min")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("plot.png"))
    arguments = parser.parse_args()

    rows = pd.read_parquet(arguments.run / "points")
    if arguments.where:
        rows = rows.query(quoted(arguments.where, rows.columns))
    ok = rows[rows["status"] == "ok"]
    print(f"{len(ok)} of {len(rows)} rows are ok")
    best = ok.groupby([arguments.by, arguments.x], observed=True)[arguments.y].agg(arguments.best)

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, line in best.groupby(level=0, observed=True):
        axes.plot(line.index.get_level_values(1), line.values, marker="o", markersize=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(arguments.x)
    axes.set_ylabel(arguments.y)
    axes.grid(alpha=0.3, which="both")
    axes.legend(title=arguments.by)
    figure.savefig(arguments.output, dpi=120)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
