"""The shapes that a plan is made of. The sweep and the sizes between its grid points calibrate; the held-out shapes, of
other models, say how good the calibration is on what it has not seen, and drawn ones say so again, with a new seed as
often as wanted. Pure Python.
"""
import random
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Axes:
    gemm_m: list
    gemm_nk: list  # fused QKV, attention output, fused gate+up, down, vocabulary; whole and tensor-parallel shards
    sustained_nk: list
    grouped_m: list
    grouped_nke: list  # expert projections on one GPU, and how many experts
    heads: list  # query heads, KV heads, width; the first ones are measured most
    prefill_lengths: list
    prefill_batches: list
    chunk_queries: list
    chunk_prefixes: list
    chunk_batches: list
    decode_batches: list
    decode_contexts: list
    tokens: list
    hidden: list
    inter: list
    vocabulary: list
    sample_tokens: list
    copy_bytes: list
    host_copy_bytes: list


SWEEP = Axes(
    gemm_m=[1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 288, 320, 384, 448, 512, 576, 640,
        768, 896, 1024, 1152, 1280, 1536, 1792, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 12288, 16384],
    gemm_nk=[
        (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096), (3072, 4096), (4096, 2048), (14336, 4096),
        (4096, 7168), (1536, 4096), (4096, 1024), (7168, 4096), (4096, 3584), (768, 4096), (4096, 512), (3584, 4096),
        (4096, 1792), (32064, 4096), (16032, 4096),  # 4096 wide, TP 1-8
        (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672), (5120, 8192), (8192, 4096), (28672, 8192), (8192, 14336),
        (2560, 8192), (8192, 2048), (14336, 8192), (8192, 7168), (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584),
        (16032, 8192), (128256, 8192),  # 8192 wide, TP 1-8
        (7168, 5120), (5120, 5120), (34816, 5120), (5120, 17408), (151936, 5120), (10240, 5120), (51200, 5120), (5120, 25600),
        (4608, 3584), (3584, 3584), (37888, 3584), (3584, 18944),
        (2112, 7168), (24576, 1536), (7168, 16384), (7168, 2048), (36864, 7168), (7168, 18432),
        (512, 512), (1024, 1024), (2048, 2048), (16384, 16384), (512, 4096), (1024, 8192), (2048, 512), (32768, 512),
        (57344, 1024), (512, 57344), (1024, 32768), (12288, 12288), (2048, 16384), (16384, 2048),
    ],
    sustained_nk=[(28672, 4096), (8192, 8192)],
    grouped_m=[1, 2, 4, 8, 16, 32, 64, 96, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 16384, 32768],
    grouped_nke=[
        (28672, 4096, 8), (4096, 14336, 8), (7168, 4096, 8), (4096, 3584, 8), (1536, 2048, 128), (2048, 768, 128),
        (1536, 4096, 128), (4096, 1536, 32), (3072, 4096, 64), (4096, 7168, 32), (7168, 2048, 32), (5760, 2880, 32),
        (2880, 2880, 32), (2816, 2048, 64), (2048, 1408, 64), (16384, 5120, 16),
    ],
    heads=[(32, 8, 128), (64, 8, 128), (8, 1, 128), (16, 2, 128), (40, 8, 128), (16, 4, 128), (4, 1, 128), (32, 32, 128),
        (32, 4, 128), (28, 4, 128), (32, 8, 64), (64, 8, 64), (16, 16, 64)],
    prefill_lengths=[128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768],
    prefill_batches=[1, 2, 4, 8, 16, 32],
    chunk_queries=[64, 128, 256, 512, 1024, 2048, 4096, 8192],
    chunk_prefixes=[128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 122880],
    chunk_batches=[1, 4],
    decode_batches=[1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
    decode_contexts=[128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 65536, 131072],
    tokens=[1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 768, 1024, 2048, 4096, 8192, 16384],
    hidden=[1024, 2048, 2880, 3584, 4096, 5120, 7168, 8192, 16384],
    inter=[1024, 1792, 3584, 7168, 14336, 17408, 28672],
    vocabulary=[16032, 32000, 64128, 128256, 151936],
    sample_tokens=[1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 512],
    copy_bytes=sorted([4**i * 2**12 for i in range(9)] + [i * 2**20 for i in (3, 12, 48, 96, 384)]),
    host_copy_bytes=[2**i for i in (6, 8, 10, 12, 14, 16, 18, 20, 21, 22, 24, 26, 28)],
)

# Qwen2.5-32B (whole and TP 4), Gemma-3-27B (whole and TP 2), Mistral-Large-2 (TP 8), gpt-oss-120b, Phi-4, Llama-3.2-3B; batches,
# lengths and widths between those of the sweep, multiples of eight or not.
HELDOUT = Axes(
    gemm_m=[1, 3, 6, 10, 20, 40, 56, 72, 100, 120, 136, 176, 200, 250, 304, 350, 400, 500, 600, 700, 1000, 1400, 1900, 2300, 3500,
            4600, 7000, 10000],
    gemm_nk=[
        (55296, 5120), (5120, 27648), (152064, 5120), (1792, 5120), (5120, 1280), (13824, 5120), (5120, 6912),  # Qwen2.5-32B
        (8192, 5376), (5376, 4096), (43008, 5376), (5376, 21504), (21504, 5376), (5376, 10752),  # Gemma-3-27B
        (1792, 12288), (12288, 1536), (7168, 12288), (12288, 3584), (4096, 12288),  # Mistral-Large-2, TP 8
        (5120, 2880), (2880, 4096), (201088, 2880),  # gpt-oss-120b
        (7680, 5120), (35840, 5120), (5120, 17920),  # Phi-4
        (5120, 3072), (3072, 3072), (16384, 3072), (3072, 8192),  # Llama-3.2-3B
    ],
    sustained_nk=[(43008, 5376), (5376, 10752)],
    grouped_m=[3, 12, 48, 100, 200, 700, 1500, 3000, 6000, 12000],
    grouped_nke=[(5760, 2880, 128), (2880, 2880, 128), (2816, 4096, 128), (4096, 1408, 128), (32768, 6144, 8), (6144, 16384, 8)],
    heads=[(40, 10, 128), (24, 8, 128), (32, 16, 128), (12, 1, 128), (10, 2, 128), (48, 4, 128), (16, 8, 128), (32, 4, 64)],
    prefill_lengths=[200, 450, 700, 1300, 2500, 5000, 10000, 20000],
    prefill_batches=[1, 3, 6, 12],
    chunk_queries=[96, 300, 700, 1500, 3000],
    chunk_prefixes=[300, 1500, 3000, 6000, 12000, 30000],
    chunk_batches=[1, 3],
    decode_batches=[1, 3, 6, 10, 20, 40, 56, 80, 112, 160, 224, 320],
    decode_contexts=[200, 700, 1300, 2500, 5000, 10000, 20000, 50000, 100000],
    tokens=[1, 3, 10, 24, 50, 100, 160, 300, 600, 1500, 3000, 6000],
    hidden=[1536, 2304, 3072, 5376, 6144, 12288],
    inter=[2304, 6912, 8192, 13824, 17920, 21504, 27648],
    vocabulary=[19008, 32768, 50176, 100352, 152064, 201088, 262208],
    sample_tokens=[1, 3, 6, 12, 24, 48, 96, 160, 220, 400],
    copy_bytes=[i * 2**10 for i in (7, 100, 1500, 25000, 120000)],
    host_copy_bytes=[i * 2**10 for i in (3, 40, 700, 5000, 90000)],
)

# The sweep's weights and heads at sizes between its grid points. Tiles make time a staircase, and the grid, being of round
# numbers, sees only its edges: products at 200 rows and prompts of 200 tokens take as long as 256 do.
BETWEEN = replace(
    SWEEP,
    gemm_m=[3, 5, 6, 10, 20, 28, 40, 56, 72, 88, 104, 120, 136, 150, 152, 176, 184, 208, 225, 240, 248, 272, 304, 333, 336, 352, 368,
            416, 432, 450, 480, 544, 608, 672, 704, 736, 777, 832, 960, 1088, 1111, 1216, 1408, 1664, 1920, 2304, 2816, 3584, 4608,
            7168, 10240],
    grouped_m=[3, 6, 12, 24, 48, 80, 160, 192, 320, 448, 640, 768, 1536, 3072, 6144, 12288],
    prefill_lengths=[100, 192, 230, 320, 448, 600, 640, 900, 1200, 1800, 2300, 3500, 7000, 14000],
    prefill_batches=[1, 2, 4, 8, 16],
    chunk_queries=[100, 200, 450, 900, 1400, 2500],
    chunk_prefixes=[200, 700, 1400, 2900, 5000, 11000, 25000, 90000],
    decode_batches=[1, 3, 5, 6, 10, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448],
    decode_contexts=[100, 192, 230, 350, 600, 900, 1400, 2200, 3500, 4500, 7000, 9000, 18000, 45000, 90000],
    tokens=[3, 6, 12, 24, 48, 80, 160, 320, 640, 1536, 3072, 6144],
    vocabulary=[24000, 50304, 100352, 140000, 200064, 256000],
)

PLANS = {"sweep": SWEEP, "between": BETWEEN, "heldout": HELDOUT}


def drawn(seed):
    """Axes drawn at random over the ranges of the sweep: sizes log-uniform, widths in steps of 64 as models have them."""
    source = random.Random(seed)

    def sizes(count, low, high, step=1):
        found = set()
        while len(found) < count:
            found.add(max(low, round(low * (high / low) ** source.random() / step) * step))
        return sorted(found)

    def pair(*highs):
        return tuple(sizes(1, 512, high, 64)[0] for high in highs)

    return Axes(
        gemm_m=sizes(24, 1, 16384),
        gemm_nk=[pair(65536, 16384) for _ in range(24)],
        sustained_nk=[pair(32768, 8192)],
        grouped_m=sizes(10, 1, 32768),
        grouped_nke=[pair(16384, 8192) + (source.choice([8, 16, 32, 64, 128]),) for _ in range(6)],
        heads=list(dict.fromkeys(
            (group * kv, kv, width) for group, kv, width in
            ((source.choice([1, 2, 3, 4, 5, 6, 8, 12]), source.choice([1, 2, 4, 5, 8]), source.choice([64, 128, 128]))
             for _ in range(8)))),
        prefill_lengths=sizes(9, 100, 32768),
        prefill_batches=sizes(4, 1, 24),
        chunk_queries=sizes(5, 64, 8192),
        chunk_prefixes=sizes(6, 128, 100000),
        chunk_batches=sizes(2, 1, 4),
        decode_batches=sizes(12, 1, 512),
        decode_contexts=sizes(10, 100, 131072),
        tokens=sizes(12, 1, 16384),
        hidden=sizes(6, 1024, 16384, 64),
        inter=sizes(6, 1024, 28672, 64),
        vocabulary=sizes(6, 16000, 262144, 64),
        sample_tokens=sizes(8, 1, 512),
        copy_bytes=sizes(6, 4096, 2**28, 256),
        host_copy_bytes=sizes(6, 64, 2**28, 64),
    )
