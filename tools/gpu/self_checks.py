"""Is each kernel right? Run before anything is timed: a wrong kernel takes its family out of the sweep.

Outputs are poisoned with NaN first, so an element that nobody writes fails the check. The Triton checks also run on a
machine without a GPU: TRITON_INTERPRET=1 python3 tools/gpu/measure.py --check
"""
import torch

import reference
import triton_decode
import triton_elementwise as elementwise
from sweep_plan import PAGE

TOLERANCE = 1.5e-2  # bf16 operands and outputs land between 1e-3 and 1e-2
FP8_TOLERANCE = 8e-2  # three mantissa bits; rounding to nearest gives 3e-2, the interpreter truncates: 7e-2


def _poisoned(*shape, device, dtype=torch.bfloat16):
    return torch.full(shape, float("nan"), device=device, dtype=dtype)


def _random(*shape, device, dtype=torch.bfloat16):
    return torch.randn(*shape, device=device).to(dtype)


def _require(error, bound, what):
    if not error < bound:
        raise AssertionError(f"{what}: relative error {error:.3g} is not below {bound:g}")


def check_norm(device):
    for tokens, hidden in ((3, 512), (2, 5120)):
        x, residual = _random(tokens, hidden, device=device), _random(tokens, hidden, device=device)
        weight, out = _random(hidden, device=device), _poisoned(tokens, hidden, device=device)
        total, expected = reference.norm(x, residual, weight)
        elementwise.norm(x, residual, weight, out)
        _require(reference.relative_error(out, expected), TOLERANCE, f"norm {tokens}x{hidden}")
        _require(reference.relative_error(residual, total), TOLERANCE, f"norm residual {tokens}x{hidden}")


def check_rope(device):
    tokens, slots = 5, 64
    for q_heads, kv_heads, head_dim in ((6, 2, 64), (8, 1, 128)):
        width = q_heads + 2 * kv_heads
        qkv = _random(tokens, width * head_dim, device=device)
        original = qkv.clone().view(tokens, width, head_dim)
        positions = torch.randint(0, 100, (tokens,), device=device)
        slot = torch.randperm(slots, device=device)[:tokens]
        cos_sin = _random(100, head_dim, device=device)
        k_cache, v_cache = (_poisoned(slots, kv_heads, head_dim, device=device) for _ in range(2))
        elementwise.rope(qkv, positions, slot, cos_sin, k_cache, v_cache, q_heads, kv_heads, head_dim)
        cos, sin = cos_sin[positions].chunk(2, -1)
        got = qkv.view(tokens, width, head_dim)
        expected = reference.rotate(original, cos, sin)
        _require(reference.relative_error(got[:, :q_heads], expected[:, :q_heads]), TOLERANCE, "rope q")
        _require(reference.relative_error(k_cache[slot], expected[:, q_heads:q_heads + kv_heads]), TOLERANCE, "rope k")
        _require(reference.relative_error(v_cache[slot], original[:, q_heads + kv_heads:]), 1e-6, "rope v")


def check_act(device):
    gate_up, out = _random(3, 2 * 1536, device=device), _poisoned(3, 1536, device=device)
    elementwise.act(gate_up, out)
    gate, up = gate_up.float().chunk(2, -1)
    _require(reference.relative_error(out, torch.nn.functional.silu(gate) * up), TOLERANCE, "act")


def check_quantize(device):
    x = _random(4, 1536, device=device)
    out = torch.empty(4, 1536, device=device, dtype=torch.float8_e4m3fn)
    scale = _poisoned(4, device=device, dtype=torch.float32)
    elementwise.quantize(x, out, scale)
    _require(reference.relative_error(out.float() * scale[:, None], x), FP8_TOLERANCE, "quantize")


