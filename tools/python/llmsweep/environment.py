"""A design space as an environment of actions and rewards, in the manner of Gymnasium, for learners."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from llmsweep.evaluate import Scenario, evaluate

Action = Sequence[int]


class Step(NamedTuple):
    """What a Gymnasium environment gives back. An episode is one design, so it ends at once."""

    observation: tuple[float, ...]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class DesignEnvironment:
    """An action chooses one value of each axis by its place; the observation holds the figures named in `observe`.

    A design that does not work pays `penalty`. Many actions at once (`step_batch`) are one call of the program.
    """

    def __init__(
        self,
        base: Scenario,
        axes: Mapping[str, Sequence[Any]],
        reward: Callable[[Mapping[str, Any]], float],
        observe: Sequence[str] = ("step_time_s", "price_usd_per_mtok"),
        penalty: float = -math.inf,
    ):
        self.base, self.axes, self.reward = base, {name: list(values) for name, values in axes.items()}, reward
        self.observe, self.penalty = tuple(observe), penalty

    @property
    def shape(self) -> tuple[int, ...]:
        """How many actions there are on each axis: gymnasium.spaces.MultiDiscrete(environment.shape)."""
        return tuple(len(values) for values in self.axes.values())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[tuple[float, ...], dict[str, Any]]:
        return (math.nan,) * len(self.observe), {}

    def step(self, action: Action) -> Step:
        return self.step_batch([action])[0]

    def step_batch(self, actions: Sequence[Action]) -> list[Step]:
        scenarios = [{name: values[place] for (name, values), place in zip(self.axes.items(), action)} for action in actions]
        return [self._step(row) for row in evaluate(scenarios, self.base).to_pylist()]

    def _step(self, row: dict[str, Any]) -> Step:
        works = row["status"] == "ok"
        observation = tuple(math.nan if row.get(name) is None else float(row[name]) for name in self.observe)
        return Step(observation, float(self.reward(row)) if works else self.penalty, True, False, row)
