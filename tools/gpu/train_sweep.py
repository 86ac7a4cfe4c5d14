"""Measures training steps on this GPU: forward, backward, optimizer and peak memory of real PyTorch steps.

    python3 tools/gpu/train_sweep.py --out DIR [--plan heldout] [--budget-s 500]

One row a step in DIR/train_steps.csv, written as it is done. Parameters and gradients are bf16, AdamW (fused) keeps its
two states in bf16: the step of the optimizer reads parameter, gradient and states and writes all but the gradient.
"""
import argparse
import csv
import gc
import json
import pathlib
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from train_model import Model
from train_plan import MODELS, PLANS

COLUMNS = ["model", "layers", "hidden", "q_heads", "kv_heads", "head_dim", "inter", "vocabulary", "gated", "parameters",
           "micro_batch", "sequence", "recompute", "mode", "forward_s", "backward_s", "optimizer_s", "wall_s",
           "static_bytes", "after_forward_bytes", "peak_bytes", "sm_mhz", "power_w"]
REPEATS, WARM_UP = 6, 2


def gpu_state():
    try:
        return torch.cuda.clock_rate(), torch.cuda.power_draw() / 1000
    except Exception:  # the library that reads them may be missing
        return 0, 0


class Trainer:
    """One model at a time; its weights serve every step of its plan."""

    def __init__(self, name, sequence):
        self.shape = MODELS[name]
        torch.manual_seed(1)
        with torch.device("cuda"):
            self.model = Model(self.shape, sequence).to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)

    def measure(self, step):
        model, shape = self.model, self.shape
        model.set_recompute(step.recompute)
        cos, sin = model.cos, model.sin
        model.cos, model.sin = cos[:step.sequence], sin[:step.sequence]
        layers = list(model.layers)
        if step.mode == "compiled":
            for layer in layers:
                layer.forward = torch.compile(type(layer).forward.__get__(layer), dynamic=False)
        tokens = torch.randint(0, shape.vocabulary, (step.micro_batch, step.sequence), device="cuda")
        targets = torch.randint(0, shape.vocabulary, (step.micro_batch, step.sequence), device="cuda")
        try:
            if step.mode == "graph":
                return self._rounds(*self._recorded(tokens, targets))
            return self._rounds(lambda: self.model(tokens, targets), lambda loss: loss.backward())
        finally:
            model.cos, model.sin = cos, sin
            for layer in layers:
                layer.__dict__.pop("forward", None)

    def _recorded(self, tokens, targets):
        """Forward and backward pass as two graphs that are replayed; both keep their memory."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.model(tokens, targets).backward()
        torch.cuda.current_stream().wait_stream(stream)
        forward, backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(forward):
            loss = self.model(tokens, targets)
        with torch.cuda.graph(backward, pool=forward.pool()):
            loss.backward()
        self.optimizer.zero_grad(set_to_none=False)
        return forward.replay, lambda _: backward.replay()

    def _rounds(self, forward_pass, backward_pass):
        spans, after_forward, wall = [], 0, []
        for repeat in range(WARM_UP + REPEATS):
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
            if repeat == WARM_UP:
                torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
            start = time.perf_counter()
            marks[0].record()
            loss = forward_pass()
            marks[1].record()
            after_forward = max(after_forward, torch.cuda.memory_allocated())
            backward_pass(loss)
            marks[2].record()
            self.optimizer.step()
            marks[3].record()
            torch.cuda.synchronize()
            wall.append(time.perf_counter() - start)
            self.optimizer.zero_grad(set_to_none=False)
            del loss
            spans.append([marks[i].elapsed_time(marks[i + 1]) / 1e3 for i in range(3)])
        measured = spans[WARM_UP:]
        clock, power = gpu_state()
        forward, backward, optimizer = (statistics.median(s[i] for s in measured) for i in range(3))
        static = torch.cuda.memory_allocated()
        return dict(forward_s=forward, backward_s=backward, optimizer_s=optimizer, wall_s=statistics.median(wall[WARM_UP:]),
                    static_bytes=static, after_forward_bytes=after_forward,
                    peak_bytes=torch.cuda.max_memory_allocated(), sm_mhz=clock, power_w=power)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--plan", choices=PLANS, default="sweep")
    parser.add_argument("--budget-s", type=float, default=500)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    (arguments.out / "train_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda, repeats=REPEATS)))
    plan = PLANS[arguments.plan]()
    done, trainer = set(), None
    with open(arguments.out / "train_steps.csv", "w", newline="") as file, sdpa_kernel(
            [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for model in dict.fromkeys(s.model for s in plan):
            trainer = None
            gc.collect()
            torch.cuda.empty_cache()
            trainer = Trainer(model, max(s.sequence for s in plan if s.model == model))
            for step in (s for s in plan if s.model == model):
                if step.key() in done or time.perf_counter() - started > arguments.budget_s:
                    continue
                done.add(step.key())
                try:
                    figures = trainer.measure(step)
                except torch.OutOfMemoryError:
                    print(step.key(), "does not fit", flush=True)
                    trainer.optimizer.zero_grad()
                    gc.collect()
                    torch.cuda.empty_cache()
                    continue
                shape = trainer.shape
                table.writerow(dict(model=step.model, layers=shape.layers, hidden=shape.hidden, q_heads=shape.q_heads,
                                    kv_heads=shape.kv_heads, head_dim=shape.head_dim, inter=shape.inter,
                                    vocabulary=shape.vocabulary, gated=int(shape.gated), parameters=shape.parameters(),
                                    micro_batch=step.micro_batch, sequence=step.sequence, recompute=step.recompute,
                                    mode=step.mode, **figures))
                file.flush()
                print(f"{time.perf_counter() - started:6.1f} s {step.key():40} forward {figures['forward_s'] * 1e3:8.2f} ms "
                      f"backward {figures['backward_s'] * 1e3:8.2f} ms optimizer {figures['optimizer_s'] * 1e3:7.2f} ms "
                      f"peak {figures['peak_bytes'] / 1e9:6.1f} GB", flush=True)


if __name__ == "__main__":
    main()
