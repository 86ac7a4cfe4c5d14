"""Memory-bound rows: norm, rope, activation, embedding, sampling, quantise, copies.

Cold rows stream from and to a different copy on every call; `:warm` rows reuse one copy, which then sits in L2 if it
fits, as it does between two kernels of a real step.
"""
import torch

import triton_elementwise as elementwise
from gpu_timer import MAX_CALLS, Case

POSITIONS = 131072
EMBED_VOCABULARY = 128256


def _case(row, call, copies):
    """A warm row is the cold one with the copy number held at zero."""
    if row["impl"].endswith(":warm"):
        return Case(lambda i: call(0), 1, warm=True)
    return Case(call, copies)


def norm(lab, row):
    shape = (row["tokens"], row["hidden"])
    weight = lab.activation((row["hidden"],))

    def call(i):
        elementwise.norm(lab.stream.cut(i, shape), lab.scratch.cut(2 * i, shape), weight, lab.scratch.cut(2 * i + 1, shape))

    return _case(row, call, lab.scratch.copies(shape[0] * shape[1]) // 2)


def act(lab, row):
    tokens, inter = row["tokens"], row["hidden"]

    def call(i):
        elementwise.act(lab.stream.cut(i, (tokens, 2 * inter)), lab.scratch.cut(i, (tokens, inter)))

    return _case(row, call, lab.scratch.copies(tokens * inter))


def quantize(lab, row):
    tokens, hidden = row["tokens"], row["hidden"]
    scale = torch.empty(tokens, device="cuda")
    bf16_elements = -(-tokens * hidden // 2)

    def call(i):
        out = lab.scratch.cut(i, (bf16_elements,)).view(torch.float8_e4m3fn)[:tokens * hidden].view(tokens, hidden)
        elementwise.quantize(lab.stream.cut(i, (tokens, hidden)), out, scale)

    return _case(row, call, lab.scratch.copies(bf16_elements))


def rope(lab, row):
    tokens, q_heads, kv_heads, dim = row["tokens"], row["q_heads"], row["kv_heads"], row["head_dim"]
    width = (q_heads + 2 * kv_heads) * dim
    cache = tokens * kv_heads * dim
    positions = torch.randint(0, POSITIONS, (tokens,), device="cuda")
    slots = torch.randperm(tokens, device="cuda")
    cos_sin = lab.activation((POSITIONS, dim)).clamp(-1, 1)

    def call(i):
        block = lab.scratch.cut(i, (tokens * width + 2 * cache,))
        qkv, k, v = block.split([tokens * width, cache, cache])
        elementwise.rope(qkv.view(tokens, width), positions, slots, cos_sin, k, v, q_heads, kv_heads, dim)

    return _case(row, call, lab.scratch.copies(tokens * width + 2 * cache))


def embed(lab, row):
    tokens, hidden = row["tokens"], row["hidden"]
    table = lab.weights.cut(0, (EMBED_VOCABULARY, hidden))
    ids = torch.randint(0, EMBED_VOCABULARY, (MAX_CALLS, tokens), device="cuda")

    def call(i):
        torch.index_select(table, 0, ids[i], out=lab.scratch.cut(i, (tokens, hidden)))

    return _case(row, call, min(MAX_CALLS, lab.scratch.copies(tokens * hidden)))


def sample(lab, row):
    shape = (row["tokens"], row["hidden"])
    out = torch.empty(row["tokens"], device="cuda", dtype=torch.int64)
    return _case(row, lambda i: torch.argmax(lab.stream.cut(i, shape), dim=-1, out=out),
                 lab.stream.copies(shape[0] * shape[1]))


def copy_device(lab, row):
    elements = row["bytes"] // 2
    return Case(lambda i: lab.scratch.cut(i, (elements,)).copy_(lab.stream.cut(i, (elements,))),
                lab.scratch.copies(elements))


def _pinned(lab, elements):
    """Page-locked host memory, written once so that its pages exist."""
    host = torch.empty(elements, dtype=torch.bfloat16, pin_memory=True)
    host.copy_(lab.stream.cut(0, (elements,)))
    return host


def copy_to_device(lab, row):
    host = _pinned(lab, row["bytes"] // 2)
    return Case(lambda i: lab.scratch.cut(i, host.shape).copy_(host, non_blocking=True), MAX_CALLS)


def copy_to_host(lab, row):
    host = _pinned(lab, row["bytes"] // 2)
    return Case(lambda i: host.copy_(lab.stream.cut(i, host.shape), non_blocking=True), MAX_CALLS)
