"""Measures what this GPU draws, and at which clock, under unbroken load: at rest, in arithmetic of some blocks, in kernels, in whole steps.

    python3 tools/gpu/power_steps.py --out DIR [--budget-s 330]

DIR/power_steps.csv: one row a load, repeated without a pause for about two seconds: seconds of one call, mean power of the board by its
energy counter, and mean clock of the multiprocessors meanwhile. `phase` is rest_without_process, rest (this process has the GPU), spin
(`blocks` blocks of additions in registers, no memory), copy, product (`m` x `n` x `k`), decode or prefill (a step of a model with random
weights, made of the kernels of the tables) or paused (a step, and `rest_s` seconds without work after each). Nothing on the card is set.
"""
import argparse
import concurrent.futures
import csv
import ctypes
import math
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import attention_calls  # noqa: E402
from environment import EnergyMeter  # noqa: E402
from lab import Lab  # noqa: E402
from model_step import ModelStep, Weights  # noqa: E402
from step_plan import MODELS, ModelShape, StepShape  # noqa: E402

SHAPE = ["layers", "hidden", "q_heads", "kv_heads", "head_dim", "inter", "vocabulary"]
COLUMNS = ["phase", "format", "blocks", "warps", "bytes", "m", "n", "k", "model", "batch", "query_len", "context_len", "rest_s", "seconds",
           "power_w", "sm_mhz", "memory_mhz", "celsius", *SHAPE]
SETTLE_S, WINDOW_S = 0.7, 1.0  # the clock settles within 0.2 s; the counter moves ten times a second
SPIN_BLOCKS = [1, 2, 4, 8, 16, 33, 66, 99, 132]
PRODUCT_ROWS = [1, 16, 64, 128, 192, 256, 512, 1024, 4096]
PRODUCT = (8192, 8192)
DECODES = {"llama-3.2-1b": [1, 8, 64, 256], "llama-3.2-3b": [1, 64], "llama-3.1-8b": [1, 8, 32, 64, 96, 128, 192, 256, 512],
           "qwen3-14b-like": [1, 32, 64, 128, 192, 256]}
CONTEXTS = {"llama-3.1-8b": [256, 1024, 4096]}
PROMPTS = {"llama-3.2-1b": [1024, 8192], "llama-3.1-8b": [256, 1024, 2048, 4096, 8192], "qwen3-14b-like": [2048, 8192]}
PAUSES_S = [1e-3, 5e-3, 20e-3]


