"""Attention rows: K and V rotate and are cold; q lies strided inside a fused projection's output, as engines have it."""
import torch

import attention_calls
from gpu_timer import Case
from triton_decode import DecodePlan
from sweep_plan import PAGE


def _query(lab, row):
    """[batch, query_len, q_heads, head_dim], a slice of [batch * query_len, q + k + v]."""
    batch, length, heads, dim = row["batch"], row["query_len"], row["q_heads"], row["head_dim"]
    width = heads + 2 * row["kv_heads"]
    return lab.activation((batch, length, width, dim))[:, :, :heads]


def _key_value(lab, row):
    """The function from copy number to dense (k, v), and how many copies there are."""
    shape = (row["batch"], row["context_len"], row["kv_heads"], row["head_dim"])
    elements = shape[0] * shape[1] * shape[2] * shape[3]
    return lambda i: (lab.stream.cut(2 * i, shape), lab.stream.cut(2 * i + 1, shape)), lab.stream.copies(elements) // 2


def prefill_cudnn(lab, row):
    q, (kv, copies) = _query(lab, row), _key_value(lab, row)
    return Case(lambda i: attention_calls.prefill_cudnn(q, *kv(i)), copies)


def chunk_cudnn(lab, row):
    q, (kv, copies) = _query(lab, row), _key_value(lab, row)
    out = lab.output(tuple(q.shape))
    return Case(lambda i: attention_calls.chunk_cudnn(q, *kv(i), out), copies)


def prefill_flash(lab, row):
    q, (kv, copies) = _query(lab, row), _key_value(lab, row)
    return Case(lambda i: attention_calls.flash(q, *kv(i), True), copies)


def decode_flash(lab, row):
    q, (kv, copies) = _query(lab, row), _key_value(lab, row)
    return Case(lambda i: attention_calls.flash(q, *kv(i), False), copies)


def block_table(batch, context):
    """Pages of each sequence, scattered over the cache as a long-running server leaves them."""
    pages = -(-context // PAGE)
    return torch.randperm(batch * pages, device="cuda").to(torch.int32).view(batch, pages)


def decode_triton(lab, row):
    batch, context, q_heads, kv_heads, dim = (
        row[c] for c in ("batch", "context_len", "q_heads", "kv_heads", "head_dim"))
    arena = lab.fp8 if row["kv_dtype"] == "fp8" else lab.stream
    table = block_table(batch, context)
    contexts = torch.full((batch,), context, device="cuda", dtype=torch.int32)
    shape = (table.numel(), PAGE, kv_heads, dim)
    copies = arena.copies(table.numel() * PAGE * kv_heads * dim) // 2
    q = lab.activation((batch, (q_heads + 2 * kv_heads) * dim))
    plan = DecodePlan(batch, context, q_heads, kv_heads, dim, lab.timer.multiprocessors,
                      arena.data.itemsize)
    out = lab.output((batch, q_heads * dim))

    def call(i):
        plan.run(q, arena.cut(2 * i, shape), arena.cut(2 * i + 1, shape), table, contexts, out)

    return Case(call, copies)
