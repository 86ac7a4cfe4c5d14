"""One line a group of the plan: what builds its rows' calls, and which self-checks it stands on."""
import family_attention
import family_elementwise
import family_gemm

GROUPS = {
    "gemm_bf16": (family_gemm.gemm_bf16, ()),
    "gemm_fp8": (family_gemm.gemm_fp8, ("gemm_fp8",)),
    "grouped_bf16": (family_gemm.grouped_bf16, ("grouped_bf16",)),
    "grouped_fp8": (family_gemm.grouped_fp8, ("grouped_fp8",)),
    "attn_prefill": (family_attention.prefill_cudnn, ("prefill_cudnn",)),
    "attn_chunk": (family_attention.chunk_cudnn, ("chunk_cudnn", "merge")),
    "attn_decode": (family_attention.decode_triton, ("decode",)),
    "attn_decode_fp8": (family_attention.decode_triton, ("decode_fp8",)),
    "attn_prefill_flash": (family_attention.prefill_flash, ("flash",)),
    "attn_chunk_flash": (family_attention.prefill_flash, ("flash",)),
    "attn_decode_flash": (family_attention.decode_flash, ("flash",)),
    "norm": (family_elementwise.norm, ("norm",)),
    "rope": (family_elementwise.rope, ("rope",)),
    "act": (family_elementwise.act, ("act",)),
    "quantize": (family_elementwise.quantize, ("quantize",)),
    "embed": (family_elementwise.embed, ()),
    "sample": (family_elementwise.sample, ()),
    "copy": (family_elementwise.copy_device, ()),
    "copy_h2d": (family_elementwise.copy_to_device, ()),
    "copy_d2h": (family_elementwise.copy_to_host, ()),
}


def _sustained(lab, row):
    """A sustained row is built like its short twin, whose group its family and dtype name."""
    group = {"gemm": f"gemm_{row['dtype']}", "grouped_gemm": f"grouped_{row['dtype']}"}.get(row["family"], row["family"])
    return GROUPS[group][0](lab, row)


GROUPS["sustained"] = (_sustained, ("gemm_fp8", "grouped_bf16", "prefill_cudnn", "decode", "decode_fp8", "norm", "act"))
