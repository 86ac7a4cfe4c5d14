"""Measures whole training steps under unbroken load on this GPU: kernels by phase, clock and power, and what the host takes.

    python3 tools/gpu/train_profile.py --out DIR [--budget-s 230] [--parts soak,loads,host]

DIR/train_loads.csv: one row a step of a model: seconds of a step in a run of some seconds without a pause, with the mean clock of the
multiprocessors and the mean power meanwhile. DIR/train_soak.csv: the same step for more than a minute, every few seconds, while the
card gets hot. DIR/train_phase_kernels.csv: the profiler's kernels of these steps, by phase (forward,
backward, optimizer). DIR/train_host_phases.csv: seconds of each phase of steps whose tensors are so small that the device waits for the
host, and the kernels that each phase launches.
"""
import argparse
import collections
import gc
import os
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from train_kernels import Table  # noqa: E402
from train_plan import MODELS, TrainModel  # noqa: E402
from train_sweep import Trainer, gpu_state  # noqa: E402

STEP = ["model", "layers", "hidden", "q_heads", "kv_heads", "head_dim", "inter", "vocabulary", "gated", "micro_batch", "sequence", "mode"]
PHASES = ("forward", "backward", "optimizer")
MARK = "spin_kernel"  # between phases a kernel is launched that nobody else launches
SOAK_S = 70
LOAD_S = 2.6  # the card's power figure is a mean over about a second

# Heads of 80 and 96 values, which kernels may pad.
OTHERS = (TrainModel("gpt-head-80", 8, 2560, 32, 32, 80, 10240, 50304, gated=False), TrainModel("llama-head-96", 8, 3072, 32, 32, 96, 8192, 32000))
STEPS = [("llama-8b-of-4", 1, 4096, "eager"), ("llama-3b", 1, 4096, "eager"), ("llama-1b", 2, 4096, "eager"), ("llama-70b-tp8-of-8", 1, 8192, "eager"),
         ("gpt-350m", 8, 1024, "eager"), ("gpt-head-80", 2, 2048, "eager"), ("llama-head-96", 2, 4096, "eager"), ("llama-70b-of-2", 1, 4096, "eager"),
         ("gpt-350m", 1, 1024, "eager"), ("llama-8b-of-4", 1, 4096, "compiled"), ("gpt-350m", 8, 1024, "compiled"),
         ("llama-70b-of-2", 1, 4096, "compiled"), ("llama-1b", 1, 1024, "eager"), ("llama-1b", 1, 1024, "compiled")]


