"""Measures what training adds to kernels on this GPU: fp8 casts and steps, mixtures forward and backward, attention backward.

    python3 tools/gpu/train_kernels.py --out DIR [--budget-s 220] [--parts mixture,fp8_steps,linear,attention]

DIR/train_kernels.csv has one row a call: kind, sizes, what (forward, backward, cast ...), seconds. DIR/fp8_steps.csv has whole
steps as train_sweep.py writes them, in bf16 and fp8. DIR/mixture_kernels.csv is the profiler's list of one mixture's kernels.
Calls are eager, enqueued behind a spin so that no host time is in them; what fits the L2 may be found there.
"""
import argparse
import csv
import gc
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from fp8_linear import E4M3, E5M2, cast, product, to_fp8, transposed  # noqa: E402
from mixture_layer import Mixture  # noqa: E402
from train_plan import MODELS, TrainStep  # noqa: E402
from train_sweep import COLUMNS as STEP_COLUMNS, Trainer  # noqa: E402

COLUMNS = ["kind", "what", "tokens", "n", "k", "experts", "top_k", "q_heads", "kv_heads", "head_dim", "sequence", "window",
           "seconds", "p10_s", "p90_s"]
REPEATS, WARM_UP, SPIN, REST = 9, 2, 4_000_000, 1.25  # a spin of 2 ms: hundreds of launches


def timed(call):
    """Median, 10th and 90th percentile of device seconds; bursts rest so that the clock stays high."""
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(SPIN)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
        time.sleep(REST * min(0.02, time.perf_counter() - began))
    times.sort()
    return statistics.median(times), times[1], times[-2]


class Table:
    def __init__(self, path, columns):
        self.file = open(path, "w", newline="")
        self.rows = csv.DictWriter(self.file, columns)
        self.rows.writeheader()

    def add(self, row):
        self.rows.writerow(row)
        self.file.flush()


class TimedRows:
    """One row a call, until the time is up."""

    def __init__(self, arguments, name, columns):
        self.out, self.end = arguments.out, time.perf_counter() + arguments.budget_s
        self.table = Table(self.out / name, columns)

    def row(self, call, **cells):
        if time.perf_counter() > self.end:
            return
        try:
            seconds, low, high = timed(call)
        except Exception as error:  # one call that does not work must not end the sweep
            print(cells, type(error).__name__, str(error)[:200], flush=True)
            return
        self.table.add(dict(cells, seconds=f"{seconds:.6g}", p10_s=f"{low:.6g}", p90_s=f"{high:.6g}"))


