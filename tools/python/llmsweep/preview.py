"""What a notebook shows of a table: its first rows, and the columns that tell them apart."""

from __future__ import annotations

import html
import textwrap
from typing import Any

import pyarrow as pa

MOST_COLUMNS = 20
LONGEST_TEXT = 60  # a reason is a sentence


def told_apart(rows: pa.Table) -> list[str]:
    """Of hundreds of columns most hold one value or none: what the sweep varies, and what differs then."""

    def matters(name: str) -> bool:
        values = rows[name].to_pylist()
        if all(value is None for value in values):
            return False
        is_place = name in ("index", "status") or name.startswith("axis.")
        return is_place or len(values) < 2 or len(set(map(str, values))) > 1

    names = [name for name in rows.column_names if name != "key" and matters(name)]
    # Axes have a column of their settings, too.
    names = [name for name in names if f"axis.{name}" not in names]
    return names[:MOST_COLUMNS]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else html.escape(textwrap.shorten(str(value), LONGEST_TEXT, placeholder="..."))


def html_of(rows: pa.Table, units: dict[str, str], caption: str) -> str:
    names = told_apart(rows)
    heads = "".join(f"<th>{html.escape(name)}{f' [{html.escape(units[name])}]' if name in units else ''}</th>" for name in names)
    lines = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows.select(names).to_pylist())
    return f"<table><caption>{html.escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
