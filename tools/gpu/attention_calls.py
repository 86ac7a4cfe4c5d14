"""Prefill attention through the fast kernels that torch carries; used by the kernel rows and by the model steps alike.

cuDNN's kernel is Hopper's fast one but aligns its causal mask at the top left, so a chunk with a cached prefix is two
calls, unmasked over the prefix and causal over the chunk, joined by their log-sum-exps. FlashAttention-2 aligns at the
bottom right and does it in one slower call. All tensors are [batch, tokens, heads, head_dim], possibly strided.
"""
import torch

import triton_elementwise

_cudnn = torch.ops.aten._scaled_dot_product_cudnn_attention
_flash = torch.ops.aten._flash_attention_forward


def prefill_cudnn(q, k, v):
    out = _cudnn(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, False, 0.0, True, False)[0]
    return out.transpose(1, 2)


def chunk_cudnn(q, k, v, out):
    """k and v hold the prefix followed by the chunk's own tokens; `out` is dense."""
    prefix = k.shape[1] - q.shape[1]
    query = q.transpose(1, 2)
    parts = []
    for keys, causal in ((slice(0, prefix), False), (slice(prefix, None), True)):
        part = _cudnn(query, k[:, keys].transpose(1, 2), v[:, keys].transpose(1, 2), None, True, 0.0, causal, False)
        parts += [part[0].transpose(1, 2), part[1]]
    triton_elementwise.merge_states(*parts, out)
    return out


def flash(q, k, v, causal):
    return _flash(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, causal, False)[0]


def chunk_flash(q, k, v, out):
    return out.copy_(flash(q, k, v, True))


def step_attention(failed_checks):
    """(prefill, chunk) for model steps: cuDNN's where its self-checks passed, FlashAttention-2 otherwise."""
    prefill = (lambda q, k, v: flash(q, k, v, True)) if "prefill_cudnn" in failed_checks else prefill_cudnn
    chunk = chunk_flash if {"chunk_cudnn", "merge"} & set(failed_checks) else chunk_cudnn
    return prefill, chunk