class Sweep(TimedRows):
    def __init__(self, arguments):
        super().__init__(arguments, "train_kernels.csv", COLUMNS)

    def linear(self):
        """Products of a linear layer forward and backward, and what fp8 adds to them."""
        casting = torch.compile(cast, dynamic=False)
        for n, k in ((6144, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 28672), (2560, 8192), (8192, 3584)):
            for tokens in (4096, 8192, 2048):
                x, w, g = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((tokens, k), (n, k), (tokens, n)))
                cells = dict(tokens=tokens, n=n, k=k)
                main = torch.zeros(n, k, device="cuda")
                self.row(lambda: x @ w.t(), kind="linear_bf16", what="forward", **cells)
                self.row(lambda: g @ w, kind="linear_bf16", what="inputs", **cells)
                self.row(lambda: g.t() @ x, kind="linear_bf16", what="weights", **cells)
                self.row(lambda: torch.mm(g.t(), x, out_dtype=torch.float32, out=main), kind="linear_bf16", what="weights_fp32", **cells)
                self.row(lambda: main.add_(g.t() @ x), kind="linear_bf16", what="weights_added", **cells)
                one = torch.ones((), device="cuda")
                x8, w8, g8 = x.to(E4M3), w.to(E4M3), g.to(E5M2)
                wt, gt, xt = transposed(w8), transposed(g8), transposed(x8)
                self.row(lambda: product(x8, one, w8, one, True), kind="linear_fp8", what="forward", **cells)
                self.row(lambda: product(g8, one, wt, one, False), kind="linear_fp8", what="inputs", **cells)
                self.row(lambda: product(gt, one, xt, one, False), kind="linear_fp8", what="weights", **cells)
                self.row(lambda: product(gt, one, xt, one, True), kind="linear_fp8", what="weights_fast", **cells)
                self.row(lambda: casting(x, E4M3), kind="linear_fp8", what="cast_input", **cells)
                self.row(lambda: casting(w, E4M3), kind="linear_fp8", what="cast_weight", **cells)
                self.row(lambda: casting(g, E5M2), kind="linear_fp8", what="cast_gradient", **cells)
                self.row(lambda: transposed(x8), kind="linear_fp8", what="transpose_input", **cells)
                self.row(lambda: transposed(w8), kind="linear_fp8", what="transpose_weight", **cells)

    def mixture(self):
        """Each part of a mixture, forward and backward, and the whole of it."""
        # hidden, one expert's width, experts of one device, top_k, tokens that reach the device times top_k
        shapes = [(2048, 768, 8, 8, 32768), (2048, 768, 128, 8, 32768), (4096, 1536, 4, 8, 16384), (4096, 1536, 128, 8, 32768),
                  (2880, 2880, 16, 4, 16384), (7168, 2048, 4, 8, 32768), (4096, 14336, 8, 2, 8192), (2048, 1408, 64, 6, 24576),
                  (4096, 1536, 16, 8, 4096), (2048, 768, 16, 8, 8192)]
        listed = Table(self.out / "mixture_kernels.csv", ["hidden", "inter", "experts", "top_k", "rows", "kernel", "calls", "seconds"])
        for hidden, inter, experts, top_k, rows in shapes:
            if time.perf_counter() > self.end:
                return
            layer = Mixture(hidden, inter, experts, min(top_k, experts))
            tokens = rows // layer.top_k
            x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            cells = dict(tokens=tokens, n=inter, k=hidden, experts=experts, top_k=layer.top_k)
            try:
                self.parts_of(layer, x, cells)
                self.kernels_of(layer, x, listed, dict(hidden=hidden, inter=inter, experts=experts, top_k=layer.top_k, rows=rows))
            except Exception as error:  # one shape that does not work must not end the sweep
                print(cells, type(error).__name__, str(error)[:200], flush=True)
            del layer, x
            gc.collect()
            torch.cuda.empty_cache()

    def both_ways(self, kind, run, inputs, cells):
        """Forward of `run`, then its backward into `inputs`."""
        self.row(run, kind=kind, what="forward", **cells)
        result = run()
        gradient = torch.randn_like(result)
        self.row(lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True), kind=kind, what="backward", **cells)

    def parts_of(self, layer, x, cells):
        with torch.no_grad():
            weights, chosen = layer.route(x)
            rows, order, ends = layer.permute(x, chosen)
        self.both_ways("router", lambda: layer.route(x)[0], [x, layer.router], cells)
        self.row(lambda: layer.permute(x.detach(), chosen), kind="sort_and_permute", what="forward", **cells)
        self.both_ways("permute", lambda: x[order // layer.top_k], [x], cells)
        held = rows.detach().requires_grad_()
        self.both_ways("unpermute", lambda: layer.unpermute(held, order, weights, x.shape[0]), [held], cells)
        self.both_ways("experts", lambda: layer.products(held, ends), [held, layer.up, layer.down], cells)
        self.both_ways("mixture", lambda: layer(x), [x, *layer.parameters()], cells)
        wide = torch.randn(rows.shape[0], layer.up.shape[2], device="cuda", dtype=torch.bfloat16)
        self.row(lambda: torch._grouped_mm(rows, layer.up, offs=ends), kind="grouped", what="forward", **cells)
        self.row(lambda: torch._grouped_mm(wide, layer.up.transpose(1, 2), offs=ends), kind="grouped", what="inputs", **cells)
        self.row(lambda: torch._grouped_mm(rows.t(), wide, offs=ends), kind="grouped", what="weights", **cells)

    def kernels_of(self, layer, x, listed, cells):
        from torch.profiler import ProfilerActivity, profile
        gradient = torch.randn_like(x)
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            layer(x).backward(gradient)
            torch.cuda.synchronize()
        for event in found.key_averages():
            seconds = getattr(event, "self_device_time_total", 0) / 1e6
            if seconds > 0:
                listed.add(dict(cells, kernel=event.key[:120], calls=event.count, seconds=f"{seconds:.6g}"))

    def attention(self):
        """Forward and backward of causal attention by head size, kernel and length."""
        backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
        for name, backend in backends.items():
            for head_dim, q_heads, kv_heads in ((64, 64, 8), (128, 32, 8), (128, 32, 32), (96, 32, 32), (192, 16, 16), (256, 16, 4), (80, 32, 32)):
                for batch, sequence in ((1, 4096), (1, 8192), (4, 2048), (1, 16384)):
                    if time.perf_counter() > self.end:
                        return
                    q, k, v = (torch.randn(batch, heads, sequence, head_dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                               for heads in (q_heads, kv_heads, kv_heads))

                    def attend():
                        with sdpa_kernel([backend]):
                            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q_heads != kv_heads)

                    cells = dict(tokens=batch * sequence, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim, sequence=sequence, window=0)
                    try:
                        self.both_ways("attention_" + name, attend, [q, k, v], cells)
                    except Exception as error:  # a head size that a kernel lacks
                        print(name, cells, type(error).__name__, str(error)[:200], flush=True)

    def fp8_steps(self):
        """Whole steps in bf16 and fp8, compiled, as train_sweep.py measures them."""
        table = Table(self.out / "fp8_steps.csv", STEP_COLUMNS)
        sizes = {"llama-8b-of-4": ((1, 4096), (1, 8192), (4, 2048)), "llama-70b-of-2": ((1, 4096), (1, 8192)),
                 "llama-3b": ((1, 4096), (1, 8192)), "llama-70b-tp8-of-8": ((2, 4096), (1, 8192)), "llama-1b": ((2, 4096),)}
        for name, batches in sizes.items():
            for precision in ("bf16", "fp8"):
                trainer = None
                gc.collect()
                torch.cuda.empty_cache()
                trainer = Trainer(name, max(sequence for _, sequence in batches))
                if precision == "fp8":
                    to_fp8(trainer.model)
                for micro_batch, sequence in batches:
                    if time.perf_counter() > self.end:
                        return
                    step = TrainStep(name, micro_batch, sequence, mode="compiled")
                    torch._dynamo.reset()  # a function that was compiled too often runs uncompiled
                    try:
                        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
                            figures = trainer.measure(step)
                    except Exception as error:  # one step that does not work must not end the sweep
                        print(step.key(), precision, type(error).__name__, str(error)[:300], flush=True)
                        continue
                    shape = MODELS[name]
                    cells = {c: getattr(shape, c) for c in ("layers", "hidden", "q_heads", "kv_heads", "head_dim", "inter", "vocabulary")}
                    table.add(dict(model=name, **cells, gated=int(shape.gated), parameters=shape.parameters(), micro_batch=micro_batch,
                                   sequence=sequence, recompute="none", mode=f"compiled_{precision}", **figures))


def check():
    """fp8 products against 32 bits, and a mixture against its experts one by one."""
    x, w = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16), torch.randn(384, 512, device="cuda", dtype=torch.bfloat16)
    (x8, xs), (w8, ws) = cast(x, E4M3), cast(w, E4M3)
    wanted = x.float() @ w.float().t()
    error = ((product(x8, xs, w8, ws, True).float() - wanted).norm() / wanted.norm()).item()
    layer = Mixture(256, 128, 8, 2)
    weights, chosen = layer.route(x := x[:, :256].contiguous())
    wanted = torch.zeros_like(x, dtype=torch.float32)
    for slot in range(2):
        for expert in range(8):
            mine = chosen[:, slot] == expert
            gate, up = (x[mine].float() @ layer.up[expert].float()).chunk(2, -1)
            wanted[mine] += weights[mine, slot, None] * ((F.silu(gate) * up) @ layer.down[expert].float())
    mixed = ((layer(x).float() - wanted).norm() / wanted.norm()).item()
    print(f"errors: fp8 product {error:.4f}, mixture {mixed:.4f}", flush=True)
    if not (error < 0.1 and mixed < 0.05):
        raise RuntimeError("a kernel is wrong")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=220)
    parser.add_argument("--parts", default="mixture,fp8_steps,linear,attention")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    installed = [name for name in ("torchao", "transformer_engine", "flash_attn", "grouped_gemm") if importlib.util.find_spec(name)]
    (arguments.out / "train_kernels_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(), installed=installed)))
    check()
    sweep = Sweep(arguments)
    for part in arguments.parts.split(","):
        getattr(sweep, part)()
        print(f"{part} done at {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
