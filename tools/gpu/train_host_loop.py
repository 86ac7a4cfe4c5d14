"""Measures what the host takes for training steps in an unbroken loop, and which part of the loop takes it.

    python3 tools/gpu/train_host_loop.py --out DIR [--budget-s 170]

DIR/train_host_loop.csv: one row a model, way of looping and round. Ways differ in one thing each, and take turns within seconds, so that
a host that is slower for a while is so for all of them; two probes in each round (`python`: a loop without torch, `launch`: one
small kernel after another) say how fast it is. DIR/train_host_loop_kernels.csv: kernels that each phase launches and their seconds.
Steps are so small that the device waits for the host, but for those with more tokens.
"""
import argparse
import gc
import json
import os
import pathlib
import sys
import time
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from mixture_layer import Mixture  # noqa: E402
from train_host import OneByOne  # noqa: E402
from train_kernels import Table  # noqa: E402
from train_profile import PHASES, Steps, Watch  # noqa: E402
from train_sweep import Trainer  # noqa: E402

COLUMNS = ["model", "layers", "tensors", "micro_batch", "sequence", "mode", "way", "round", "step_s", "host_s"]
ROUNDS, LOOP_S = 3, 0.3


class MixtureStack(nn.Module):
    """Residual mixtures, forty to three hundred kernels each: what layers of experts launch."""

    def __init__(self, kind, layers, hidden, inter, experts, top_k):
        super().__init__()
        self.embedding = nn.Embedding(1000, hidden, device="cuda", dtype=torch.bfloat16)
        self.layers = nn.ModuleList(kind(hidden, inter, experts, top_k) for _ in range(layers))
        self.cos = self.sin = torch.zeros(1, device="cuda")

    def forward(self, tokens, targets):
        x = self.embedding(tokens).flatten(0, 1)
        for layer in self.layers:
            x = x + layer(x)
        return x.float().square().mean()


def mixture_trainer(kind, layers, experts):
    model = MixtureStack(kind, layers, 512, 256, experts, 4)
    return types.SimpleNamespace(model=model, shape=types.SimpleNamespace(vocabulary=1000, layers=layers),
                                 optimizer=torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True))


CASES = [("gpt-350m", 1, 64, "eager"), ("gpt-350m", 1, 1024, "eager"), ("llama-1b", 1, 64, "eager"), ("llama-1b", 1, 1024, "eager"),
         ("mixture-grouped-16", 1, 256, "eager"), ("mixture-one-by-one-16", 1, 256, "eager"), ("llama-1b", 1, 1024, "compiled"),
         ("gpt-350m", 8, 1024, "eager"), ("gpt-350m", 1, 64, "compiled"), ("llama-8b-of-4", 1, 64, "eager"), ("llama-3b", 1, 64, "eager")]


def trainer_of(name, sequence):
    if name == "mixture-grouped-16":
        return mixture_trainer(Mixture, 12, 16)
    if name == "mixture-one-by-one-16":
        return mixture_trainer(OneByOne, 12, 16)
    return Trainer(name, sequence)


