"""Measures low-rank updates of many adapters in one batch on this GPU: out += (x A) B, each token with its own adapter.

    python3 tools/gpu/lora_sweep.py --out DIR [--budget-s 240]

One row a call in DIR/lora.csv, written as it is done; timing as in kernel rows (README.md). Two kernels of ours in Triton, as
serving engines have them: tokens are sorted by adapter; the first multiplies by A, split along the input until the
GPU is full, the second adds up the splits, multiplies by B and adds to the output in place. Adapters have equally many tokens.
Each row is the fastest of a few launch shapes: engines ship such choices, too.
"""
import argparse
import csv
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import reference  # noqa: E402
from gpu_timer import Case  # noqa: E402
from lab import Lab  # noqa: E402

COLUMNS = ["tokens", "adapters", "rank", "input", "output", "fill", "columns", "seconds", "p10_s", "p90_s", "calls", "replays", "sm_mhz"]
PRODUCTS = [(4096, 6144), (4096, 28672), (8192, 10240), (14336, 4096)]  # 8B: qkv, gate and up; 70B: qkv; 8B: down
RANKS = [16, 64]  # narrower ones than 16 would be padded
TOKENS = [1, 8, 32, 128, 512, 2048]
ADAPTERS = [1, 4, 16, 64, 256]
ROWS = 16  # tokens of one block: the smallest tile of the matrix units
DEPTH = 128  # of the input at once
SHAPES = [(2, 128), (8, 128), (8, 256), (24, 256)]  # blocks a multiprocessor of the first kernel; columns of a block of the second


@triton.jit(do_not_specialize=["per_adapter", "tokens", "depth", "steps"])
def _shrink(x_ptr, a_ptr, h_ptr, per_adapter, tokens, depth, steps, ROWS: tl.constexpr, RANK: tl.constexpr, DEPTH: tl.constexpr):
    adapter, part, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    own = block * ROWS + tl.arange(0, ROWS)
    row = adapter * per_adapter + own
    live = (own < per_adapter) & (row < tokens)
    ranks, k = tl.arange(0, RANK), part * steps * DEPTH + tl.arange(0, DEPTH)
    sums = tl.zeros((ROWS, RANK), tl.float32)
    for _ in range(steps):
        x = tl.load(x_ptr + row[:, None] * depth + k[None, :], mask=live[:, None] & (k < depth)[None, :], other=0.0)
        a = tl.load(a_ptr + (adapter.to(tl.int64) * RANK + ranks[None, :]) * depth + k[:, None], mask=(k < depth)[:, None], other=0.0)
        sums += tl.dot(x, a)
        k += DEPTH
    tl.store(h_ptr + (part.to(tl.int64) * tokens + row[:, None]) * RANK + ranks[None, :], sums, mask=live[:, None])


@triton.jit(do_not_specialize=["per_adapter", "tokens", "width", "parts"])
def _expand(h_ptr, b_ptr, out_ptr, per_adapter, tokens, width, parts, ROWS: tl.constexpr, RANK: tl.constexpr, COLUMNS: tl.constexpr):
    adapter, tile, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    own = block * ROWS + tl.arange(0, ROWS)
    row = adapter * per_adapter + own
    live = (own < per_adapter) & (row < tokens)
    ranks, n = tl.arange(0, RANK), tile * COLUMNS + tl.arange(0, COLUMNS)
    h = tl.zeros((ROWS, RANK), tl.float32)
    for part in range(parts):
        h += tl.load(h_ptr + (tl.cast(part, tl.int64) * tokens + row[:, None]) * RANK + ranks[None, :], mask=live[:, None], other=0.0)
    b = tl.load(b_ptr + (adapter.to(tl.int64) * width + n[None, :]) * RANK + ranks[:, None], mask=(n < width)[None, :], other=0.0)
    target = out_ptr + row[:, None].to(tl.int64) * width + n[None, :]
    mask = live[:, None] & (n < width)[None, :]
    result = tl.dot(h.to(b.dtype), b) + tl.load(target, mask=mask, other=0.0).to(tl.float32)
    tl.store(target, result.to(b.dtype), mask=mask)


