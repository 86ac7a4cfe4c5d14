"""Measures what training steps make of products on this GPU: in pieces, on fewer multiprocessors, and kernel by kernel in a step.

    python3 tools/gpu/train_pieces.py --out DIR [--budget-s 220] [--parts steps,pieces,fewer]

DIR/train_pieces.csv: one product of m x n x k, whole or in pieces of its rows, on one stream or on three in turn (as a library
does that multiplies each piece once it has arrived), and with some multiprocessors left to others. DIR/train_step_kernels.csv:
the profiler's list of kernels of compiled steps in 16 bits and in fp8, under unbroken load.
"""
import argparse
import gc
import os
import pathlib
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from fp8_linear import E4M3, product, to_fp8  # noqa: E402
from train_kernels import Table, TimedRows  # noqa: E402
from train_plan import MODELS, TrainStep  # noqa: E402
from train_sweep import Trainer  # noqa: E402

COLUMNS = ["format", "m", "n", "k", "pieces", "streams", "left_to_others", "seconds", "p10_s", "p90_s"]
# Rows and products of devices that share layers: a 405B model over 8 of them, a 70B model over 4.
SHAPES = [(4096, 13312, 16384), (4096, 2304, 16384), (4096, 6656, 16384), (4096, 16384, 6656), (8192, 14336, 8192), (4096, 14336, 8192),
          (4096, 2560, 8192), (8192, 2560, 8192), (4096, 8192, 7168), (2048, 7168, 8192)]


class Products:
    """One product, whole and in pieces."""

    def __init__(self, narrow, m, n, k):
        self.narrow = narrow
        self.x, self.w = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k)))
        if narrow:
            self.x, self.w = self.x.to(E4M3), self.w.to(E4M3)
        self.one = torch.ones((), device="cuda")
        self.streams = [torch.cuda.Stream() for _ in range(3)]

    def multiply(self, x):
        return product(x, self.one, self.w, self.one, True) if self.narrow else x @ self.w.t()

    def run(self, pieces, streams):
        parts = self.x.chunk(pieces)
        if streams == 1:
            for part in parts:
                self.multiply(part)
            return
        here = torch.cuda.current_stream()
        for stream in self.streams:
            stream.wait_stream(here)
        for i, part in enumerate(parts):
            with torch.cuda.stream(self.streams[i % streams]):
                self.multiply(part)
        for stream in self.streams:
            here.wait_stream(stream)


class Sweep(TimedRows):
    def __init__(self, arguments):
        super().__init__(arguments, "train_pieces.csv", COLUMNS)

    def each_product(self):
        for m, n, k in SHAPES:
            for narrow in (True, False):
                yield Products(narrow, m, n, k), dict(format="fp8" if narrow else "bf16", m=m, n=n, k=k)

    def pieces(self):
        for products, cells in self.each_product():
            for pieces, streams in ((1, 1), (2, 1), (4, 1), (8, 1), (2, 3), (4, 3), (8, 3)):
                self.row(lambda: products.run(pieces, streams), pieces=pieces, streams=streams, left_to_others=0, **cells)

    def fewer(self):
        """cuBLAS may be told to leave multiprocessors to others."""
        try:
            for products, cells in self.each_product():
                for left in (0, 8, 16, 24, 32):
                    torch._C._set_sm_carveout_experimental(left or None)
                    self.row(lambda: products.run(1, 1), pieces=1, streams=1, left_to_others=left, **cells)
        finally:
            torch._C._set_sm_carveout_experimental(None)

    def steps(self):
        table = Table(self.out / "train_step_kernels.csv", ["model", "mode", "micro_batch", "sequence", "kernel", "calls", "seconds"])
        for name, micro_batch, sequence in (("llama-8b-of-4", 1, 4096), ("llama-70b-tp8-of-8", 1, 8192), ("llama-1b", 2, 4096), ("llama-3b", 1, 4096)):
            for mode in ("bf16", "fp8"):
                if time.perf_counter() > self.end:
                    return
                gc.collect()
                torch.cuda.empty_cache()
                trainer = Trainer(name, sequence)
                if mode == "fp8":
                    to_fp8(trainer.model)
                torch._dynamo.reset()
                try:
                    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
                        self.profile(trainer, TrainStep(name, micro_batch, sequence, mode="compiled"), table, mode)
                except Exception as error:  # one step that does not work must not end the sweep
                    print(name, mode, type(error).__name__, str(error)[:300], flush=True)
                del trainer

    def profile(self, trainer, step, table, mode):
        """Seconds of one step, by kernel: the mean of those that `measure` runs, less what compiles."""
        from torch.profiler import ProfilerActivity, profile
        model, shape = trainer.model, MODELS[step.model]
        for layer in model.layers:
            layer.forward = torch.compile(type(layer).forward.__get__(layer), dynamic=False)
        tokens, targets = (torch.randint(0, shape.vocabulary, (step.micro_batch, step.sequence), device="cuda") for _ in range(2))

        def steps(count):
            for _ in range(count):
                model(tokens, targets).backward()
                trainer.optimizer.step()
                trainer.optimizer.zero_grad(set_to_none=False)
            torch.cuda.synchronize()

        steps(8)
        count = 6
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            steps(count)
        for event in found.key_averages():
            seconds = getattr(event, "self_device_time_total", 0) / 1e6
            if seconds > 0:
                table.add(dict(model=step.model, mode=mode, micro_batch=step.micro_batch, sequence=step.sequence, kernel=event.key[:160],
                               calls=f"{event.count / count:g}", seconds=f"{seconds / count:.6g}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=220)
    parser.add_argument("--parts", default="steps,pieces,fewer")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    sweep = Sweep(arguments)
    for part in arguments.parts.split(","):
        getattr(sweep, part)()
        print(f"{part} done at {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
