"""Are torch's own kernels called the way we mean? Masks, layouts, scales and offsets, on the GPU only."""
import torch

import attention_calls
import reference
from family_gemm import expert_offsets
from self_checks import FP8_TOLERANCE, TOLERANCE, _poisoned, _random, _require


def _fp8(*shape, device):
    return torch.randn(*shape, device=device).to(torch.float8_e4m3fn)


def check_gemm_fp8(device):
    a, b = _fp8(24, 512, device=device), _fp8(256, 512, device=device)
    one = torch.ones((), device=device)
    out = _poisoned(24, 256, device=device)
    torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True, out=out)
    _require(reference.relative_error(out, a.float() @ b.float().t()), FP8_TOLERANCE, "scaled_mm")


def _grouped_reference(a, b, offsets):
    ends = offsets.tolist()
    return torch.cat([a[s:e].float() @ b[i].float().t() for i, (s, e) in enumerate(zip([0] + ends, ends))])


def check_grouped_bf16(device):
    for rows in (3, 70):  # 3: most experts empty
        a, b = _random(rows, 256, device=device), _random(8, 512, 256, device=device)
        offsets = expert_offsets(rows, 8, device)
        out = torch._grouped_mm(a, b.transpose(1, 2), offs=offsets)
        _require(reference.relative_error(out, _grouped_reference(a, b, offsets)), TOLERANCE, f"grouped_mm {rows}")


def check_grouped_fp8(device):
    for rows in (3, 70):
        a, b = _fp8(rows, 256, device=device), _fp8(8, 512, 256, device=device)
        offsets = expert_offsets(rows, 8, device)
        out = torch._scaled_grouped_mm(
            a, b.transpose(1, 2), torch.ones(rows, device=device), torch.ones(8, 512, device=device), offs=offsets,
            out_dtype=torch.bfloat16, use_fast_accum=True)
        _require(reference.relative_error(out, _grouped_reference(a, b, offsets)), FP8_TOLERANCE, f"scaled_grouped_mm {rows}")


def _qkv(device, queries, context):
    q = _random(2, queries, 12, 128, device=device)[:, :, :8]
    return q, _random(2, context, 2, 128, device=device), _random(2, context, 2, 128, device=device)


def check_prefill_cudnn(device):
    q, k, v = _qkv(device, 200, 200)
    out = attention_calls.prefill_cudnn(q, k, v)
    if not out.is_contiguous():
        raise AssertionError("cuDNN's output is not dense in [batch, tokens, heads, head_dim]")
    _require(reference.relative_error(out, reference.attention(q, k, v)), TOLERANCE, "cudnn prefill")


def check_chunk_cudnn(device):
    q, k, v = _qkv(device, 100, 357)
    out = attention_calls.chunk_cudnn(q, k, v, _poisoned(*q.shape, device=device))
    _require(reference.relative_error(out, reference.attention(q, k, v)), TOLERANCE, "cudnn chunk")


def check_flash(device):
    for queries, context in ((200, 200), (100, 357), (1, 357)):
        q, k, v = _qkv(device, queries, context)
        out = attention_calls.flash(q, k, v, queries > 1)
        _require(reference.relative_error(out, reference.attention(q, k, v)), TOLERANCE, f"flash {queries} of {context}")


TORCH_CHECKS = {
    "gemm_fp8": check_gemm_fp8, "grouped_bf16": check_grouped_bf16, "grouped_fp8": check_grouped_fp8,
    "prefill_cudnn": check_prefill_cudnn, "chunk_cudnn": check_chunk_cudnn, "flash": check_flash,
}
