"""Layers of Megatron-Core on Transformer Engine that train, on one GPU: wall and device time, kernels, and what the device waits.

    python3 tools/gpu/megatron_layers.py --out DIR [--budget-s 250] [--cases qwen3,gpt_oss]

Both packages must be importable (PyPI: megatron-core, transformer-engine with its PyTorch extension), and for hybrids mamba-ssm,
causal-conv1d and fla-core. A device of an expert-parallel
job is stood in for by a mixture of as many experts as it would hold, among which each token chooses as many copies as would
reach one device: same products, same passes, no exchange. Routing is forced to balance, as benchmarks of mixtures do.
DIR/megatron_layers.csv: one row for each case and way (forward, backward), seconds of one layer in micro-batches after the first:
wall (between events on the device, the host running ahead as far as it can), busy (union of its kernels, from an idle device), kernels
launched, and host (wall of the same layers with 256 tokens, where kernels are short). DIR/megatron_kernels.csv: kernels by name, of one layer.
"""
import argparse
import json
import os
import pathlib
import statistics
import time

import torch
from torch.profiler import ProfilerActivity, profile

from train_host import guarded
from train_kernels import Table

LAYERS = ["case", "precision", "hidden", "heads", "kv_heads", "head_dim", "inter", "experts", "top_k", "tokens", "layers", "way", "wall_s", "p10_s",
          "p90_s", "busy_s", "kernels", "host_s", "memory_bytes"]
KERNELS = ["case", "precision", "experts", "way", "kernel", "calls", "seconds"]
FEW_TOKENS = 256

SCANS = dict(mamba_state_dim=128, mamba_head_dim=64, mamba_num_heads=64, mamba_num_groups=8, is_hybrid_model=True, gated_linear_unit=False,
             bias_activation_fusion=False, apply_rope_fusion=False)
NEMOTRON = dict(shape=(2688, 32, 2, 128, 1856), top_k=6, tokens=8192, activation="squared_relu",
                settings=dict(SCANS, use_fused_weighted_squared_relu=True, moe_shared_expert_intermediate_size=3712))
# hidden, heads, kv heads, head size, inner size (of an expert); experts of a device; copies of a token among them.
CASES = {
    "llama3_8b": dict(shape=(4096, 32, 8, 128, 14336), experts=[0], top_k=0, tokens=8192),
    "llama3_70b_wide": dict(shape=(8192, 64, 8, 128, 28672), experts=[0], top_k=0, tokens=4096),
    "qwen3_30b": dict(shape=(2048, 32, 4, 128, 768), experts=[8, 16, 32], top_k=8, tokens=4096, settings=dict(qk_layernorm=True)),
    "qwen3_235b": dict(shape=(4096, 64, 4, 128, 1536), experts=[4, 16], top_k=8, tokens=4096, settings=dict(qk_layernorm=True)),
    "gpt_oss_120b": dict(shape=(2880, 64, 8, 64, 2880), experts=[16], top_k=4, tokens=4096),
    # With biases, bounded gates and plain rotations and routers, as Megatron-Bridge has it; then with plain gates, too.
    "gpt_oss_120b_biased": dict(shape=(2880, 64, 8, 64, 2880), experts=[16], top_k=4, tokens=4096, activation="quick_gelu",
                                settings=dict(add_bias_linear=True, glu_linear_offset=1.0, activation_func_clamp_value=7.0, bias_dropout_fusion=False,
                                              apply_rope_fusion=False, moe_router_fusion=False)),
    "gpt_oss_120b_plain": dict(shape=(2880, 64, 8, 64, 2880), experts=[16], top_k=4, tokens=4096, activation="quick_gelu",
                               settings=dict(add_bias_linear=True, glu_linear_offset=1.0, activation_func_clamp_value=7.0, bias_dropout_fusion=False,
                                             apply_rope_fusion=False, bias_activation_fusion=False)),
    "nemotron_3_nano": dict(shape=(2688, 32, 2, 128, 1856), experts=[16], top_k=6, tokens=8192, activation="squared_relu",
                            settings=dict(gated_linear_unit=False, bias_activation_fusion=False, use_fused_weighted_squared_relu=True,
                                          apply_rope_fusion=False, moe_shared_expert_intermediate_size=3712)),
    # Blocks of hybrids, one kind at a time: scans, attention alone and experts alone; then the scans of another hybrid, and delta rules.
    "nemotron_3_nano_scan": dict(NEMOTRON, pattern="M", experts=[0]),
    "nemotron_3_nano_attention": dict(NEMOTRON, pattern="*", experts=[0]),
    "nemotron_3_nano_experts": dict(NEMOTRON, pattern="E", experts=[16]),
    "nemotron_nano_9b_scan": dict(NEMOTRON, shape=(4480, 40, 8, 128, 15680), pattern="M", experts=[0], settings=dict(SCANS, mamba_num_heads=128, mamba_head_dim=80)),
    "qwen3_next_delta": dict(shape=(2048, 16, 2, 256, 512), pattern="G", experts=[0], top_k=0, tokens=8192,
                             settings=dict(linear_num_key_heads=16, linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128)),
}


