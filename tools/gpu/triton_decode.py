"""Decode attention in Triton: one query token a sequence over a paged KV cache, split over the context.

All query heads that share a KV head form the rows of one small matrix product, so that each KV byte is read once.
Where batch * kv_heads cannot fill the chip, the context is split over more programs and a second kernel joins the parts.
"""
import torch
import triton
import triton.language as tl

from sweep_plan import PAGE

MAX_SPLITS = 128
# Pipeline depth as Triton counts it: half goes to the page look-up, which leaves three tiles of K and V in flight
# (104 KB of shared memory with bf16 at head_dim 128, the best of 3, 5, 7, 9 on an H200).
STAGES = 7
FULL_TILE_BYTES = 32 * 2**10  # K and V of a page, bf16 at head_dim 128: one such program saturates a multiprocessor
SPLIT_OVERHEAD_TILES = 3  # start, first loads and write-back of a program, in tiles of work
LOG2_E = 1.4426950408889634


@triton.jit(do_not_specialize=["q_stride", "table_stride", "kv_heads", "group", "splits"])
def _split_kernel(q_ptr, k_ptr, v_ptr, out_ptr, partial_ptr, lse_ptr, table_ptr, context_ptr, scale_log2,
                  q_stride, table_stride, kv_heads, group, splits,
                  HEAD_DIM: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, DIRECT: tl.constexpr,
                  STAGES: tl.constexpr):
    kv_head, split, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    context = tl.load(context_ptr + sequence)
    tiles = tl.cdiv(context, TILE)
    tiles_each = tl.cdiv(tiles, splits)
    first = split * tiles_each
    last = tl.minimum(first + tiles_each, tiles)

    rows = tl.arange(0, ROWS)
    keys = tl.arange(0, TILE)
    depth = tl.arange(0, HEAD_DIM)
    live = rows < group
    heads = kv_head * group + rows
    q = tl.load(q_ptr + sequence * q_stride + heads[:, None] * HEAD_DIM + depth[None, :], mask=live[:, None], other=0.0)
    # The chip turns fp8 into fp16 with one instruction for two numbers; bf16 takes several.
    q = q.to(q.dtype if k_ptr.dtype.element_ty == q.dtype else tl.float16)
    tile_offsets = keys[:, None] * (kv_heads * HEAD_DIM) + depth[None, :]

    peak = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    accumulator = tl.zeros([ROWS, HEAD_DIM], tl.float32)
    for tile in tl.range(first, last, num_stages=STAGES):
        page = tl.load(table_ptr + sequence * table_stride + tile).to(tl.int64)
        base = page * TILE * kv_heads * HEAD_DIM + kv_head * HEAD_DIM
        k = tl.load(k_ptr + base + tile_offsets).to(q.dtype)
        v = tl.load(v_ptr + base + tile_offsets).to(q.dtype)
        scores = tl.dot(q, tl.trans(k)) * scale_log2
        scores = tl.where((tile * TILE + keys)[None, :] < context, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        rescale = tl.exp2(peak - new_peak)
        weights = tl.exp2(scores - new_peak[:, None])
        total = total * rescale + tl.sum(weights, axis=1)
        accumulator = tl.dot(weights.to(q.dtype), v, accumulator * rescale[:, None])
        peak = new_peak

    # A short sequence may leave its last splits without a tile: total stays 0 and the log-sum-exp -inf drops them.
    result = accumulator / tl.where(total > 0, total, 1.0)[:, None]
    q_heads = kv_heads * group
    if DIRECT:
        at = (sequence * q_heads + heads[:, None]) * HEAD_DIM + depth[None, :]
        tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty), mask=live[:, None])
    else:
        part = (sequence * q_heads + heads) * splits + split
        tl.store(partial_ptr + part[:, None] * HEAD_DIM + depth[None, :], result, mask=live[:, None])
        tl.store(lse_ptr + part, tl.where(total > 0, peak + tl.log2(total), float("-inf")), mask=live)


@triton.jit(do_not_specialize=["splits"])
def _join_kernel(partial_ptr, lse_ptr, out_ptr, splits,
                 HEAD_DIM: tl.constexpr, LIMIT: tl.constexpr, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    every = tl.arange(0, LIMIT)
    depth = tl.arange(0, HEAD_DIM)
    lse = tl.load(lse_ptr + row * splits + every, mask=every < splits, other=float("-inf"))
    peak = tl.max(lse, axis=0)
    total = tl.sum(tl.exp2(lse - peak), axis=0)
    accumulator = tl.zeros([HEAD_DIM], tl.float32)
    for start in range(0, splits, CHUNK):
        part = start + tl.arange(0, CHUNK)
        live = part < splits
        weight = tl.exp2(tl.load(lse_ptr + row * splits + part, mask=live, other=float("-inf")) - peak)
        values = tl.load(partial_ptr + (row * splits + part)[:, None] * HEAD_DIM + depth[None, :],
                         mask=live[:, None], other=0.0)
        accumulator += tl.sum(values * weight[:, None], axis=0)
    tl.store(out_ptr + row * HEAD_DIM + depth, (accumulator / total).to(out_ptr.dtype.element_ty))


def choose_splits(programs, context, slots):
    """Splits that minimise waves * tiles per program, counting each program's fixed work and the join's reads."""
    tiles = -(-context // PAGE)
    best, best_work = 1, None
    for splits in range(1, min(MAX_SPLITS, tiles) + 1):
        waves = -(-programs * splits // slots)
        work = waves * (-(-tiles // splits) + SPLIT_OVERHEAD_TILES) + (0 if splits == 1 else 4 + splits / 16)
        if best_work is None or work < best_work:
            best, best_work = splits, work
    return best


class DecodePlan:
    """Scratch and split count of one decode shape; a serving engine fixes these when it captures its graphs."""

    def __init__(self, batch, context, q_heads, kv_heads, head_dim, multiprocessors, kv_itemsize=2, device="cuda"):
        self.q_heads, self.kv_heads, self.head_dim = q_heads, kv_heads, head_dim
        # Smaller tiles leave a lone program waiting for memory: two share a multiprocessor then.
        each = 1 if 2 * PAGE * head_dim * kv_itemsize >= FULL_TILE_BYTES else 2
        self.splits = choose_splits(batch * kv_heads, context, each * multiprocessors)
        parts = batch * q_heads * self.splits if self.splits > 1 else 1
        self.partial = torch.empty(parts, head_dim, device=device, dtype=torch.float32)
        self.lse = torch.empty(parts, device=device, dtype=torch.float32)

    def run(self, q, k_cache, v_cache, block_table, contexts, out):
        """q is [batch, >= q_heads * head_dim] (rows may be strided); caches are [pages, PAGE, kv_heads, head_dim]."""
        batch = q.shape[0]
        group = self.q_heads // self.kv_heads
        _split_kernel[(self.kv_heads, self.splits, batch)](
            q, k_cache, v_cache, out, self.partial, self.lse, block_table, contexts,
            LOG2_E / self.head_dim ** 0.5, q.stride(0), block_table.stride(0), self.kv_heads, group, self.splits,
            HEAD_DIM=self.head_dim, TILE=PAGE, ROWS=max(16, triton.next_power_of_2(group)), DIRECT=self.splits == 1,
            STAGES=STAGES, num_warps=4)
        if self.splits > 1:
            _join_kernel[(batch * self.q_heads,)](
                self.partial, self.lse, out, self.splits,
                HEAD_DIM=self.head_dim, LIMIT=MAX_SPLITS, CHUNK=16, num_warps=2)
