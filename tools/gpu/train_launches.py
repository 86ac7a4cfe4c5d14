"""Measures what it takes to launch the products of a device's experts one by one, and to run them side by side.

    python3 tools/gpu/train_launches.py --out DIR [--budget-s 100]

DIR/train_launches.csv: host seconds of one launch where many follow one another: from Python with and without autograd, from a
loop that is compiled (TorchScript, C++), and by Transformer Engine's grouped linear where it is installed. Tensors are so small
that the device waits for the host. DIR/expert_streams.csv: device seconds of all products of the experts of a layer, forward,
for gradients of inputs and of weights, as one grouped kernel, one after the other, and over four streams as Transformer Engine
does. DIR/rotations.csv: device seconds of a rotation of queries and keys in plain operations, forward and backward.
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

from train_kernels import Table, timed  # noqa: E402

LAUNCHES = ["how", "products", "launch_s", "p10_s", "p90_s"]
STREAMS = ["how", "way", "experts", "rows", "n", "k", "seconds", "p10_s", "p90_s"]
ROTATIONS = ["tokens", "heads", "kv_heads", "head_dim", "way", "seconds", "p10_s", "p90_s"]
REPEATS = 15
SHARED_STREAMS = 4

CPP = """
#include <torch/extension.h>
void products(std::vector<at::Tensor> rows, std::vector<at::Tensor> weights, std::vector<at::Tensor> out) {
  for (size_t i = 0; i < rows.size(); ++i) at::mm_out(out[i], rows[i], weights[i]);
}
"""


@torch.jit.script
def scripted(rows: list[torch.Tensor], weights: list[torch.Tensor], out: list[torch.Tensor]) -> None:
    for i in range(len(rows)):
        torch.mm(rows[i], weights[i], out=out[i])


def plain(rows, weights, out):
    for row, weight, result in zip(rows, weights, out):
        torch.mm(row, weight, out=result)


def with_autograd(rows, weights, out):
    del out
    return [row @ weight for row, weight in zip(rows, weights)]


def compiled_loop():
    from torch.utils.cpp_extension import load_inline
    return load_inline(name="expert_products", cpp_sources=CPP, functions=["products"]).products


def grouped_linear(count):
    """Transformer Engine's own, one call for all experts of a device."""
    import transformer_engine.pytorch as te
    layer = te.GroupedLinear(count, 128, 128, bias=False, params_dtype=torch.bfloat16, device="cuda")
    x = torch.randn(16 * count, 128, device="cuda", dtype=torch.bfloat16)
    return lambda *_: layer(x, [16] * count)


def guarded(what, call):
    try:
        call()
    except Exception as error:  # one case that does not work must not end the sweep
        print(what, type(error).__name__, str(error)[:300], flush=True)


