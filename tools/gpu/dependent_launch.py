"""Measures what programmatic dependent launch saves of the gap between two kernels of a graph.

    python3 tools/gpu/dependent_launch.py --out DIR [--budget-s 60]

One row per shape in DIR/dependent_launch.csv: seconds of one kernel in a captured chain of COUNT matrix-vector products, each of which
reads what the one before wrote: launched when that one is done (`plain_s`), or as soon as its blocks say that they are about to end, to
wait on the device for its results (`dependent_s`). Weights go round among more than the cache holds.
"""
import argparse
import csv
import pathlib
import statistics
import time

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

COLUMNS = ["rows", "columns", "plain_s", "dependent_s"]
SHAPES = [(64, 512), (1056, 512), (1056, 1024), (2112, 2048), (4096, 4096), (8192, 4096), (8192, 8192)]
COUNT = 400
REPEATS = 9
ROWS_OF_A_BLOCK = 8
WEIGHT_BYTES = 200e6  # four times the cache


@triton.jit
def product(weights, vector, result, columns, STEP: tl.constexpr, ROWS: tl.constexpr, DEPENDENT: tl.constexpr):
    if DEPENDENT:
        gdc_wait()
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros([ROWS, STEP], dtype=tl.float32)
    for first in range(0, columns, STEP):
        here = first + tl.arange(0, STEP)
        sums += tl.load(weights + rows[:, None] * columns + here[None, :]).to(tl.float32) * tl.load(vector + here).to(tl.float32)[None, :]
    if DEPENDENT:
        gdc_launch_dependents()
    tl.store(result + rows, tl.sum(sums, 1).to(tl.bfloat16))


def values(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.01


def seconds_of(rows, columns, dependent):
    weights = [values(rows, columns) for _ in range(max(2, int(WEIGHT_BYTES / (2 * rows * columns))))]
    vectors = [values(max(rows, columns)) for _ in range(2)]
    launch = {"launch_pdl": True} if dependent else {}

    def chain():
        for i in range(COUNT):
            product[(rows // ROWS_OF_A_BLOCK,)](
                weights[i % len(weights)], vectors[i % 2], vectors[(i + 1) % 2], columns,
                STEP=512, ROWS=ROWS_OF_A_BLOCK, DEPENDENT=dependent, num_warps=4, **launch)

    chain()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain()
    times = []
    for _ in range(REPEATS + 2):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / COUNT)
    return statistics.median(times[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=60)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.perf_counter() + arguments.budget_s
    with open(arguments.out / "dependent_launch.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for shape in SHAPES:
            if time.perf_counter() > end:
                return
            found = [seconds_of(*shape, dependent) for dependent in (False, True)]
            table.writerow([*shape, *(f"{seconds:.6g}" for seconds in found)])
            file.flush()


if __name__ == "__main__":
    main()
