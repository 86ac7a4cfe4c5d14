"""Runs the groups of the plan inside their time budgets; one group's failure never costs another its turn."""
import time

import torch

from environment import EnergyMeter
from families import GROUPS
from kernel_table import kernel_key
from sweep_plan import work

MAX_FAILURES = 5  # in a row: the group is broken, not the shape


class PoisonedContext(RuntimeError):
    """A CUDA error that stays: every later call of this process would fail, so the process must be replaced."""


class Group:
    """What is left to do of one group of rows, and what has been seen of it."""

    def __init__(self, name, share, rows):
        self.name, self.share, self.rows = name, share, rows
        self.next = 0
        self.failures = 0
        self.done = []
        self.setup = 0.0

    def unfinished(self):
        return self.next < len(self.rows) and self.failures < MAX_FAILURES

    def best_rates(self):
        """Highest TFLOP/s and TB/s seen: the first numbers to look at when judging a run."""
        flops = max((work(row)[0] / seconds for row, seconds in self.done), default=0) * 1e-12
        moved = max((work(row)[1] / seconds for row, seconds in self.done if seconds > 20e-6), default=0) * 1e-12
        return flops, moved


class KernelSweep:
    def __init__(self, lab, tables, environment, log):
        self.lab, self.tables, self.environment, self.log = lab, tables, environment, log
        self.meter = EnergyMeter()

    def run(self, plan, failed_checks, deadline):
        """Every group gets its share first; what is left over is shared again by the unfinished ones."""
        groups = []
        for name, (share, rows) in plan.items():
            broken = [check for check in GROUPS[name][1] if check in failed_checks]
            if broken:
                self.environment.failed(name, f"self-check failed: {', '.join(broken)}")
                self.log(f"{name}: SKIPPED, self-check failed: {', '.join(broken)}")
            else:
                groups.append(Group(name, share, [r for r in rows if kernel_key(r) not in self.tables["kernels"].keys]))
        while True:
            pending = [group for group in groups if group.unfinished()]
            left = deadline - time.monotonic()
            if not pending or left < 0.5:
                break
            unit = left / sum(group.share for group in pending)
            for group in pending:
                # At least two seconds a turn: a slice that only pays for a compilation measures nothing.
                self._turn(group, min(deadline, time.monotonic() + max(2.0, unit * group.share)))
        self._report(groups)

    def _turn(self, group, limit):
        began, before = time.monotonic(), len(group.done)
        build = GROUPS[group.name][0]
        while group.unfinished() and time.monotonic() < limit:
            row = group.rows[group.next]
            group.next += 1
            try:
                self._measure(group, build, row)
                group.failures = 0
            except Exception as error:
                self._failure(group, row, error)
        elapsed = time.monotonic() - began
        self.environment.part(group.name, began, len(group.done) - before, elapsed)
        self.log(f"{group.name}: {len(group.done) - before} rows in {elapsed:.1f} s, "
                 f"{len(group.rows) - group.next} of {len(group.rows)} left")

    def _measure(self, group, build, row):
        case = build(self.lab, row)
        if row["impl"].endswith(":sustained"):
            timing = self.lab.timer.sustained(case, self.meter)
        else:
            timing = self.lab.timer.measure(case)
        self.tables["kernels"].append(dict(row, seconds=f"{timing.seconds:.6g}"))
        self.tables["details"].append(dict(
            row=kernel_key(row), calls=timing.calls, replays=timing.replays, p10_s=f"{timing.p10:.5g}",
            p90_s=f"{timing.p90:.5g}", setup_s=f"{timing.setup:.3g}", sm_mhz=f"{timing.clock * 1e-6:.0f}",
            watts="" if timing.watts is None else f"{timing.watts:.0f}"))
        group.done.append((row, timing.seconds))
        group.setup += timing.setup

    def _failure(self, group, row, error):
        group.failures += 1
        self.log(f"{group.name} {row}: {type(error).__name__}: {str(error)[:300]}")
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError as again:
            raise PoisonedContext(group.name) from again
        if group.failures == MAX_FAILURES:
            self.environment.failed(group.name, f"{MAX_FAILURES} rows in a row failed: {str(error)[:300]}")
            self.log(f"{group.name}: GIVEN UP after {MAX_FAILURES} failures in a row")

    def _report(self, groups):
        self.log(f"{'group':20} {'rows':>6} {'left':>6} {'TFLOP/s':>8} {'TB/s':>6} {'setup s':>8} {'min us':>8}")
        for group in groups:
            flops, moved = group.best_rates()
            least = min((seconds for _, seconds in group.done), default=0) * 1e6
            self.log(f"{group.name:20} {len(group.done):6d} {len(group.rows) - group.next:6d} {flops:8.0f} {moved:6.2f} "
                     f"{group.setup:8.1f} {least:8.2f}")
