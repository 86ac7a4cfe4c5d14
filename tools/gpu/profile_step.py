"""A trace of the PyTorch profiler, with shapes, of a few layers of a model in plain PyTorch: what `llmsweep import profile` reads.

    python3 tools/gpu/profile_step.py --out trace.json      # half a minute; needs PyTorch and a GPU, nothing else
"""
import argparse

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

HIDDEN, INTER, HEADS, KV_HEADS, WIDTH, LAYERS = 4096, 14336, 32, 8, 128, 4
# Sequences, new tokens of each, tokens of context.
BATCHES = [(1, 512, 512), (1, 2048, 2048), (4, 512, 512), (1, 1, 1024), (16, 1, 1024), (64, 1, 2048)]


def weights():
    new = lambda rows, columns: torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) * 0.01
    return [dict(qkv=new((HEADS + 2 * KV_HEADS) * WIDTH, HIDDEN), out=new(HIDDEN, HEADS * WIDTH), up=new(2 * INTER, HIDDEN),
                 down=new(HIDDEN, INTER)) for _ in range(LAYERS)]


def attend(qkv, batch, new, context):
    q, k, v = qkv.view(batch, new, -1, WIDTH).split([HEADS, KV_HEADS, KV_HEADS], dim=2)
    if context > new:  # the new token after those that are cached
        cached = lambda: torch.randn(batch, context - new, KV_HEADS, WIDTH, device="cuda", dtype=torch.bfloat16)
        k, v = torch.cat([cached(), k], 1), torch.cat([cached(), v], 1)
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    out = functional.scaled_dot_product_attention(q, k, v, is_causal=new > 1, enable_gqa=True)
    return out.transpose(1, 2).reshape(batch * new, HEADS * WIDTH)


def step(layers, batch, new, context):
    x = torch.randn(batch * new, HIDDEN, device="cuda", dtype=torch.bfloat16)
    for layer in layers:
        x = x + attend(x @ layer["qkv"].t(), batch, new, context) @ layer["out"].t()
        gate, up = (x @ layer["up"].t()).chunk(2, dim=-1)
        x = x + (functional.silu(gate) * up) @ layer["down"].t()
    torch.cuda.synchronize()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", default="trace.json")
    given = arguments.parse_args()
    layers = weights()
    with torch.inference_mode():
        for shape in BATCHES:
            step(layers, *shape)  # plans and kernels are chosen at the first call
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
            for shape in BATCHES:
                step(layers, *shape)
    profiler.export_chrome_trace(given.out)
