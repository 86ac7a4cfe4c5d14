"""The memory-bound kernels between the GEMMs, in Triton: norm, rope + KV write, activation, quantise, state merge.

Each does in one pass what serving engines fuse in one pass, so that bytes moved are the fewest possible.
Runtime sizes are not specialised: one compilation serves the whole sweep.
"""
import triton
import triton.language as tl

FP8_MAX = 448.0  # largest finite float8_e4m3fn


@triton.jit
def _norm_kernel(x_ptr, residual_ptr, weight_ptr, out_ptr, hidden, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    mask = columns < hidden
    x = tl.load(x_ptr + row + columns, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + row + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual_ptr + row + columns, x.to(residual_ptr.dtype.element_ty), mask=mask)
    inverse = tl.rsqrt(tl.sum(x * x, axis=0) / hidden + eps)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row + columns, (x * inverse * weight).to(out_ptr.dtype.element_ty), mask=mask)


def _row_warps(block):
    """16 bytes a thread and load, bounded: a row of 8192 bf16 takes 8 warps with four loads in flight each."""
    return max(4, min(16, block // 1024))


def norm(x, residual, weight, out):
    """residual += x; out = rmsnorm(residual) * weight, one program a token."""
    tokens, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    _norm_kernel[(tokens,)](x, residual, weight, out, hidden, 1e-5, BLOCK=block, num_warps=_row_warps(block))


@triton.jit(do_not_specialize=["q_heads", "kv_heads"])
def _rope_kernel(qkv_ptr, positions_ptr, slots_ptr, cos_sin_ptr, k_cache_ptr, v_cache_ptr, q_heads, kv_heads,
                 HEAD_DIM: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    half = tl.arange(0, HEAD_DIM // 2)
    total = q_heads + 2 * kv_heads
    position = tl.load(positions_ptr + token)
    slot = tl.load(slots_ptr + token)
    cos = tl.load(cos_sin_ptr + position * HEAD_DIM + half).to(tl.float32)[None, :]
    sin = tl.load(cos_sin_ptr + position * HEAD_DIM + HEAD_DIM // 2 + half).to(tl.float32)[None, :]
    source = qkv_ptr + (token * total + heads[:, None]) * HEAD_DIM + half[None, :]
    live = heads[:, None] < total
    first = tl.load(source, mask=live, other=0.0)
    second = tl.load(source + HEAD_DIM // 2, mask=live, other=0.0)
    f, s = first.to(tl.float32), second.to(tl.float32)
    rotated_first = (f * cos - s * sin).to(first.dtype)
    rotated_second = (s * cos + f * sin).to(first.dtype)
    is_q = heads[:, None] < q_heads
    tl.store(source, rotated_first, mask=is_q)
    tl.store(source + HEAD_DIM // 2, rotated_second, mask=is_q)
    is_k = (heads[:, None] >= q_heads) & (heads[:, None] < q_heads + kv_heads)
    k_target = k_cache_ptr + (slot * kv_heads + heads[:, None] - q_heads) * HEAD_DIM + half[None, :]
    tl.store(k_target, rotated_first, mask=is_k)
    tl.store(k_target + HEAD_DIM // 2, rotated_second, mask=is_k)
    is_v = (heads[:, None] >= q_heads + kv_heads) & live
    v_target = v_cache_ptr + (slot * kv_heads + heads[:, None] - q_heads - kv_heads) * HEAD_DIM + half[None, :]
    tl.store(v_target, first, mask=is_v)
    tl.store(v_target + HEAD_DIM // 2, second, mask=is_v)


def rope(qkv, positions, slots, cos_sin, k_cache, v_cache, q_heads, kv_heads, head_dim):
    """Rotates q in place; writes rotated k, and v, to their cache slots. Caches are [slots, kv_heads, head_dim]."""
    heads = 8
    grid = (qkv.shape[0], triton.cdiv(q_heads + 2 * kv_heads, heads))
    _rope_kernel[grid](qkv, positions, slots, cos_sin, k_cache, v_cache, q_heads, kv_heads,
                       HEAD_DIM=head_dim, HEADS=heads, num_warps=4)


@triton.jit
def _act_kernel(gate_up_ptr, out_ptr, inter, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < inter
    gate = tl.load(gate_up_ptr + token * 2 * inter + columns, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + token * 2 * inter + inter + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * inter + columns, (gate * tl.sigmoid(gate) * up).to(out_ptr.dtype.element_ty), mask=mask)


def act(gate_up, out):
    """out = silu(gate) * up, with gate and up side by side as the fused projection leaves them."""
    tokens, inter = out.shape
    block = 1024
    _act_kernel[(tokens, triton.cdiv(inter, block))](gate_up, out, inter, BLOCK=block, num_warps=4)


@triton.jit
def _quantize_kernel(x_ptr, out_ptr, scale_ptr, hidden, limit, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < hidden
    x = tl.load(x_ptr + token * hidden + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-6) / limit
    tl.store(scale_ptr + token, scale)
    scaled = tl.minimum(tl.maximum(x / scale, -limit), limit)
    tl.store(out_ptr + token * hidden + columns, scaled.to(out_ptr.dtype.element_ty), mask=mask)


def quantize(x, out, scale):
    """Per-token dynamic fp8: out = x / scale with scale = max |x| of the token / FP8_MAX."""
    tokens, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    _quantize_kernel[(tokens,)](x, out, scale, hidden, FP8_MAX, BLOCK=block, num_warps=_row_warps(block))


@triton.jit(do_not_specialize=["heads", "query_len"])
def _merge_kernel(a_ptr, a_lse_ptr, b_ptr, b_lse_ptr, out_ptr, heads, query_len,
                  HEAD_DIM: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    mask = head < heads
    lse = (token // query_len * heads + head) * query_len + token % query_len
    a_lse = tl.load(a_lse_ptr + lse, mask=mask, other=0.0)
    b_lse = tl.load(b_lse_ptr + lse, mask=mask, other=0.0)
    share = tl.sigmoid(a_lse - b_lse)[:, None]
    at = (token * heads + head[:, None]) * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    a = tl.load(a_ptr + at, mask=mask[:, None], other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask[:, None], other=0.0).to(tl.float32)
    tl.store(out_ptr + at, (a * share + b * (1 - share)).to(out_ptr.dtype.element_ty), mask=mask[:, None])


def merge_states(a, a_lse, b, b_lse, out):
    """Joins attention over two disjoint key sets.

    a, b and out are [batch, query_len, heads, head_dim]; the log-sum-exps are [batch, heads, query_len], natural log.
    """
    batch, query_len, heads, head_dim = a.shape
    block = 8
    _merge_kernel[(batch * query_len, triton.cdiv(heads, block))](
        a, a_lse, b, b_lse, out, heads, query_len, HEAD_DIM=head_dim, HEADS=block, num_warps=4)
