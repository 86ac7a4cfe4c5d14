"""Matrix products: dense and grouped, bf16 and fp8. Weights rotate and are cold; activations are shared."""
import torch

from gpu_timer import Case


def gemm_bf16(lab, row):
    m, n, k = row["m"], row["n"], row["k"]
    a, out = lab.activation((m, k)), lab.output((m, n))
    return Case(lambda i: torch.mm(a, lab.weights.cut(i, (n, k)).t(), out=out), lab.weights.copies(n * k))


def gemm_fp8(lab, row):
    m, n, k = row["m"], row["n"], row["k"]
    a, out = lab.fp8.cut(0, (m, k)), lab.output((m, n))
    one = torch.ones((), device="cuda")

    def call(i):
        torch._scaled_mm(a, lab.fp8.cut(i, (n, k)).t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                         use_fast_accum=True, out=out)

    return Case(call, lab.fp8.copies(n * k))


def expert_offsets(m, experts, device="cuda"):
    """End row of each expert when m rows are spread as evenly as they go; with m < experts the first m get one each."""
    counts = torch.tensor([m // experts + (e < m % experts) for e in range(experts)])
    return counts.cumsum(0).to(torch.int32).to(device)


def grouped_bf16(lab, row):
    m, n, k, experts = row["m"], row["n"], row["k"], row["experts"]
    a, offsets = lab.activation((m, k)), expert_offsets(m, experts)
    return Case(lambda i: torch._grouped_mm(a, lab.weights.cut(i, (experts, n, k)).transpose(1, 2), offs=offsets),
                lab.weights.copies(experts * n * k))


def grouped_fp8(lab, row):
    m, n, k, experts = row["m"], row["n"], row["k"], row["experts"]
    a, offsets = lab.fp8.cut(0, (m, k)), expert_offsets(m, experts)
    a_scale, b_scale = torch.ones(m, device="cuda"), torch.ones(experts, n, device="cuda")

    def call(i):
        torch._scaled_grouped_mm(a, lab.fp8.cut(i, (experts, n, k)).transpose(1, 2), a_scale, b_scale, offs=offsets,
                                 out_dtype=torch.bfloat16, use_fast_accum=True)

    return Case(call, lab.fp8.copies(experts * n * k))
