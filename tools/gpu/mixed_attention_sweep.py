"""Measures what attention of prompts and of decodes takes side by side on one GPU: what `mixed_attention: overlapped` gains.

    python3 tools/gpu/mixed_attention_sweep.py --out DIR

A row a pair in DIR/mixed_attention.csv: the prompt's call alone, the decodes' call alone, both one after the other, and both on
streams of their own (`together_s`), where the hardware mixes blocks as they come; a fused kernel can do better. Calls are
repeated so that either side lasts about as long; a graph of them is replayed, so no host time is in them.
"""
import argparse
import csv
import pathlib
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

COLUMNS = ["q_heads", "kv_heads", "head_dim", "chunk", "prior", "batch", "context", "prompt_calls", "decode_calls",
           "prompt_s", "decode_s", "in_turn_s", "together_s", "gain"]
REPEATS = 11
HEADS = [(32, 8, 128), (8, 1, 128), (64, 8, 128)]
PROMPTS = [(512, 0), (512, 4096), (2048, 0), (2048, 8192), (8192, 0)]
DECODES = [(16, 2048), (64, 2048), (64, 8192), (256, 2048)]


def prompt_call(heads, chunk, prior):
    q_heads, kv_heads, dim = heads
    q = torch.randn(1, q_heads, chunk, dim, device="cuda", dtype=torch.bfloat16)
    # Prior tokens are seen by all of the chunk; the causal corner within it is counted as seen, half of it more work.
    k, v = (torch.randn(1, kv_heads, prior + chunk, dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=prior == 0, enable_gqa=True)


def decode_call(heads, batch, context):
    q_heads, kv_heads, dim = heads
    # A group's queries as rows of one product: how decode kernels use the matrix units.
    q = torch.randn(batch, kv_heads, q_heads // kv_heads, dim, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, kv_heads, context, dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return lambda: F.scaled_dot_product_attention(q, k, v)


def graph_of(prompt, prompts, decode, decodes, streams):
    """Calls of both sides in one graph; with two streams they may run together."""
    torch.cuda.synchronize()
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        if streams == 2:
            side.wait_stream(main)
        for _ in range(prompts):
            prompt()
        with torch.cuda.stream(side if streams == 2 else main):
            for _ in range(decodes):
                decode()
        if streams == 2:
            main.wait_stream(side)
    return graph


def timed(graph):
    for _ in range(2):
        graph.replay()
    times = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", type=pathlib.Path, required=True)
    out = options.parse_args().out
    with open(out / "mixed_attention.csv", "w", newline="") as file, sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for heads in HEADS:
            for chunk, prior in PROMPTS:
                for batch, context in DECODES:
                    prompt, decode = prompt_call(heads, chunk, prior), decode_call(heads, batch, context)
                    prompt(), decode()
                    one = [timed(graph_of(prompt, 8, decode, 0, 1)) / 8, timed(graph_of(prompt, 0, decode, 8, 1)) / 8]
                    longest = max(one) * 16
                    calls = [max(1, round(longest / seconds)) for seconds in one]
                    alone = [timed(graph_of(prompt, calls[0], decode, 0, 1)), timed(graph_of(prompt, 0, decode, calls[1], 1))]
                    in_turn = timed(graph_of(prompt, calls[0], decode, calls[1], 1))
                    together = timed(graph_of(prompt, calls[0], decode, calls[1], 2))
                    row = [*heads, chunk, prior, batch, context, *calls]
                    table.writerow(dict(zip(COLUMNS, row + [f"{s:.6g}" for s in (*alone, in_turn, together)] +
                                            [f"{in_turn / together:.4f}"])))
                    file.flush()
                    del prompt, decode
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