class Watch(threading.Thread):
    """Clock and power, read until it is stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.read, self.stopped = [], threading.Event()

    def run(self):
        while not self.stopped.wait(0.05):
            self.read.append(gpu_state())

    def mean(self):
        self.stopped.set()
        self.join()
        later = self.read[len(self.read) // 2:] or [(0, 0)]
        return [statistics.mean(column) for column in zip(*later)]


class Steps:
    """Steps of one model on the same tokens."""

    def __init__(self, trainer, micro_batch, sequence, mode):
        self.model, self.optimizer = trainer.model, trainer.optimizer
        self.model.cos, self.model.sin = self.model.cos[:sequence], self.model.sin[:sequence]
        if mode == "compiled":
            for layer in self.model.layers:
                layer.forward = torch.compile(type(layer).forward.__get__(layer), dynamic=False)
        self.tokens, self.targets = (torch.randint(0, trainer.shape.vocabulary, (micro_batch, sequence), device="cuda") for _ in range(2))

    def run(self, count, mark=lambda: None):
        for _ in range(count):
            mark()
            loss = self.model(self.tokens, self.targets)
            mark()
            loss.backward()
            mark()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=False)
        torch.cuda.synchronize()

    def timed(self, count):
        torch.cuda.synchronize()
        began = time.perf_counter()
        self.run(count)
        return (time.perf_counter() - began) / count

    def kernels(self, count=4):
        """(phase, kernel) -> calls and seconds of one step."""
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            self.run(count, lambda: torch.cuda._sleep(1))
        sums, marks = collections.defaultdict(lambda: [0, 0.0]), -1
        launched = [event for event in found.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        for event in sorted(launched, key=lambda event: event.time_range.start):
            if MARK in event.name:
                marks += 1
                continue
            if marks >= 0:
                row = sums[PHASES[marks % 3], event.name[:160]]
                row[0] += 1 / count
                row[1] += event.time_range.elapsed_us() / 1e6 / count
        return sums

    def host(self, repeats=9):
        """Seconds of each phase, waited for: median of some steps."""
        spans = []
        for _ in range(repeats):
            times = []

            def mark():
                torch.cuda.synchronize()
                times.append(time.perf_counter())

            self.run(1, mark)
            mark()
            spans.append([later - earlier for earlier, later in zip(times, times[1:])])
        return [statistics.median(column) for column in zip(*spans)]


def cells_of(shape, micro_batch, sequence, mode):
    cells = {column: getattr(shape, column) for column in STEP[1:8]}
    return dict(model=shape.name, **cells, gated=int(shape.gated), micro_batch=micro_batch, sequence=sequence, mode=mode)


def each_step(plan, end, measure):
    """measure(steps, cells) for each step of a plan, with a model of its own; one that does not work must not end the sweep."""
    for name, micro_batch, sequence, mode in plan:
        if time.perf_counter() > end:
            return
        try:
            torch._dynamo.reset()
            trainer = Trainer(name, sequence)
            steps = Steps(trainer, micro_batch, sequence, mode)
            steps.run(3)
            measure(steps, cells_of(trainer.shape, micro_batch, sequence, mode))
        except Exception as error:
            print(name, mode, type(error).__name__, str(error)[:300], flush=True)
        trainer = steps = None
        gc.collect()
        torch.cuda.empty_cache()


def loads(out, end):
    table = Table(out / "train_loads.csv", STEP + ["step_s", "sm_mhz", "power_w"])
    listed = Table(out / "train_phase_kernels.csv", ["model", "mode", "micro_batch", "sequence", "phase", "kernel", "calls", "seconds"])

    def measure(steps, cells):
        count = max(4, int(LOAD_S / steps.timed(3)))
        watch = Watch()
        watch.start()
        seconds = steps.timed(count)
        clock, power = watch.mean()
        table.add(dict(cells, step_s=f"{seconds:.6g}", sm_mhz=f"{clock:.0f}", power_w=f"{power:.0f}"))
        short = {column: cells[column] for column in ("model", "mode", "micro_batch", "sequence")}
        for (phase, kernel), (calls, spent) in steps.kernels().items():
            listed.add(dict(short, phase=phase, kernel=kernel, calls=f"{calls:g}", seconds=f"{spent:.6g}"))
        print(f"{cells['model']} {cells['mode']}: {seconds * 1e3:.2f} ms, {clock:.0f} MHz, {power:.0f} W", flush=True)

    each_step(STEPS, end, measure)


def soak(out, end):
    """One step again and again: does a hot card take longer?"""
    table = Table(out / "train_soak.csv", STEP + ["after_s", "step_s", "sm_mhz", "power_w", "celsius"])

    def measure(steps, cells):
        seconds, began = steps.timed(3), time.perf_counter()
        while time.perf_counter() - began < SOAK_S:
            watch = Watch()
            watch.start()
            seconds = steps.timed(max(4, int(2.5 / seconds)))
            clock, power = watch.mean()
            table.add(dict(cells, after_s=f"{time.perf_counter() - began:.1f}", step_s=f"{seconds:.6g}", sm_mhz=f"{clock:.0f}",
                           power_w=f"{power:.0f}", celsius=torch.cuda.temperature()))

    each_step([("llama-3b", 1, 8192, "eager")], end, measure)


def host(out, end):
    table = Table(out / "train_host_phases.csv", STEP + ["phase", "kernels", "host_s"])
    plan = [(name, 1, 64, mode) for name in ("gpt-350m", "llama-1b", "llama-3b", "llama-8b-of-4") for mode in ("eager", "compiled")]

    def measure(steps, cells):
        spans = steps.host()
        launched = collections.Counter()
        for (phase, _), (calls, _) in steps.kernels().items():
            launched[phase] += calls
        for phase, seconds in zip(PHASES, spans):
            table.add(dict(cells, phase=phase, kernels=f"{launched[phase]:g}", host_s=f"{seconds:.6g}"))

    each_step(plan, end, measure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=230)
    parser.add_argument("--parts", default="soak,loads,host")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    MODELS.update((shape.name, shape) for shape in OTHERS)
    parts = {"soak": soak, "loads": loads, "host": host}
    shares = {"soak": 1.0, "loads": 0.85, "host": 1.0}
    for part in arguments.parts.split(","):
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
            parts[part](arguments.out, started + arguments.budget_s * shares[part])
        print(f"{part} done at {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
