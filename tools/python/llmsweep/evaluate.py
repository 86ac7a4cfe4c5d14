"""Points one by one or in batches, for optimisers: scenarios in, figures out, in the same order."""

from __future__ import annotations

import tempfile
from typing import Any, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute

from llmsweep.runs import run

Scenario = Mapping[str, Any]


def flat(scenario: Scenario, prefix: str = "") -> dict[str, Any]:
    """{"step": {"batch": 4}} as {"step.batch": 4}. A map that says `from` is a spec of the library, changed: one value."""
    paths: dict[str, Any] = {}
    for name, value in scenario.items():
        if isinstance(value, Mapping) and "from" not in value:
            paths.update(flat(value, f"{prefix}{name}."))
        else:
            paths[prefix + name] = value
    return paths


def as_spec(base: Scenario, scenarios: Sequence[dict[str, Any]], paths: Sequence[str]) -> dict[str, Any]:
    """One sweep whose position i is scenario i. What all scenarios agree on is no axis."""
    varied = [path for path in paths if any(scenario[path] != scenarios[0][path] for scenario in scenarios)]
    fixed = {path: scenarios[0][path] for path in paths if path not in varied}
    spec: dict[str, Any] = {"base": nested({**flat(base), **fixed}), "limit": max(len(scenarios), 1)}
    if varied:
        spec["axes"] = [{"zip": {path: [scenario[path] for scenario in scenarios] for path in varied}}]
    return spec


def nested(paths: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in paths.items():
        *sections, name = path.split(".")
        place = tree
        for section in sections:
            inner = place.setdefault(section, {})
            # The section was named as a whole ("device": "h100-sxm") and is now changed.
            if not isinstance(inner, dict):
                inner = place[section] = {"from": inner}
            place = inner
        place[name] = {"from": value, **place[name]} if isinstance(place.get(name), dict) and not isinstance(value, Mapping) else value
    return tree


def evaluate(
    scenarios: Sequence[Scenario],
    base: Scenario | None = None,
    *,
    columns: Sequence[str] | None = None,
    threads: int | None = None,
) -> pa.Table:
    """The row of each scenario's points table, in the order given.

    A scenario says what differs from `base`, nested ({"step": {"batch": 4}}) or by path ({"step.batch": 4}). Those that
    set the same fields go through the program together, so a batch of thousands takes little longer than one. Rows of
    points that do not work have a `status` and a `reason`.
    """
    base = base or {}
    rows = [flat(scenario) for scenario in scenarios]
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(tuple(sorted(row)), []).append(number)
    tables: list[pa.Table] = []
    order: list[int] = []
    for paths, numbers in groups.items():
        group = [rows[number] for number in numbers]
        # All equal: one point stands for them.
        alike = all(row == group[0] for row in group)
        spec = as_spec(base, group[:1] if alike else group, paths)
        with tempfile.TemporaryDirectory(prefix="llmsweep-evaluate-") as scratch:
            wanted = None if columns is None else ["index", *(name for name in columns if name != "index")]
            table = run(spec, f"{scratch}/run", threads=threads, progress=False).points.arrow(wanted)
        table = table.take(pyarrow.compute.sort_indices(table, sort_keys=[("index", "ascending")]))
        tables.append(table.take([0] * len(numbers)) if alike else table)
        order += numbers
    if not tables:
        return pa.table({})
    joined = pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="permissive")
    place = {number: row for row, number in enumerate(order)}
    joined = joined.take([place[number] for number in range(len(rows))])
    return joined.set_column(joined.column_names.index("index"), "index", pa.array(range(len(rows)), pa.int64()))
