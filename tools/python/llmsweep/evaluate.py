"""Points one by one or in batches, for optimisers: scenarios in, figures out, in the same order."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from llmsweep.program import MISTAKE, LlmsweepError
from llmsweep.server import MistakenScenarios, server

Scenario = Mapping[str, Any]
MOST_AT_ONCE = 50_000
WHOLE = {"from", "hf_config"}  # a map with one of these is a value


def flat(scenario: Scenario, prefix: str = "") -> dict[str, Any]:
    """{"step": {"batch": 4}} as {"step.batch": 4}. A map that says `from` is a spec of the library, changed, one that says
    `hf_config` a model, and {} a role like the main deployment: each is one value."""
    paths: dict[str, Any] = {}
    for name, value in scenario.items():
        if isinstance(value, Mapping) and value and not WHOLE & value.keys():
            found = flat(value, f"{prefix}{name}.")
        else:
            found = {prefix + name: value}
        for path in paths.keys() & found.keys():
            raise LlmsweepError(f"a scenario says '{path}' twice: {paths[path]!r} and {found[path]!r}", MISTAKE)
        paths.update(found)
    return paths


class Group:
    """Scenarios that set the same paths: their numbers, and a list of values for each path."""

    def __init__(self, paths: tuple[str, ...], numbers: list[int], scenarios: Iterable[Scenario]):
        self.numbers = numbers
        self.fields = dict(zip(paths, map(list, zip(*(scenario.values() for scenario in scenarios)))))

    def parts(self) -> Iterator[tuple[list[int], dict[str, list[Any]]]]:
        for begin in range(0, len(self.numbers), MOST_AT_ONCE):
            part = slice(begin, begin + MOST_AT_ONCE)
            yield self.numbers[part], {path: values[part] for path, values in self.fields.items()}


def grouped(scenarios: Sequence[Scenario]) -> list[Group]:
    """A loop of C for each path and not one of Python for each scenario, where values are not maps."""
    by_paths: dict[tuple[str, ...], list[int]] = {}
    for number, scenario in enumerate(scenarios):
        by_paths.setdefault(tuple(scenario), []).append(number)
    groups = [Group(paths, numbers, map(scenarios.__getitem__, numbers)) for paths, numbers in by_paths.items()]
    if any(issubclass(kind, Mapping) for group in groups for values in group.fields.values() for kind in set(map(type, values))):
        by_paths = {}
        paths_of = [flat(scenario) for scenario in scenarios]
        for number, row in enumerate(paths_of):
            paths_of[number] = dict(sorted(row.items()))
            by_paths.setdefault(tuple(paths_of[number]), []).append(number)
        groups = [Group(paths, numbers, map(paths_of.__getitem__, numbers)) for paths, numbers in by_paths.items()]
    return groups


def evaluate(
    scenarios: Iterable[Scenario],
    base: Scenario | None = None,
    *,
    columns: Sequence[str] | None = None,
    threads: int | None = None,
) -> pa.Table:
    """The row of each scenario's points table, in the order given, and its number as `index`.

    A scenario says what differs from `base`, nested ({"step": {"batch": 4}}) or by path ({"step.batch": 4}). The program
    is started once and stays; what calls with the same `base` have in common is read once. Rows of points that do not work have
    a `status` and a `reason`; scenarios that cannot be read are a MistakenScenarios with their numbers.
    """
    if isinstance(scenarios, (Mapping, str)):
        raise LlmsweepError("scenarios are a list: evaluate([{...}, {...}])", MISTAKE)
    if isinstance(columns, str):
        raise LlmsweepError(f"columns are a list: [{columns!r}]", MISTAKE)
    wanted = None if columns is None else [name for name in dict.fromkeys(columns) if name != "index"]
    tables: list[pa.Table] = []
    order: list[int] = []
    mistakes: list[MistakenScenarios] = []
    for group in grouped(list(scenarios)):
        for numbers, fields in group.parts():
            try:
                # There is always a column to count rows by.
                table = server(threads).ask(dict(base or {}), fields, wanted if wanted is None else wanted or ["status"])
            except MistakenScenarios as mistake:
                if not mistake.scenarios:
                    raise  # what they have in common
                mistakes.append(_renumbered(mistake, numbers))
                continue
            tables.append(table if fields else table.take([0] * len(numbers)))
            order += numbers
    if mistakes:
        raise MistakenScenarios("\n".join(map(str, mistakes)), sorted({number for mistake in mistakes for number in mistake.scenarios}))
    if not tables:
        return pa.table({})
    joined = pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="permissive")
    if order != list(range(len(order))):
        place = {number: row for row, number in enumerate(order)}
        joined = joined.take([place[number] for number in range(len(order))])
    names = joined.column_names if wanted is None else wanted
    return joined.select([name for name in names if name != "index"]).add_column(0, "index", pa.array(range(len(order)), pa.int64()))


def _renumbered(mistake: MistakenScenarios, numbers: list[int]) -> MistakenScenarios:
    """The program counts within what it was sent; who asked counts within the list given."""
    text = str(mistake)
    for scenario in sorted(set(mistake.scenarios), reverse=True):
        text = text.replace(f"scenario {scenario}:", f"scenario {numbers[scenario]}:")
    return MistakenScenarios(text, sorted({numbers[scenario] for scenario in mistake.scenarios}))
