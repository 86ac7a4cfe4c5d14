"""Which rows are measured, and in which order: pure Python, so that --dry-run needs neither a GPU nor torch.

Rows of a family are ordered coarse to fine. Each axis value has a level (0 for the ends, 1 for the middle, 2 for the
quarters ...) and rows are sorted by the sum over their axes, so that any prefix of the list covers the whole grid.
"""
import hashlib
import itertools

from plan_axes import SWEEP

TORCH = "torch2.11"
BF16_RATE, FP8_RATE, BANDWIDTH = 700e12, 1300e12, 4.2e12  # for time estimates only
ROW_OVERHEAD = 4e-3  # set-up, capture and CSV of one row, without compilation
PLAN_SECONDS = 45e-3  # cuDNN builds a plan for every shape
SUSTAINED_SECONDS = 2.2
MAX_ROW_CALL = 25e-3  # a call longer than this spends the budget of dozens of rows
PAGE = 64  # KV tokens a page; one page is also one tile of the decode kernel
KV_LIMIT = 48 * 2**30


def level(index, count):
    """How fine a grid must be before it holds position `index` of `count`: 0 for both ends, then by bisection."""
    low, high, depth = 0, count - 1, 0
    if index in (low, high):
        return 0
    while True:
        depth += 1
        middle = (low + high) // 2
        if index == middle:
            return depth
        low, high = (low, middle) if index < middle else (middle, high)


def _tie_break(row):
    """Spreads rows of equal level over the grid; the same on every run."""
    return hashlib.sha256(repr(sorted(row.items())).encode()).digest()


def _grid(axes, make):
    """Rows of the product of `axes`, coarse to fine; `make` turns one value of each axis into a row or None."""
    leveled = [[(level(i, len(axis)), value) for i, value in enumerate(axis)] for axis in axes]
    rows = []
    for combination in itertools.product(*leveled):
        row = make(*(value for _, value in combination))
        if row is not None and call_seconds(row) <= MAX_ROW_CALL:
            rows.append((sum(depth for depth, _ in combination), _tie_break(row), row))
    return [row for _, _, row in sorted(rows, key=lambda item: item[:2])]


def call_seconds(row):
    """Roofline time of one call plus a launch floor: good to a factor of two, which is what a plan needs."""
    flops, moved = work(row)
    rate = FP8_RATE if row["dtype"] == "fp8" else BF16_RATE
    if row["family"] == "attn_prefill":
        rate = 350e12
    bandwidth = 50e9 if row["family"] in ("copy_h2d", "copy_d2h") else BANDWIDTH
    return 3e-6 + max(flops / rate, moved / bandwidth)


def work(row):
    """Flops and least bytes of a row."""
    family, size = row["family"], (1 if row["dtype"] == "fp8" else 2)
    if family == "gemm":
        m, n, k = row["m"], row["n"], row["k"]
        return 2 * m * n * k, size * k * (m + n) + 2 * m * n
    if family == "grouped_gemm":
        m, n, k = row["m"], row["n"], row["k"]
        return 2 * m * n * k, size * (m * k + min(m, row["experts"]) * n * k) + 2 * m * n
    if family == "attn_prefill":
        batch, q, context, heads, dim = (row[c] for c in ("batch", "query_len", "context_len", "q_heads", "head_dim"))
        flops = 4 * batch * heads * dim * (q * (context - q) + q * (q + 1) / 2)
        return flops, 4 * batch * dim * (heads * q + row["kv_heads"] * context)
    if family == "attn_decode":
        return 0, 2 * (1 if row["kv_dtype"] == "fp8" else 2) * kv_elements(row)
    if family in ("copy", "copy_h2d", "copy_d2h"):
        return 0, row["bytes"] * (2 if family == "copy" else 1)
    width = {"norm": 4, "act": 3, "embed": 2, "sample": 1, "quantize": 1.5}
    if family == "rope":
        return 0, 4 * row["tokens"] * (row["q_heads"] + 2 * row["kv_heads"]) * row["head_dim"]
    return 0, 2 * width[family] * row["tokens"] * row["hidden"]


def kv_elements(row):
    return row["batch"] * row["context_len"] * row["kv_heads"] * row["head_dim"]


def _gemm(dtype, axes):
    impl = f"{TORCH}:cublas" if dtype == "bf16" else f"{TORCH}:scaled_mm"
    pairs = sorted(axes.gemm_nk, key=lambda pair: (pair[0] * pair[1], pair))
    return _grid([axes.gemm_m, pairs], lambda m, nk: dict(family="gemm", impl=impl, dtype=dtype, m=m, n=nk[0], k=nk[1]))


def _grouped(dtype, axes):
    impl = f"{TORCH}:grouped_mm" if dtype == "bf16" else f"{TORCH}:scaled_grouped_mm"
    return _grid([axes.grouped_m, axes.grouped_nke], lambda m, nke: dict(
        family="grouped_gemm", impl=impl, dtype=dtype, m=m, n=nke[0], k=nke[1], experts=nke[2], skew="balanced"))


def _attention(family, impl, batch, query, context, heads, kv_dtype="bf16"):
    row = dict(family=family, impl=impl, dtype="bf16", kv_dtype=kv_dtype, batch=batch, query_len=query,
               context_len=context, q_heads=heads[0], kv_heads=heads[1], head_dim=heads[2], window=0)
    return None if 2 * 2 * kv_elements(row) > KV_LIMIT or batch * query > 65536 else row


def _prefill(impl, head_configs, lengths, batches):
    return _grid([lengths, batches, head_configs], lambda length, batch, heads: _attention(
        "attn_prefill", f"{TORCH}:{impl}", batch, length, length, heads))


