"""Slow, plain versions of the kernels under test, in float32: what 'correct' means here."""
import torch


def attention(q, k, v):
    """Causal, aligned at the bottom right: the last query sees every key. [batch, tokens, heads, head_dim] each."""
    group = q.shape[2] // k.shape[2]
    q, k, v = (t.float().transpose(1, 2) for t in (q, k, v))
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    queries, keys = scores.shape[-2:]
    visible = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
    return (scores.masked_fill(~visible, float("-inf")).softmax(-1) @ v).transpose(1, 2)


def norm(x, residual, weight):
    total = x.float() + residual.float()
    return total, total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-5) * weight.float()


def rotate(x, cos, sin):
    """x is [tokens, heads, head_dim]; cos and sin are [tokens, head_dim / 2]."""
    first, second = x.float().chunk(2, -1)
    cos, sin = cos.float()[:, None], sin.float()[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def relative_error(value, expected):
    """Norm of the difference over the norm of the expected; NaN and unwritten elements never pass a bound."""
    value, expected = value.float(), expected.float()
    return ((value - expected).norm() / expected.norm().clamp_min(1e-20)).item()
