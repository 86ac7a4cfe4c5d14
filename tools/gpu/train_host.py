"""Measures what the host takes to launch a layer that trains, and what its unfused passes take on this GPU.

    python3 tools/gpu/train_host.py --out DIR [--budget-s 200] [--parts host,passes,steps,fp8]

DIR/train_host.csv: one row a kind of layer, kernels launched and host seconds of a layer, forward and backward. Tensors are so small
that the device waits for the host. DIR/train_passes.csv: device seconds of an expert's activation and bias, forward and
backward, written as several operations or compiled, at the sizes that training has. DIR/mixture_steps.csv: wall and device
seconds of several mixture layers in a row at those sizes, with products of all experts in one kernel or one by one.
DIR/fp8_kernels.csv: the profiler's list of the kernels of compiled layers in 16 bits and in fp8.
"""
import argparse
import gc
import json
import os
import pathlib
import statistics
import sys
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from fp8_linear import to_fp8  # noqa: E402
from mixture_layer import Mixture  # noqa: E402
from train_kernels import Table, timed  # noqa: E402
from train_model import Layer  # noqa: E402
from train_plan import TrainModel  # noqa: E402

HOST = ["layer", "mode", "experts", "tokens", "way", "kernels", "copies", "host_s", "p10_s", "p90_s"]
PASSES = ["what", "mode", "rows", "width", "experts", "way", "seconds", "p10_s", "p90_s"]
STEPS = ["layer", "experts", "hidden", "inter", "rows", "way", "layers", "kernels", "device_s", "wall_s"]
LAYERS, REPEATS = 4, 15
LIMIT = 7.0


def swiglu(x):
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def clamped_geglu(x):
    """Both halves are bounded before a gate with an offset: clamps and a joined copy, then the gate."""
    gate, up = x.chunk(2, -1)
    joined = torch.cat((gate.clamp(max=LIMIT), up.clamp(min=-LIMIT, max=LIMIT)), -1)
    gate, up = joined.chunk(2, -1)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


def biased(rows, bias, weights, counts):
    """Adds each expert's bias to its rows, weighed as the rows are, expert by expert."""
    parts = zip(rows.split(counts), bias, weights.split(counts))
    return torch.cat([part + own * weight for part, own, weight in parts])