def update(x, a, b, out, buffer, multiprocessors, shape=SHAPES[0]):
    """x: tokens x input; a: adapters x rank x input; b: adapters x output x rank; tokens sorted by adapter."""
    tokens, depth = x.shape
    adapters, rank, _ = a.shape
    width = b.shape[1]
    per_adapter = -(-tokens // adapters)
    blocks = -(-per_adapter // ROWS)
    pieces = -(-depth // DEPTH)
    fill, columns = shape
    parts = max(1, min(pieces, multiprocessors * fill // (adapters * blocks)))
    steps = -(-pieces // parts)
    parts = -(-pieces // steps)
    _shrink[(adapters, parts, blocks)](x, a, buffer, per_adapter, tokens, depth, steps, ROWS=ROWS, RANK=rank, DEPTH=DEPTH, num_warps=4)
    _expand[(adapters, -(-width // columns), blocks)](buffer, b, out, per_adapter, tokens, width, parts, ROWS=ROWS, RANK=rank, COLUMNS=columns, num_warps=4)


def check(lab, buffer):
    x, a, b = lab.activation((96, 4096)), lab.weights.cut(0, (4, 16, 4096)), lab.weights.cut(1, (4, 6144, 16))
    out = torch.zeros(96, 6144, device="cuda", dtype=torch.bfloat16)
    update(x, a, b, out, buffer, lab.timer.multiprocessors)
    wanted = torch.cat([x[i * 24:(i + 1) * 24].float() @ a[i].float().T @ b[i].float().T for i in range(4)])
    error = reference.relative_error(out, wanted)
    if error > 0.02:
        raise RuntimeError(f"the update is off by {error}")


def plan():
    """Coarse to fine, so that a truncated run has every product."""
    rows = [dict(tokens=t, adapters=a, rank=r, input=k, output=n)
            for t in TOKENS for a in ADAPTERS for r in RANKS for k, n in PRODUCTS if a <= t]
    level = {value: i for axis in (TOKENS, ADAPTERS) for i, value in enumerate(axis)}
    return sorted(rows, key=lambda row: (level[row["tokens"]] % 2 + level[row["adapters"]] % 2, row["rank"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=240)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    lab = Lab(weights_gib=24, stream_gib=2, scratch_gib=2, fp8_gib=0)
    buffer = torch.zeros(64 * 2**20, device="cuda")
    check(lab, buffer)
    (arguments.out / "lora_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, triton=triton.__version__, cuda=torch.version.cuda,
        graph_intercept_s=lab.timer.intercept)))
    rows, done = plan(), 0
    with open(arguments.out / "lora.csv", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for row in rows:
            if time.perf_counter() - started > arguments.budget_s:
                break
            adapters, rank, depth, width = row["adapters"], row["rank"], row["input"], row["output"]
            size = adapters * rank * (depth + width)
            x, out = lab.activation((row["tokens"], depth)), lab.output((row["tokens"], width))

            def case(shape):
                def call(i):
                    both = lab.weights.cut(i, (size,))
                    a, b = both[:adapters * rank * depth], both[adapters * rank * depth:]
                    update(x, a.view(adapters, rank, depth), b.view(adapters, width, rank), out, buffer, lab.timer.multiprocessors, shape)

                return Case(call, lab.weights.copies(size))

            try:
                timing, (fill, columns) = min(((lab.timer.measure(case(shape)), shape) for shape in SHAPES), key=lambda found: found[0].seconds)
            except Exception as error:  # one shape that does not work must not end the sweep
                print(row, type(error).__name__, error, flush=True)
                continue
            table.writerow(dict(row, fill=fill, columns=columns, seconds=f"{timing.seconds:.6g}", p10_s=f"{timing.p10:.6g}", p90_s=f"{timing.p90:.6g}",
                                calls=timing.calls, replays=timing.replays, sm_mhz=f"{timing.clock / 1e6:.0f}"))
            file.flush()
            done += 1
    print(f"{done} of {len(rows)} rows in {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