def _chunk(impl, head_configs, queries, prefixes, batches):
    return _grid([queries, prefixes, batches, head_configs], lambda query, prefix, batch, heads: _attention(
        "attn_prefill", f"{TORCH}:{impl}", batch, query, prefix + query, heads))


def _decode(impl, head_configs, batches, contexts, kv_dtype="bf16"):
    return _grid([contexts, batches, head_configs], lambda context, batch, heads: _attention(
        "attn_decode", impl, batch, 1, context, heads, kv_dtype))


def _elementwise(family, impl, hidden, tokens):
    """Each shape cold and, as `:warm`, with its operands in L2, where the previous kernel of a real step left them."""
    return _grid([tokens, hidden, ["", ":warm"]], lambda count, width, state: dict(
        family=family, impl=impl + state, dtype="bf16", tokens=count, hidden=width))


def _rope(axes):
    return _grid([axes.tokens, axes.heads, ["", ":warm"]], lambda count, heads, state: dict(
        family="rope", impl="triton:rope" + state, dtype="bf16", tokens=count, q_heads=heads[0], kv_heads=heads[1],
        head_dim=heads[2]))


def _copies(family, sizes):
    return _grid([sizes], lambda size: dict(family=family, impl=f"{TORCH}:memcpy", dtype="bf16", bytes=size))


def _sustained(axes):
    """Twins of short rows, replayed without rest: what the power limit makes of them, and the power they draw."""
    rows = [dict(family="gemm", impl=impl, dtype=dtype, m=m, n=n, k=k)
            for m in (4096, 64, 512, 16384, 1024, 256, 16)
            for dtype, impl in (("bf16", f"{TORCH}:cublas"), ("fp8", f"{TORCH}:scaled_mm"))
            for n, k in axes.sustained_nk]
    heads = axes.heads[0]
    rows += [_attention("attn_prefill", f"{TORCH}:cudnn", batch, length, length, heads)
             for batch, length in ((1, 8192), (8, 1024))]
    rows += [_attention("attn_decode", "triton:decode", 96, 1, context, heads, dtype)
             for context, dtype in ((4096, "bf16"), (1024, "bf16"), (4096, "fp8"))]
    rows += [dict(family="grouped_gemm", impl=f"{TORCH}:grouped_mm", dtype="bf16", m=m, n=1536, k=2048, experts=128,
                  skew="balanced") for m in (64, 8192)]
    rows += [dict(family=family, impl=f"triton:{family}", dtype="bf16", tokens=4096, hidden=hidden)
             for family, hidden in (("norm", 4096), ("act", 14336))]
    rows.append(dict(family="copy", impl=f"{TORCH}:memcpy", dtype="bf16", bytes=2**28))
    return [dict(row, impl=row["impl"] + ":sustained") for row in rows]


def build_plan(axes=SWEEP):
    """Groups of rows by name, with the share of the time budget each may use before the others had their turn."""
    few, heads, tokens = axes.heads[:4], axes.heads, axes.tokens
    lengths, batches = axes.prefill_lengths, axes.prefill_batches
    return {
        "gemm_bf16": (0.22, _gemm("bf16", axes)),
        "attn_decode": (0.15, _decode("triton:decode", heads, axes.decode_batches, axes.decode_contexts)),
        "attn_prefill": (0.10, _prefill("cudnn", heads, lengths, batches)),
        "norm": (0.02, _elementwise("norm", "triton:norm", axes.hidden, tokens)),
        "rope": (0.02, _rope(axes)),
        "act": (0.02, _elementwise("act", "triton:act", axes.inter, tokens)),
        "embed": (0.01, _elementwise("embed", f"{TORCH}:index_select", axes.hidden[::2], tokens)),
        "sample": (0.01, _elementwise("sample", f"{TORCH}:argmax", axes.vocabulary, axes.sample_tokens)),
        "copy": (0.01, _copies("copy", axes.copy_bytes)),
        "copy_h2d": (0.01, _copies("copy_h2d", axes.host_copy_bytes)),
        "copy_d2h": (0.01, _copies("copy_d2h", axes.host_copy_bytes)),
        "gemm_fp8": (0.16, _gemm("fp8", axes)),
        "sustained": (0.18, _sustained(axes)),
        "attn_chunk": (0.08, _chunk("cudnn+merge", heads[:5], axes.chunk_queries, axes.chunk_prefixes, axes.chunk_batches)),
        "grouped_bf16": (0.04, _grouped("bf16", axes)),
        "grouped_fp8": (0.03, _grouped("fp8", axes)),
        "quantize": (0.01, _elementwise("quantize", "triton:quantize", axes.hidden, tokens)),
        "attn_decode_fp8": (0.03, _decode("triton:decode", heads[:5], axes.decode_batches[::2], axes.decode_contexts[::2], "fp8")),
        "attn_prefill_flash": (0.02, _prefill("flash", few, lengths[::2], batches[::2])),
        "attn_chunk_flash": (0.02, _chunk("flash", few, axes.chunk_queries[::2], axes.chunk_prefixes[::2], axes.chunk_batches)),
        "attn_decode_flash": (0.01, _decode(f"{TORCH}:flash", few, axes.decode_batches[::3], axes.decode_contexts[::3])),
    }


def row_seconds(row):
    """Wall time that measuring a row takes: set-up, and seven to seventeen replays of about 0.3 ms or one call, with rests."""
    call = call_seconds(row)
    if row["impl"].endswith(":sustained"):
        return SUSTAINED_SECONDS
    graph = max(call, min(300e-6, 64 * call)) + 80e-6
    plans = PLAN_SECONDS * (row["impl"].count("cudnn") + row["impl"].count("merge"))
    return ROW_OVERHEAD + plans + 2 * call + 2.25 * graph * (2 + max(5, min(15, 20e-3 / graph)))