class OneByOne(Mixture):
    """The same mixture with one product an expert, as libraries without a grouped kernel launch them."""

    def products(self, rows, ends):
        counts = [rows.shape[0] // self.experts] * self.experts
        up = torch.cat([part @ weight for part, weight in zip(rows.split(counts), self.up)])
        return torch.cat([part @ weight for part, weight in zip(swiglu(up).split(counts), self.down)])


class Biased(Mixture):
    """Grouped products, bounded gates and a bias an expert."""

    def __init__(self, hidden, inter, experts, top_k):
        super().__init__(hidden, inter, experts, top_k)
        self.bias = nn.Parameter(torch.zeros(experts, hidden, device="cuda", dtype=torch.bfloat16))

    def products(self, rows, ends):
        counts = [rows.shape[0] // self.experts] * self.experts
        down = torch._grouped_mm(clamped_geglu(torch._grouped_mm(rows, self.up, offs=ends)), self.down, offs=ends)
        weights = torch.ones(rows.shape[0], 1, device="cuda", dtype=rows.dtype)
        return biased(down, self.bias, weights, counts)


def kernels_of(call):
    """Kernels, and copies and fills, that a call launches."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    kernels = copies = 0
    for event in found.key_averages():
        if getattr(event, "self_device_time_total", 0) <= 0:
            continue
        if event.key.startswith(("Memcpy", "Memset")):
            copies += event.count
        else:
            kernels += event.count
    return kernels, copies


def middle(values):
    values = sorted(values)
    return statistics.median(values), values[len(values) // 10], values[-1 - len(values) // 10]


class Host:
    """Host seconds of a stack of layers whose device work is next to nothing."""

    def __init__(self, table):
        self.table = table

    def row(self, name, mode, experts, layers, x, arguments=()):
        def forward():
            y = x
            for layer in layers:
                y = layer(y, *arguments)
            return y

        gradient = torch.ones_like(x)
        for _ in range(3):
            forward().backward(gradient)
        held = []
        counts = {"forward": kernels_of(lambda: held.append(forward())), "backward": kernels_of(lambda: held.pop().backward(gradient))}
        spans = {"forward": [], "backward": []}
        for _ in range(REPEATS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            y = forward()
            torch.cuda.synchronize()
            between = time.perf_counter()
            y.backward(gradient)
            torch.cuda.synchronize()
            spans["forward"].append((between - began) / len(layers))
            spans["backward"].append((time.perf_counter() - between) / len(layers))
        for way, times in spans.items():
            median, low, high = middle(times)
            kernels, copies = counts[way]
            self.table.add(dict(layer=name, mode=mode, experts=experts, tokens=x.shape[-2] * (x.shape[0] if x.dim() == 3 else 1), way=way,
                                kernels=f"{kernels / len(layers):.4g}", copies=f"{copies / len(layers):.4g}",
                                host_s=f"{median:.6g}", p10_s=f"{low:.6g}", p90_s=f"{high:.6g}"))

    def dense(self):
        for name, gated in (("gated", True), ("plain", False)):
            shape = TrainModel(name, LAYERS, 512, 8, 4, 64, 1024, 1000, gated)
            cos = torch.ones(128, 32, device="cuda", dtype=torch.bfloat16)
            for mode in ("eager", "compiled", "compiled_fp8"):
                with torch.device("cuda"):
                    layers = [Layer(shape).to(torch.bfloat16) for _ in range(LAYERS)]
                if mode == "compiled_fp8":
                    to_fp8(types.SimpleNamespace(layers=layers))
                torch._dynamo.reset()
                if mode != "eager":
                    for layer in layers:
                        layer.forward = torch.compile(type(layer).forward.__get__(layer), dynamic=False)
                x = torch.randn(1, 128, 512, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                self.row("dense_" + name, mode, 0, layers, x, (cos, cos))

    def mixtures(self):
        for kind in (Mixture, OneByOne, Biased):
            for experts in (4, 8, 16, 64):
                layers = [kind(256, 128, experts, min(4, experts)) for _ in range(LAYERS)]
                x = torch.randn(256, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                self.row({Mixture: "grouped", OneByOne: "one_by_one", Biased: "biased"}[kind], "eager", experts, layers, x)


def guarded(what, call):
    try:
        call()
    except Exception as error:  # one case that does not work must not end the sweep
        print(what, type(error).__name__, str(error)[:300], flush=True)
    gc.collect()
    torch.cuda.empty_cache()


def passes(table, end):
    """Device seconds of activations and biases of experts, forward and backward."""
    for rows, width, experts in ((16384, 2880, 16), (32768, 768, 8), (16384, 1536, 4), (32768, 2048, 4), (8192, 14336, 8), (4096, 2880, 16)):
        if time.perf_counter() > end:
            return
        x = torch.randn(rows, 2 * width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        out = torch.randn(rows, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        weights = torch.rand(rows, 1, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        bias = torch.randn(experts, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        counts = [rows // experts] * experts
        torch._dynamo.reset()
        cases = [("swiglu", "eager", lambda: swiglu(x), [x]), ("swiglu", "compiled", lambda f=torch.compile(swiglu, dynamic=False): f(x), [x]),
                 ("clamped", "eager", lambda: clamped_geglu(x), [x]),
                 ("clamped", "compiled", lambda f=torch.compile(clamped_geglu, dynamic=False): f(x), [x]),
                 ("weighed", "eager", lambda: out * weights, [out, weights]),
                 ("biased", "eager", lambda: biased(out, bias, weights, counts), [out, bias, weights])]
        for what, mode, run, inputs in cases:
            def measure():
                result = run()
                gradient = torch.randn_like(result)
                calls = {"forward": run, "backward": lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True)}
                for way, call in calls.items():
                    seconds, low, high = timed(call)
                    table.add(dict(what=what, mode=mode, rows=rows, width=width, experts=experts, way=way,
                                   seconds=f"{seconds:.6g}", p10_s=f"{low:.6g}", p90_s=f"{high:.6g}"))
            guarded((what, mode, rows, width), measure)


def steps(table, end):
    """Four mixture layers in a row, forward and backward: does the device wait for the host?"""
    for hidden, inter, experts, top_k, rows in ((2048, 768, 8, 8, 32768), (2880, 2880, 16, 4, 16384), (4096, 1536, 4, 4, 16384), (2048, 768, 16, 8, 8192)):
        for kind in (Mixture, OneByOne, Biased):
            if time.perf_counter() > end:
                return

            def measure():
                layers = [kind(hidden, inter, experts, top_k) for _ in range(LAYERS)]
                x = torch.randn(rows // top_k, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                gradient = torch.ones_like(x)
                cells = dict(layer={Mixture: "grouped", OneByOne: "one_by_one", Biased: "biased"}[kind], experts=experts,
                             hidden=hidden, inter=inter, rows=rows, layers=LAYERS)

                def forward():
                    y = x
                    for layer in layers:
                        y = layer(y)
                    return y

                for _ in range(2):
                    forward().backward(gradient)
                held = []
                for way, call in (("forward", lambda: held.append(forward())), ("backward", lambda: held[-1].backward(gradient, retain_graph=True))):
                    kernels, copies = kernels_of(call)
                    walls = []
                    for _ in range(7):
                        torch.cuda.synchronize()
                        began = time.perf_counter()
                        call()
                        torch.cuda.synchronize()
                        walls.append(time.perf_counter() - began)
                        del held[:-1]
                    with profile(activities=[ProfilerActivity.CUDA]) as found:
                        call()
                        torch.cuda.synchronize()
                    device = sum(getattr(event, "self_device_time_total", 0) for event in found.key_averages()) / 1e6
                    table.add(dict(cells, way=way, kernels=kernels + copies, device_s=f"{device:.6g}", wall_s=f"{statistics.median(walls):.6g}"))
            guarded((hidden, inter, experts, kind.__name__), measure)


def fp8(table):
    """The profiler's list of the kernels of compiled layers in 16 bits and in fp8, forward and backward."""
    for shape, tokens in ((TrainModel("8b", 2, 4096, 32, 8, 128, 14336, 1000), 4096), (TrainModel("8b", 2, 4096, 32, 8, 128, 14336, 1000), 8192),
                          (TrainModel("70b", 1, 8192, 64, 8, 128, 28672, 1000), 4096), (TrainModel("1b", 2, 2048, 32, 8, 64, 8192, 1000), 8192)):
        for precision in ("bf16", "fp8"):
            def measure():
                with torch.device("cuda"):
                    layers = [Layer(shape).to(torch.bfloat16) for _ in range(shape.layers)]
                if precision == "fp8":
                    to_fp8(types.SimpleNamespace(layers=layers))
                torch._dynamo.reset()
                for layer in layers:
                    layer.forward = torch.compile(type(layer).forward.__get__(layer), dynamic=False)
                cos = torch.ones(tokens, shape.head_dim // 2, device="cuda", dtype=torch.bfloat16)
                x = torch.randn(1, tokens, shape.hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                gradient = torch.randn_like(x)

                def forward():
                    y = x
                    for layer in layers:
                        y = layer(y, cos, cos)
                    return y

                for _ in range(3):
                    forward().backward(gradient)
                held = []
                for way, call in (("forward", lambda: held.append(forward())), ("backward", lambda: held.pop().backward(gradient))):
                    torch.cuda.synchronize()
                    with profile(activities=[ProfilerActivity.CUDA]) as found:
                        call()
                        torch.cuda.synchronize()
                    for event in found.key_averages():
                        seconds = getattr(event, "self_device_time_total", 0) / 1e6 / shape.layers
                        if seconds > 0:
                            table.add(dict(model=shape.name, precision=precision, tokens=tokens, way=way, kernel=event.key[:160],
                                           calls=f"{event.count / shape.layers:.4g}", seconds=f"{seconds:.6g}"))
            guarded((shape.name, precision), measure)


def check():
    """A mixture whose products go one by one gives what the grouped one gives."""
    torch.manual_seed(1)
    one, grouped = OneByOne(256, 128, 8, 2), Mixture(256, 128, 8, 2)
    one.load_state_dict(grouped.state_dict())
    x = torch.randn(512, 256, device="cuda", dtype=torch.bfloat16)
    error = ((one(x) - grouped(x)).norm() / grouped(x).norm()).item()
    print(f"one by one against grouped: {error:.4f}", flush=True)
    if not error < 0.02:
        raise RuntimeError("a mixture is wrong")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=200)
    parser.add_argument("--parts", default="host,passes,steps,fp8")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    end = started + arguments.budget_s
    (arguments.out / "train_host_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda, cores=os.cpu_count())))
    check()
    parts = arguments.parts.split(",")
    if "host" in parts:
        host = Host(Table(arguments.out / "train_host.csv", HOST))
        guarded("dense", host.dense)
        guarded("mixtures", host.mixtures)
        print(f"host done at {time.perf_counter() - started:.0f} s", flush=True)
    if "passes" in parts:
        passes(Table(arguments.out / "train_passes.csv", PASSES), end)
        print(f"passes done at {time.perf_counter() - started:.0f} s", flush=True)
    if "fp8" in parts:
        fp8(Table(arguments.out / "fp8_kernels.csv", ["model", "precision", "tokens", "way", "kernel", "calls", "seconds"]))
        print(f"fp8 done at {time.perf_counter() - started:.0f} s", flush=True)
    if "steps" in parts:
        steps(Table(arguments.out / "mixture_steps.csv", STEPS), end)
        print(f"steps done at {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