def check_merge(device):
    batch, queries, heads, head_dim, cut = 2, 5, 12, 64, 7
    q, k, v = (_random(batch, n, heads, head_dim, device=device) for n in (queries, 16, 16))
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float())
    parts = []
    for keys in (slice(0, cut), slice(cut, None)):
        part = scores[..., keys]
        output = torch.einsum("bhqk,bkhd->bqhd", part.softmax(-1), v[:, keys].float())
        parts += [output.to(q.dtype).contiguous(), part.logsumexp(-1).contiguous()]
    out = _poisoned(batch, queries, heads, head_dim, device=device)
    elementwise.merge_states(*parts, out)
    expected = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v.float())
    _require(reference.relative_error(out, expected), TOLERANCE, "merge")


def _dot_dtype(device):
    """Triton's interpreter multiplies bf16 as if it were integers: without a GPU the decode check runs in fp16."""
    return torch.bfloat16 if device == "cuda" else torch.float16


def _decode_case(device, kv_dtype, q_heads, kv_heads, head_dim, contexts):
    pages_each = -(-max(contexts) // PAGE)
    pages = len(contexts) * pages_each
    table = torch.randperm(pages, device=device).to(torch.int32).view(len(contexts), pages_each)
    cache = [_random(pages, PAGE, kv_heads, head_dim, device=device).to(kv_dtype) for _ in range(2)]
    # A strided q, as it lies inside the fused projection's output.
    q = _random(len(contexts), (q_heads + 2 * kv_heads) * head_dim, device=device, dtype=_dot_dtype(device))
    out = _poisoned(len(contexts), q_heads * head_dim, device=device, dtype=q.dtype)
    lengths = torch.tensor(contexts, device=device, dtype=torch.int32)
    plan = triton_decode.DecodePlan(len(contexts), max(contexts), q_heads, kv_heads, head_dim, 132,
                                    kv_dtype.itemsize, device)
    return plan, q, cache, table, lengths, out


def check_decode(device, kv_dtype=None):
    kv_dtype = kv_dtype or _dot_dtype(device)
    for q_heads, kv_heads, head_dim, contexts in (
            (8, 2, 64, [1, 70, 2000]), (5, 1, 128, [257]), (4, 4, 64, [64] * 80), (32, 1, 128, [100, 130])):
        plan, q, (k_cache, v_cache), table, lengths, out = _decode_case(
            device, kv_dtype, q_heads, kv_heads, head_dim, contexts)
        plan.run(q, k_cache, v_cache, table, lengths, out)
        for i, context in enumerate(contexts):
            k, v = (c[table[i].long()].float().reshape(1, -1, kv_heads, head_dim)[:, :context] for c in (k_cache, v_cache))
            query = q[i, :q_heads * head_dim].view(1, 1, q_heads, head_dim)
            expected = reference.attention(query, k, v).reshape(-1)
            _require(reference.relative_error(out[i], expected), TOLERANCE,
                     f"decode {q_heads}/{kv_heads}/{head_dim} context {context} splits {plan.splits}")


def check_decode_fp8(device):
    check_decode(device, torch.float8_e4m3fn)


TRITON_CHECKS = {
    "norm": check_norm, "rope": check_rope, "act": check_act, "quantize": check_quantize, "merge": check_merge,
    "decode": check_decode, "decode_fp8": check_decode_fp8,
}


def run_checks(checks, device, log, crashed=()):
    """Runs each check; returns the names that failed with the reason, in order. Nothing here raises.

    `crashed` names checks that broke the CUDA context of an earlier process: they fail without being run again.
    """
    failed = {name: "broke the CUDA context" for name in crashed}
    for name, check in checks.items():
        if name in failed:
            continue
        try:
            check(device)
        except Exception as error:  # a compiler error and a wrong number have the same consequence
            failed[name] = f"{type(error).__name__}: {str(error)[:600]}"
            log(f"SELF-CHECK FAILED {name}: {failed[name]}")
    log(f"self-checks: {len(checks) - len(failed)} of {len(checks)} passed")
    return failed
