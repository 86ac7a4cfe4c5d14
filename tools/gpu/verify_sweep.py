"""Measures attention of verification steps on this GPU: a few new tokens a sequence over one KV cache.

    python3 tools/gpu/verify_sweep.py --out DIR [--budget-s 400]

One row a call in DIR/verify_attention.csv, written as it is done; timing as in kernel rows (README.md). `triton:decode` is
the decode kernel of the kernel tables: all query heads of all new tokens that share a KV head are rows of one product, so
each KV byte is read once. Every row sees the whole context; the mask among the last few keys takes no time. `flash` is
FlashAttention-2 as torch has it, one tile a head, without splits of the context.
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

import attention_calls  # noqa: E402
import family_attention  # noqa: E402
from gpu_timer import Case  # noqa: E402
from lab import Lab  # noqa: E402

COLUMNS = ["impl", "batch", "query_len", "context_len", "q_heads", "kv_heads", "head_dim", "kv_dtype",
           "seconds", "p10_s", "p90_s", "calls", "replays", "sm_mhz"]
HEADS = [(8, 1, 128), (32, 8, 128), (40, 8, 128), (64, 8, 128)]  # 70B at TP 8; 8B; 14B; 70B on one device
BATCHES = [1, 4, 16, 64, 256]
CONTEXTS = [512, 2048, 8192, 32768]
QUERIES = [1, 2, 3, 4, 5, 6, 8]
MOST_KV_BYTES = 12 * 2**30  # of one call: its copies must fit the arena several times


def plan():
    """Coarse to fine: ends of the query lengths first, so that a truncated run has every shape."""
    shapes = [(b, c, h) for h in HEADS for b in BATCHES for c in CONTEXTS
              if 4 * b * c * h[1] * h[2] <= MOST_KV_BYTES]
    for queries in sorted(QUERIES, key=[1, 5, 3, 8, 2, 4, 6].index):
        for batch, context, (q_heads, kv_heads, head_dim) in shapes:
            for impl in ("triton:decode", "flash"):
                yield dict(impl=impl, batch=batch, query_len=queries, context_len=context, q_heads=q_heads,
                           kv_heads=kv_heads, head_dim=head_dim, kv_dtype="bf16")


def case_of(lab, row):
    if row["impl"] == "triton:decode":
        # To the kernel, new tokens are more heads of the same KV head.
        return family_attention.decode_triton(lab, dict(row, q_heads=row["q_heads"] * row["query_len"]))
    q, (kv, copies) = family_attention._query(lab, row), family_attention._key_value(lab, row)
    return Case(lambda i: attention_calls.flash(q, *kv(i), True), copies)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=400)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    lab = Lab(weights_gib=1, stream_gib=48, scratch_gib=8, fp8_gib=0)
    (arguments.out / "verify_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda,
        graph_intercept_s=lab.timer.intercept)))
    rows = list(plan())
    done = 0
    with open(arguments.out / "verify_attention.csv", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for row in rows:
            if time.perf_counter() - started > arguments.budget_s:
                break
            try:
                timing = lab.timer.measure(case_of(lab, row))
            except Exception as error:  # one shape that a kernel does not take must not end the sweep
                print({k: row[k] for k in COLUMNS[:7]}, type(error).__name__, error, flush=True)
                continue
            table.writerow(dict(row, seconds=f"{timing.seconds:.6g}", p10_s=f"{timing.p10:.6g}",
                                p90_s=f"{timing.p90:.6g}", calls=timing.calls, replays=timing.replays,
                                sm_mhz=f"{timing.clock / 1e6:.0f}"))
            file.flush()
            done += 1
    print(f"{done} of {len(rows)} rows in {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
