"""Kernel table of a vLLM layer profile (the folder RTXPRO6000 of data/llmservingsim_profiles).

    python3 tools/calibrate/profile_table.py ../shared/data/llmservingsim_profiles/RTXPRO6000 rtx.csv [gemm,attn_decode]

One row a measured layer call, in the columns of kernel tables. The profile repeats one layer, so its passes are warm; its
attention calls store their keys and values. Mixed batches have no row: a kernel table has no columns for them.
"""

import csv
import gzip
import sys
from pathlib import Path

# Llama-3.1-8B, the only model in the profile.
HIDDEN, INTER, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY = 4096, 14336, 32, 8, 128, 128256
COLUMNS = [
    "family", "impl", "dtype", "kv_dtype", "m", "n", "k", "batch", "query_len", "context_len", "q_heads", "kv_heads",
    "head_dim", "window", "tokens", "hidden", "seconds",
]
ENGINE = "vllm_0.19.0:profile"


def products(ranks):
    """Rows and columns of each projection's weights on one of `ranks` devices."""
    return {
        "qkv_proj": ((HEADS + 2 * KV_HEADS) * HEAD_DIM // ranks, HIDDEN),
        "o_proj": (HIDDEN, HEADS * HEAD_DIM // ranks),
        "gate_up_proj": (2 * INTER // ranks, HIDDEN),
        "down_proj": (HIDDEN, INTER // ranks),
        "lm_head": (VOCABULARY // ranks, HIDDEN),
    }


def passes(ranks):
    return {
        "layernorm": ("norm", HIDDEN),
        "act_fn": ("act", INTER // ranks),
        "embedding": ("embed", HIDDEN),
    }


def layer_row(layer, tokens, ranks):
    if layer in products(ranks):
        n, k = products(ranks)[layer]
        return {"family": "gemm", "impl": ENGINE, "m": tokens, "n": n, "k": k}
    if layer in passes(ranks):
        family, width = passes(ranks)[layer]
        return {"family": family, "impl": ENGINE + ":warm", "tokens": tokens, "hidden": width}
    # Other calls than a table's: the last norm adds no residual, the rotation writes no cache, the sampler does more than
    # argmax.
    return None


def attention_row(call, ranks):
    chunk, prefix = int(call["prefill_chunk"]), int(call["kv_prefill"])
    decodes, context = int(call["n_decode"]), int(call["kv_decode"])
    heads = {"q_heads": HEADS // ranks, "kv_heads": KV_HEADS // ranks, "head_dim": HEAD_DIM, "window": 0,
             "kv_dtype": "bf16", "impl": ENGINE}
    if decodes == 0 and chunk > 0:
        return {"family": "attn_prefill", "batch": 1, "query_len": chunk, "context_len": prefix + chunk, **heads}
    if chunk == 0 and decodes > 0 and context > 0:
        return {"family": "attn_decode", "batch": decodes, "query_len": 1, "context_len": context, **heads}
    return None


def read(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        yield from csv.DictReader(file)


def rows(folder):
    for ranks in (1, 2):
        tables = folder / "meta-llama" / "Llama-3.1-8B" / "bf16" / f"tp{ranks}"
        for call in read(tables / "dense.csv"):
            yield layer_row(call["layer"], int(call["tokens"]), ranks), call
        for call in read(tables / "per_sequence.csv"):
            yield layer_row(call["layer"], int(call["sequences"]), ranks), call
        for call in read(tables / "attention.csv.gz"):
            yield attention_row(call, ranks), call


def main():
    folder, output = Path(sys.argv[1]), sys.argv[2]
    families = sys.argv[3].split(",") if len(sys.argv) > 3 else None
    with open(output, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row, call in rows(folder):
            if row is not None and (families is None or row["family"] in families):
                writer.writerow({"dtype": "bf16", **row, "seconds": float(call["time_us"]) * 1e-6})


if __name__ == "__main__":
    main()