@triton.jit(do_not_specialize=["rounds"])
def _spin(out_ptr, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = at.to(tl.float32)
    for _ in range(rounds):
        x = x * 0.999 + 0.5
    tl.store(out_ptr + at, x)


class Board:
    """Power, clocks and temperature, only read."""

    def __init__(self):
        self.meter = EnergyMeter()

    def _read(self, function, kind):
        value = ctypes.c_uint()
        getattr(self.meter.library, function)(self.meter.device, kind, ctypes.byref(value))
        return value.value

    def _state(self):
        return self._read("nvmlDeviceGetClockInfo", 1), self._read("nvmlDeviceGetClockInfo", 2), self._read("nvmlDeviceGetTemperature", 0)

    def watched(self, delay, window):
        """Mean power, and mean clocks and temperature, of a window that begins so much later."""
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            watts, states, end = thread.submit(self.meter.mean_watts, delay, window), [], time.monotonic() + delay + window
            while time.monotonic() < end:
                time.sleep(0.02)
                if time.monotonic() > end - window:
                    states.append(self._state())
            sm, memory, celsius = (statistics.mean(column) for column in zip(*states))
            return dict(power_w=f"{watts.result():.1f}", sm_mhz=f"{sm:.0f}", memory_mhz=f"{memory:.0f}", celsius=f"{celsius:.0f}")


class Loads:
    """Captured loads, repeated without a pause while the board is watched."""

    def __init__(self, board, write):
        self.board, self.write = board, write
        self.lab = Lab(weights_gib=30, stream_gib=64, scratch_gib=1, fp8_gib=6)

    def row(self, call, calls=1, pause=0.0, **cells):
        """`call(i)`, i below `calls`, is one call; all of them are captured together."""
        try:
            call(0)  # compilation, plans
            graph = self.lab.timer.capture(call, calls)
            once = self.lab.timer.replay_times(graph, 3, warm=True)[0][-1]
            self.write(dict(cells, **self._unbroken(graph, max(once, 1e-6), calls, pause)))
        except Exception as error:  # a load that does not work must not end the sweep
            torch.cuda.synchronize()
            print(cells, type(error).__name__, str(error)[:300], flush=True)

    def _unbroken(self, graph, once, calls, pause):
        queued = max(1, math.ceil(0.05 / once)) if pause == 0 else 1
        marks, began = [], time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            seen = thread.submit(self.board.watched, SETTLE_S, WINDOW_S)
            behind = None
            while not seen.done():
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                for _ in range(queued):
                    graph.replay()
                end.record()
                if time.perf_counter() - began > SETTLE_S:
                    marks.append((start, end))
                if pause > 0:
                    end.synchronize()
                    time.sleep(pause)
                elif behind is not None:
                    behind.synchronize()  # the host stays one round ahead, not more
                behind = end
            torch.cuda.synchronize()
        seconds = statistics.median(start.elapsed_time(end) * 1e-3 for start, end in marks) / queued / calls
        return dict(seen.result(), seconds=f"{seconds:.6g}")

    def spins(self):
        out = torch.empty(1 << 20, device="cuda")
        for warps in (4, 32):
            for blocks in SPIN_BLOCKS if warps == 4 else SPIN_BLOCKS[-1:]:
                self.row(lambda i: _spin[(blocks,)](out, 1_000_000, BLOCK=32 * warps, num_warps=warps), phase="spin", blocks=blocks, warps=warps)

    def kernels(self):
        lab = self.lab
        for size, copies in ((1 << 20, 1), (1 << 27, 8)):  # elements; the first stays in the cache
            self.row(lambda i: lab.scratch.data[:size].copy_(lab.weights.data[i % copies * size:][:size]), 64, phase="copy", bytes=2 * size)
        n, k = PRODUCT
        for m in PRODUCT_ROWS:
            inputs, out = lab.stream.cut(0, (m, k)), lab.scratch.cut(0, (m, n))
            self.row(lambda i: torch.mm(inputs, lab.weights.cut(i, (n, k)).t(), out=out), 32, phase="product", format="bf16", m=m, n=n, k=k)
        one = torch.ones((), device="cuda")
        for m in PRODUCT_ROWS[1:]:
            inputs = lab.fp8.cut(-1, (m, k))
            self.row(lambda i: torch._scaled_mm(inputs, lab.fp8.cut(i, (n, k)).t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True), 32,
                     phase="product", format="fp8", m=m, n=n, k=k)

    def steps(self, deadline):
        attention = attention_calls.step_attention({})
        shapes = {model.name: model for model in [*MODELS, ModelShape("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256)]}
        for name in ("llama-3.1-8b", "llama-3.2-1b", "llama-3.2-3b", "qwen3-14b-like"):
            model = shapes[name]
            weights = Weights(model, self.lab.weights)

            def row(shape, **cells):
                room = self.lab.stream.data.numel() * 2
                if time.perf_counter() > deadline or shape.slots() * model.kv_bytes_per_token() > room:
                    return
                made = []

                def run(i):
                    if not made:
                        made.append(ModelStep(model, weights, shape, self.lab, attention))
                    made[0].run()
                self.row(run, model=name, format="bf16", **{column: getattr(model, column) for column in SHAPE}, **cells)

            for context in CONTEXTS.get(name, [1024]):
                for batch in DECODES[name]:
                    row(StepShape(decodes=batch, context=context), phase="decode", batch=batch, query_len=1, context_len=context)
            for length in PROMPTS.get(name, []):
                row(StepShape(chunk=length, chunk_context=length), phase="prefill", batch=1, query_len=length, context_len=length)
            for pause in PAUSES_S if name == "llama-3.1-8b" else []:
                row(StepShape(decodes=1, context=1024), phase="paused", batch=1, query_len=1, context_len=1024, rest_s=pause, pause=pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=330)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    deadline = time.perf_counter() + arguments.budget_s - 10
    with open(arguments.out / "power_steps.csv", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        table.writeheader()

        def write(row):
            table.writerow(row)
            file.flush()
            print({name: value for name, value in row.items() if value != ""}, flush=True)

        board = Board()
        write(dict(phase="rest_without_process", **board.watched(1.0, 4.0)))
        torch.set_grad_enabled(False)
        torch.zeros(1, device="cuda")
        write(dict(phase="rest", **board.watched(3.0, 4.0)))
        loads = Loads(board, write)
        loads.spins()
        loads.kernels()
        loads.steps(deadline)


if __name__ == "__main__":
    main()
