"""Whole steps of real model shapes: the check that kernels plus gaps plus host add up to a step.

Graph rows give device time of one replay in a row of many (seconds, at the clock sm_mhz that the power limit leaves),
of a lone replay on a rested card (rested_seconds), and host-to-host time including the wait (wall_seconds). Eager rows
are what a host without graphs gets: seconds is wall time from the first launch to the end of the last kernel.
"""
import statistics
import time

import torch

import attention_calls
from gpu_timer import graph_node_count, quantile
from kernel_table import step_key
from model_step import ModelStep, Weights
from step_plan import MODELS, step_rows

PROFILED = {("prefill", 1024), ("decode", 1), ("decode", 64), ("mixed", 512)}
NEEDED_CHECKS = {"norm", "rope", "act", "decode"}  # kernels without which there is no step
GRAPH_REPLAYS, RESTED_REPLAYS, EAGER_RUNS = 9, 5, 7
MIN_GRAPH_SECONDS = 0.15  # short steps are repeated until clocks and power have settled


def _time_graph(lab, step):
    graph = lab.timer.capture(lambda i: step.run(), 1, keep_graph=True)
    rested, _ = lab.timer.replay_times(graph, 1 + RESTED_REPLAYS, warm=True, burst=1)
    rested = statistics.median(rested[1:]) - lab.timer.intercept
    replays = max(GRAPH_REPLAYS, min(60, int(MIN_GRAPH_SECONDS / rested)))
    times, clock = lab.timer.replay_times(graph, replays, warm=True)
    times = [t - lab.timer.intercept for t in times[replays // 3:]]
    walls = []
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        walls.append(time.perf_counter() - began)
    return times, dict(wall_seconds=f"{statistics.median(walls):.6g}", rested_seconds=f"{rested:.6g}",
                       sm_mhz=f"{clock * 1e-6:.0f}", kernels_launched=graph_node_count(graph))


def _time_eager(step):
    times = []
    for _ in range(EAGER_RUNS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        step.run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return times, dict(wall_seconds=f"{statistics.median(times):.6g}")


def _profile(step, row, table):
    """Time of each kernel of one eager step by name; gaps are the step's time less their sum."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        step.run()
        torch.cuda.synchronize()
    for event in profiler.key_averages():
        if event.self_device_time_total > 0:
            table.append(dict(row, kernel=event.key[:120], calls=event.count,
                              seconds=f"{event.self_device_time_total * 1e-6:.5g}"))


def _measure_row(step, lab, row, table):
    step.run()  # compiles, builds plans
    torch.cuda.synchronize()
    times, others = _time_graph(lab, step) if row["mode"] == "graph" else _time_eager(step)
    table.append(dict(row, **others, seconds=f"{statistics.median(times):.6g}", p10=f"{quantile(times, .1):.6g}",
                      p90=f"{quantile(times, .9):.6g}"))


def _wants_profile(row):
    size = row["batch"] if row["phase"] == "decode" else row["query_len"]
    return row["mode"] == "graph" and row["context_len"] == 1024 and (row["phase"], size) in PROFILED


def measure_steps(lab, tables, context, deadline):
    """Each model gets an equal part of what is left; a model that fails leaves the others their turn."""
    environment, log, failed_checks = context
    attention = attention_calls.step_attention(failed_checks)
    environment.describe(step_attention=[function.__name__ for function in attention])
    for i, model in enumerate(MODELS):
        began = time.monotonic()
        limit = began + (deadline - began) / (len(MODELS) - i)
        rows = [(row, shape) for row, shape in step_rows(model) if step_key(row) not in tables["steps"].keys]
        if not rows or began > deadline:
            continue
        weights, done = Weights(model, lab.weights), 0
        for row, shape in rows:
            if time.monotonic() > limit:
                break
            try:
                _measure_row(ModelStep(model, weights, shape, lab, attention), lab, row, tables["steps"])
                done += 1
            except Exception as error:
                log(f"step {row}: {type(error).__name__}: {str(error)[:300]}")
                torch.cuda.synchronize()  # raises again if the error has poisoned the context
        environment.part(f"steps {model.name}", began, done, time.monotonic() - began)
        log(f"steps {model.name}: {done} of {len(rows)} rows in {time.monotonic() - began:.1f} s")


def profile_steps(lab, table, context, deadline):
    """Kernel breakdown of a few steps; last of all, because an attached profiler slows every later launch."""
    _, log, failed_checks = context
    attention = attention_calls.step_attention(failed_checks)
    if table.count:
        return
    for model in MODELS:
        weights = Weights(model, lab.weights)
        for row, shape in step_rows(model):
            if _wants_profile(row) and time.monotonic() < deadline:
                step = ModelStep(model, weights, shape, lab, attention)
                step.run()
                _profile(step, row, table)
    log(f"step profiles: {table.count} kernel rows")