def host_seconds(call):
    for _ in range(3):
        call()
    spans = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        spans.append(time.perf_counter() - began)
        torch.cuda.synchronize()
    spans.sort()
    return statistics.median(spans), spans[len(spans) // 10], spans[-1 - len(spans) // 10]


def launches(table):
    for count in (8, 16, 64):
        rows = [torch.randn(16, 128, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
        weights = [torch.randn(128, 128, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
        out = [torch.empty(16, 128, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
        trained = [weight.clone().requires_grad_() for weight in weights]
        for how, make, operands in (("python", lambda: plain, weights), ("python_autograd", lambda: with_autograd, trained),
                                    ("torchscript", lambda: scripted, weights), ("cpp", compiled_loop, weights),
                                    ("transformer_engine", lambda n=count: grouped_linear(n), weights)):
            def measure():
                call = make()
                seconds = host_seconds(lambda: call(rows, operands, out))
                median, low, high = (span / count for span in seconds)
                table.add(dict(how=how, products=count, launch_s=f"{median:.4g}", p10_s=f"{low:.4g}", p90_s=f"{high:.4g}"))
            guarded((how, count), measure)


class Products:
    """Products of all experts of a layer: of so many rows each, from k values to n."""

    def __init__(self, experts, rows, n, k):
        self.inputs = torch.randn(experts, rows, k, device="cuda", dtype=torch.bfloat16)
        self.weights = torch.randn(experts, k, n, device="cuda", dtype=torch.bfloat16)
        self.gradient = torch.randn(experts, rows, n, device="cuda", dtype=torch.bfloat16)
        self.streams = [torch.cuda.Stream() for _ in range(SHARED_STREAMS)]
        self.ends = torch.arange(rows, rows * (experts + 1), rows, device="cuda", dtype=torch.int32)

    def operands(self, way):
        if way == "forward":
            return self.inputs, self.weights
        if way == "inputs":
            return self.gradient, self.weights.transpose(1, 2)
        return self.inputs.transpose(1, 2), self.gradient

    def one_by_one(self, way):
        left, right = self.operands(way)
        out = torch.empty(left.shape[0], left.shape[1], right.shape[2], device="cuda", dtype=torch.bfloat16)

        def call():
            for i in range(left.shape[0]):
                torch.mm(left[i], right[i], out=out[i])
        return call

    def side_by_side(self, way):
        left, right = self.operands(way)
        out = torch.empty(left.shape[0], left.shape[1], right.shape[2], device="cuda", dtype=torch.bfloat16)

        def call():
            here = torch.cuda.current_stream()
            for stream in self.streams:
                stream.wait_stream(here)
            for i in range(left.shape[0]):
                with torch.cuda.stream(self.streams[i % SHARED_STREAMS]):
                    torch.mm(left[i], right[i], out=out[i])
            for stream in self.streams:
                here.wait_stream(stream)
        return call

    def grouped(self, way):
        left, right = self.operands(way)
        if way == "weights":
            flat = self.inputs.reshape(-1, self.inputs.shape[2])
            return lambda: torch._grouped_mm(flat.t(), self.gradient.reshape(-1, self.gradient.shape[2]), offs=self.ends)
        return lambda: torch._grouped_mm(left.reshape(-1, left.shape[2]), right, offs=self.ends)


def streams(table, end):
    for experts, rows, n, k in ((16, 1024, 5760, 2880), (16, 1024, 2880, 2880), (8, 4096, 1536, 2048), (8, 4096, 2048, 768),
                                (4, 4096, 3072, 4096), (32, 512, 4096, 7168), (64, 128, 4096, 4096)):
        products = Products(experts, rows, n, k)
        for way in ("forward", "inputs", "weights"):
            for how in ("grouped", "one_by_one", "side_by_side"):
                if time.perf_counter() > end:
                    return

                def measure():
                    seconds, low, high = timed(getattr(products, how)(way))
                    table.add(dict(how=how, way=way, experts=experts, rows=rows, n=n, k=k,
                                   seconds=f"{seconds:.6g}", p10_s=f"{low:.6g}", p90_s=f"{high:.6g}"))
                guarded((how, way, experts, n, k), measure)


def rotated(x, angles):
    """Both halves of each head, as slices, products, sums and a joined copy."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def rotations(table, end):
    for tokens, heads, kv_heads, head_dim in ((4096, 64, 8, 64), (4096, 32, 4, 128), (8192, 32, 8, 128)):
        if time.perf_counter() > end:
            return
        angles = torch.rand(tokens, 1, 1, head_dim, device="cuda")
        pair = [torch.randn(tokens, 1, count, head_dim, device="cuda", dtype=torch.bfloat16, requires_grad=True) for count in (heads, kv_heads)]
        made = [rotated(x, angles) for x in pair]
        gradients = [torch.randn_like(x) for x in made]
        for way, call in (("forward", lambda: [rotated(x, angles) for x in pair]),
                          ("backward", lambda: torch.autograd.grad(made, pair, gradients, retain_graph=True))):
            def measure():
                seconds, low, high = timed(call)
                table.add(dict(tokens=tokens, heads=heads, kv_heads=kv_heads, head_dim=head_dim, way=way,
                               seconds=f"{seconds:.6g}", p10_s=f"{low:.6g}", p90_s=f"{high:.6g}"))
            guarded((way, tokens, heads), measure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=100)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.perf_counter() + arguments.budget_s
    launches(Table(arguments.out / "train_launches.csv", LAUNCHES))
    rotations(Table(arguments.out / "rotations.csv", ROTATIONS), end)
    streams(Table(arguments.out / "expert_streams.csv", STREAMS), end)


if __name__ == "__main__":
    main()
