"""Measures experts that every token goes through beside those that tokens choose, in a stream of their own.

    python3 tools/gpu/shared_beside.py --out DIR [--budget-s 60]

One row per layer shape in DIR/shared_beside.csv: seconds of a layer's chosen experts alone, of its shared expert alone, of one after the
other, and of both at once. All are products of 16 bits, up, gate and down, in one captured graph of LAYERS layers with weights of their
own, so that nothing is left in the cache. `experts` are those that the tokens of the step choose on this GPU, with `rows` tokens each.
"""
import argparse
import csv
import pathlib
import statistics
import time

import torch

COLUMNS = ["tokens", "experts", "rows", "width", "shared_width", "hidden", "chosen_s", "shared_s", "after_s", "beside_s"]
HIDDEN = 7168
LAYERS = 8
REPLAYS = 20
REPEATS = 7
BATCHES = [(1, 2, 1), (2, 3, 1), (4, 4, 1), (8, 6, 1), (16, 8, 1), (32, 12, 2), (64, 14, 2), (128, 16, 4), (192, 16, 6), (256, 16, 8),
           (1024, 16, 32)]  # tokens, experts, rows
WIDTHS = [(2048, 128), (2048, 512), (2048, 2048), (512, 512), (128, 128)]


def weights(*shape):
    return [torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.01 for _ in range(LAYERS)]


def gated(both):
    gate, up = both.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


class Layers:
    def __init__(self, tokens, experts, rows, width, shared_width):
        self.up, self.down = weights(experts, HIDDEN, 2 * width), weights(experts, width, HIDDEN)
        self.shared_up, self.shared_down = weights(HIDDEN, 2 * shared_width), weights(shared_width, HIDDEN)
        self.routed = torch.randn(experts, rows, HIDDEN, device="cuda", dtype=torch.bfloat16)
        self.tokens = torch.randn(tokens, HIDDEN, device="cuda", dtype=torch.bfloat16)
        self.aside = torch.cuda.Stream()

    def chosen(self, i):
        torch.bmm(gated(torch.bmm(self.routed, self.up[i])), self.down[i])

    def shared(self, i):
        gated(self.tokens @ self.shared_up[i]) @ self.shared_down[i]

    def after(self, i):
        self.shared(i)
        self.chosen(i)

    def beside(self, i):
        main = torch.cuda.current_stream()
        self.aside.wait_stream(main)
        with torch.cuda.stream(self.aside):
            self.shared(i)
        self.chosen(i)
        main.wait_stream(self.aside)


def seconds_of(layer):
    def all_layers():
        for i in range(LAYERS):
            layer(i)

    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        all_layers()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        all_layers()
    times = []
    for _ in range(REPEATS + 1):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / REPLAYS / LAYERS)
    return statistics.median(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=60)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.perf_counter() + arguments.budget_s
    with open(arguments.out / "shared_beside.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for width, shared_width in WIDTHS:
            for batch in BATCHES:
                if time.perf_counter() > end:
                    return
                layers = Layers(*batch, width, shared_width)
                found = [seconds_of(way) for way in (layers.chosen, layers.shared, layers.after, layers.beside)]
                table.writerow([*batch, width, shared_width, HIDDEN, *(f"{seconds:.6g}" for seconds in found)])
                file.flush()


if __name__ == "__main__":
    main()