class Loops:
    """Ways of looping over the same step. Each takes how many steps, and returns once the host has asked for them."""

    def __init__(self, steps):
        self.steps, self.model, self.optimizer = steps, steps.model, steps.optimizer

    def loss(self):
        return self.model(self.steps.tokens, self.steps.targets)

    def whole(self, count, clear=lambda optimizer: optimizer.zero_grad(set_to_none=False), look=lambda loss: None):
        for _ in range(count):
            loss = self.loss()
            loss.backward()
            self.optimizer.step()
            clear(self.optimizer)
            look(loss)

    def watched(self, count):
        watch = Watch()
        watch.start()
        self.whole(count)
        watch.mean()

    def kept(self, count):
        self.whole(count, clear=lambda optimizer: None)

    def dropped(self, count):
        self.whole(count, clear=lambda optimizer: optimizer.zero_grad(set_to_none=True))

    def looked_at(self, count):
        self.whole(count, look=lambda loss: loss.item())

    def clipped(self, count):
        for _ in range(count):
            self.loss().backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=False)

    def forward(self, count):
        for _ in range(count):
            self.loss()

    def forward_backward(self, count):
        for _ in range(count):
            self.loss().backward()

    def update(self, count):
        for _ in range(count):
            self.optimizer.step()

    def clear(self, count):
        for _ in range(count):
            self.optimizer.zero_grad(set_to_none=False)

    def computed_again(self, count, call=None):
        """Layers under torch.utils.checkpoint, forward and backward or a part of that."""
        if not hasattr(self.model, "set_recompute"):
            return
        self.model.set_recompute("full")
        (call or self.whole)(count)
        self.model.set_recompute("none")

    def forward_to_be_again(self, count):
        self.computed_again(count, self.forward)

    def phases(self, count):
        """Waited for after each phase, as train_host_phases.csv was measured."""
        for _ in range(count):
            loss = self.loss()
            torch.cuda.synchronize()
            loss.backward()
            torch.cuda.synchronize()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=False)
            torch.cuda.synchronize()

    def ways(self):
        return {name: getattr(self, name) for name in ("whole", "watched", "kept", "dropped", "looked_at", "clipped", "phases",
                                                       "forward", "forward_backward", "update", "clear", "computed_again",
                                                       "forward_to_be_again")}


def python_probe(count):
    total = 0
    for i in range(200 * count):
        total += i & 3
    return total


def launch_probe(count, small=[]):
    if not small:
        small.append(torch.zeros(8, device="cuda"))
    for _ in range(count):
        small[0].add_(1)


def spans_of(call, count):
    """Seconds of one of so many until the device is done, and until the host is."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    call(count)
    asked = time.perf_counter()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count, (asked - began) / count


def measure(case, tables, end):
    name, micro_batch, sequence, mode = case
    trainer = trainer_of(name, sequence)
    steps = Steps(trainer, micro_batch, sequence, mode)
    steps.run(4)
    cells = dict(model=name, layers=trainer.shape.layers, tensors=len(list(trainer.model.parameters())), micro_batch=micro_batch,
                 sequence=sequence, mode=mode)
    loops = Loops(steps)
    step_s = spans_of(loops.whole, 3)[0]
    count = max(3, int(LOOP_S / step_s))
    for turn in range(ROUNDS):
        calls = [("python", python_probe, 100), ("launch", launch_probe, 2000)]
        calls += [(way, call, count) for way, call in loops.ways().items()]
        for way, call, times in calls:
            if time.perf_counter() > end:
                return
            seconds, host = spans_of(call, times)
            tables[0].add(dict(cells, way=way, round=turn, step_s=f"{seconds:.6g}", host_s=f"{host:.6g}"))
    for (phase, kernel), (calls, spent) in steps.kernels(2).items():
        tables[1].add(dict(model=name, micro_batch=micro_batch, sequence=sequence, mode=mode, phase=phase, kernel=kernel,
                           calls=f"{calls:g}", seconds=f"{spent:.6g}"))
    print(*case, f"{step_s * 1e3:.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=170)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.perf_counter() + arguments.budget_s
    (arguments.out / "train_host_loop_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda, cores=os.cpu_count(), phases=PHASES)))
    tables = (Table(arguments.out / "train_host_loop.csv", COLUMNS),
              Table(arguments.out / "train_host_loop_kernels.csv", ["model", "micro_batch", "sequence", "mode", "phase", "kernel", "calls", "seconds"]))
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
        for case in CASES:
            if time.perf_counter() > end:
                break
            torch._dynamo.reset()
            try:
                measure(case, tables, end)
            except Exception as error:  # one case that does not work must not end the sweep
                print(*case, type(error).__name__, str(error)[:300], flush=True)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