def start():
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29501", RANK="0", WORLD_SIZE="1")
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    model_parallel_cuda_manual_seed(1)


def stack_of(config, pattern):
    """Blocks of a hybrid, a letter each."""
    from megatron.core.models.mamba.mamba_layer_specs import mamba_stack_spec
    from megatron.core.process_groups_config import ProcessGroupCollection
    from megatron.core.ssm.mamba_block import MambaStack
    return MambaStack(config, mamba_stack_spec.submodules, layer_type_list=list(pattern), post_layer_norm=False,
                      pg_collection=ProcessGroupCollection.use_mpu_process_groups())


def block_of(case, experts, precision, layers):
    """Layers in a row whose gradients of weights are added up in 32 bits, in buffers as Megatron's optimizer has them."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_with_transformer_engine_spec
    from megatron.core.transformer.transformer_block import TransformerBlock
    from megatron.core.transformer.transformer_config import TransformerConfig
    from megatron.core.activations import squared_relu
    from megatron.core.fusions.fused_bias_geglu import quick_gelu
    activation = dict(quick_gelu=quick_gelu, squared_relu=squared_relu, silu=torch.nn.functional.silu)[case.get("activation", "silu")]
    hidden, heads, kv_heads, head_dim, inter = case["shape"]
    settings = dict(num_layers=layers, hidden_size=hidden, num_attention_heads=heads, num_query_groups=kv_heads, kv_channels=head_dim, ffn_hidden_size=inter,
                    add_bias_linear=False, gated_linear_unit=True, activation_func=activation, normalization="RMSNorm",
                    bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, hidden_dropout=0.0,
                    attention_dropout=0.0, bias_activation_fusion=True, bias_dropout_fusion=True, apply_rope_fusion=True, gradient_accumulation_fusion=True,
                    masked_softmax_fusion=True)
    if experts:
        settings.update(num_moe_experts=experts, moe_router_topk=min(case["top_k"], experts), moe_ffn_hidden_size=inter, moe_grouped_gemm=True,
                        moe_token_dispatcher_type="alltoall", moe_permute_fusion=True, moe_router_fusion=True, moe_router_force_load_balancing=True,
                        moe_router_dtype="fp32", moe_router_load_balancing_type="aux_loss", moe_aux_loss_coeff=1e-3)
    if precision != "bf16":
        settings.update(fp8="hybrid" if precision == "fp8_tensor" else "e4m3", fp8_recipe="tensorwise" if precision == "fp8_tensor" else "blockwise")
    settings.update(case.get("settings", {}))
    config = TransformerConfig(**settings)
    if "pattern" in case:
        block = stack_of(config, case["pattern"] * layers).cuda()
    else:
        spec = get_gpt_layer_with_transformer_engine_spec(num_experts=experts or None, moe_grouped_gemm=bool(experts), qk_layernorm=settings.get("qk_layernorm", False))
        block = TransformerBlock(config, spec, post_layer_norm=False).cuda().to(torch.bfloat16)
    for weight in block.parameters():
        weight.main_grad = torch.zeros(weight.shape, dtype=torch.float32, device="cuda")
        weight.grad_added_to_main_grad = False
    block.train()
    return block


def union(spans):
    """Seconds in which at least one of these spans of microseconds runs."""
    total, end = 0.0, -1.0
    for begin, stop in sorted(spans):
        total += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return total / 1e6


class Passes:
    """Forward and backward passes of a block, by turns, as micro-batches of a step follow one another."""

    def __init__(self, case, block, tokens):
        hidden, head_dim = case["shape"][0], case["shape"][3]
        self.block, self.layers = block, block.config.num_layers
        self.x = torch.randn(tokens, 1, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        self.gradient = torch.randn_like(self.x) * 1e-3
        from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
        self.rotary = None if "pattern" in case else RotaryEmbedding(head_dim, 1.0)(tokens)

    def forward(self):
        return self.block(self.x, attention_mask=None, rotary_pos_emb=self.rotary)

    def backward(self, y):
        y.backward(self.gradient)
        self.x.grad = None
        for weight in self.block.parameters():
            weight.grad = None

    def walls(self, turns):
        """Seconds of each forward and backward pass between events, without waiting in between."""
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2 * turns + 1)]
        marks[0].record()
        for turn in range(turns):
            y = self.forward()
            marks[2 * turn + 1].record()
            self.backward(y)
            marks[2 * turn + 2].record()
        torch.cuda.synchronize()
        spans = [a.elapsed_time(b) / 1e3 / self.layers for a, b in zip(marks, marks[1:])]
        return dict(forward=sorted(spans[2::2]), backward=sorted(spans[3::2]))

    def alone(self):
        """Kernels of one forward and one backward pass, each begun on an idle device."""
        torch.cuda.synchronize()
        held, found = [], {}
        for way, call in (("forward", lambda: held.append(self.forward())), ("backward", lambda: self.backward(held.pop()))):
            with profile(activities=[ProfilerActivity.CUDA]) as seen:
                call()
                torch.cuda.synchronize()
            device = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
            found[way] = dict(kernels=len(device) / self.layers,
                              busy=union([(e.time_range.start, e.time_range.end) for e in device]) / self.layers, events=device)
        return found


def measure(name, case, experts, precision, tables, layers=4):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    block = block_of(case, experts, precision, layers)
    found = {}
    for tokens in (FEW_TOKENS, case["tokens"]):
        passes = Passes(case, block, tokens)
        for _ in range(3):
            passes.backward(passes.forward())
        torch.cuda.synchronize()
        found[tokens] = passes.walls(12)
    alone = passes.alone()
    names = dict(case=name, precision=precision, experts=experts)
    shape = dict(zip(("hidden", "heads", "kv_heads", "head_dim", "inter"), case["shape"]))
    for way in ("forward", "backward"):
        spans = found[case["tokens"]][way]
        tables[0].add(dict(names, **shape, top_k=min(case["top_k"], experts), tokens=case["tokens"], layers=layers, way=way,
                           wall_s=f"{statistics.median(spans):.6g}", p10_s=f"{spans[1]:.6g}", p90_s=f"{spans[-2]:.6g}",
                           busy_s=f"{alone[way]['busy']:.6g}", kernels=f"{alone[way]['kernels']:.4g}",
                           host_s=f"{statistics.median(found[FEW_TOKENS][way]):.6g}", memory_bytes=torch.cuda.max_memory_allocated()))
        by_name = {}
        for event in alone[way]["events"]:
            calls, seconds = by_name.get(event.name[:160], (0, 0.0))
            by_name[event.name[:160]] = (calls + 1, seconds + (event.time_range.end - event.time_range.start) / 1e6)
        for kernel, (calls, seconds) in sorted(by_name.items(), key=lambda pair: -pair[1][1]):
            tables[1].add(dict(names, way=way, kernel=kernel.replace(",", ";"), calls=f"{calls / layers:.4g}", seconds=f"{seconds / layers:.6g}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=250)
    parser.add_argument("--cases", default=",".join(CASES))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.perf_counter() + arguments.budget_s
    start()
    import megatron.core
    import transformer_engine
    (arguments.out / "megatron_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda, cores=os.cpu_count(),
        transformer_engine=transformer_engine.__version__, megatron_core=megatron.core.__version__)))
    tables = (Table(arguments.out / "megatron_layers.csv", LAYERS), Table(arguments.out / "megatron_kernels.csv", KERNELS))
    for name in arguments.cases.split(","):
        for experts in CASES[name]["experts"]:
            for precision in ("bf16", "fp8_tensor", "fp8_block"):
                if time.perf_counter() > end:
                    continue
                guarded((name, experts, precision), lambda: measure(name, CASES[name], experts, precision, tables))
                print(f"{name} {experts} {precision} done", flush=True)


if __name__ == "__main__":
    main()
