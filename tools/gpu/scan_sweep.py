"""Measures scans (state-space layers as in Mamba-2) on this GPU: forward, backward, one token at a time, and the gated norm after them.

    python3 tools/gpu/scan_sweep.py --out DIR --mamba FOLDER [--budget-s 200]

DIR/scans.csv: seconds of one call by the Triton kernels of mamba_ssm, after its own tuning; FOLDER is its unpacked source, whose
compiled parts are not needed. Forward and backward are of whole sequences, `chunk` tokens at a time; decode moves one token of each
of `sequences`.
"""
import argparse
import os
import pathlib
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

import train_kernels  # noqa: E402

COLUMNS = ["what", "tokens", "sequences", "heads", "head_dim", "state", "groups", "chunk", "seconds", "p10_s", "p90_s"]
# heads, channels of a head, state, groups: Nemotron 3 Nano, Bamba 9B, Nemotron Nano 9B v2, Mamba-2 2.7B, a half and a quarter of the first.
SHAPES = [(64, 64, 128, 8), (128, 64, 128, 1), (128, 80, 128, 8), (80, 64, 128, 1), (32, 64, 128, 4), (16, 64, 128, 2)]
TOKENS = [(8192, 1), (2048, 1), (16384, 4)]
DECODES = (1, 8, 64, 256)
# heads, channels of a head, state of delta rules: Qwen3-Next 80B, a half and a quarter of it.
DELTAS = [(32, 128, 128), (16, 128, 128), (8, 128, 128)]
CHUNKS = (256, 128)
BF16 = dict(dtype=torch.bfloat16, device="cuda")
train_kernels.SPIN = 16_000_000  # Triton's own launches of a backward pass take the host some milliseconds


def kernels_of(folder):
    """The Triton kernels without the package's own start, which loads compiled parts."""
    package = types.ModuleType("mamba_ssm")
    package.__path__ = [os.path.join(folder, "mamba_ssm")]
    sys.modules["mamba_ssm"] = package
    from mamba_ssm.ops.triton import layernorm_gated, selective_state_update, ssd_combined
    return ssd_combined.mamba_chunk_scan_combined, selective_state_update.selective_state_update, layernorm_gated.rmsnorm_fn


def values(*sizes, **made):
    return torch.randn(*sizes, **(made or BF16)).requires_grad_()


class Sweep(train_kernels.TimedRows):
    def __init__(self, arguments):
        super().__init__(arguments, "scans.csv", COLUMNS)
        if arguments.mamba:
            self.scan, self.update, self.norm = kernels_of(arguments.mamba)

    def both_ways(self, call, inputs, prefix="", **cells):
        """A call without gradients, and its gradients alone."""
        with torch.no_grad():
            self.row(call, what=prefix + "forward", **cells)
        out = call()
        gradient = torch.randn_like(out)
        self.row(lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True), what=prefix + "backward", **cells)

    def scans(self, heads, head_dim, state, groups, tokens, sequences, chunk):
        length = tokens // sequences
        x, dt = values(sequences, length, heads, head_dim), values(sequences, length, heads)
        b, c = values(sequences, length, groups, state), values(sequences, length, groups, state)
        a = (-torch.rand(heads, device="cuda") - 0.1).requires_grad_()
        d, bias = values(heads, device="cuda"), values(heads, device="cuda")
        self.both_ways(lambda: self.scan(x, dt, a, b, c, chunk, D=d, dt_bias=bias, dt_softplus=True), (x, dt, a, b, c, d, bias),
                       tokens=tokens, sequences=sequences, heads=heads, head_dim=head_dim, state=state, groups=groups, chunk=chunk)

    def norms(self, heads, head_dim, state, groups, tokens, sequences):
        width = heads * head_dim
        x, z, weight = values(tokens, width), values(tokens, width), values(width, device="cuda")
        self.both_ways(lambda: self.norm(x, weight, None, z=z, eps=1e-5, group_size=width // groups, norm_before_gate=False), (x, z, weight),
                       "norm_", tokens=tokens, sequences=sequences, heads=heads, head_dim=head_dim, state=state, groups=groups, chunk=0)

    def decodes(self, heads, head_dim, state, groups, sequences):
        kept = torch.randn(sequences, heads, head_dim, state, device="cuda")
        x, b, c = (torch.randn(sequences, *sizes, **BF16) for sizes in ((heads, head_dim), (groups, state), (groups, state)))
        dt = torch.rand(sequences, heads, 1, **BF16).expand(sequences, heads, head_dim)
        a = (-torch.rand(heads, 1, 1, device="cuda") - 0.1).expand(heads, head_dim, state)
        d, bias = (torch.randn(heads, 1, device="cuda").expand(heads, head_dim) for _ in range(2))
        self.row(lambda: self.update(kept, x, dt, a, b, c, D=d, dt_bias=bias, dt_softplus=True), what="decode", tokens=sequences,
                 sequences=sequences, heads=heads, head_dim=head_dim, state=state, groups=groups, chunk=0)

    def deltas(self, rule, heads, head_dim, state, tokens, sequences):
        """Delta rules (fla-core) of whole prompts: each token takes from its state what it puts in."""
        length = tokens // sequences
        inputs = delta_inputs(rule, sequences, length, heads, head_dim, state)
        call = RULES[rule]()[0]
        self.both_ways(lambda: call(*inputs)[0], inputs, rule + "_", tokens=tokens, sequences=sequences, heads=heads, head_dim=head_dim,
                       state=state, groups=heads, chunk=64)

    def delta_decodes(self, rule, heads, head_dim, state, sequences):
        inputs = delta_inputs(rule, sequences, 1, heads, head_dim, state)
        kept = torch.randn(sequences, heads, state, head_dim, device="cuda")
        call = RULES[rule]()[1]
        with torch.no_grad():
            self.row(lambda: call(*inputs, initial_state=kept, output_final_state=True)[0], what=rule + "_decode", tokens=sequences,
                     sequences=sequences, heads=heads, head_dim=head_dim, state=state, groups=heads, chunk=0)


def delta_inputs(rule, sequences, length, heads, head_dim, state):
    q, k = (torch.nn.functional.normalize(torch.randn(sequences, length, heads, state, **BF16), dim=-1) for _ in range(2))
    v, beta = torch.randn(sequences, length, heads, head_dim, **BF16), torch.rand(sequences, length, heads, **BF16)
    channels = (state,) if rule == "channel_delta" else ()
    decay = -torch.rand(sequences, length, heads, *channels, device="cuda")
    return tuple(one.requires_grad_() for one in (q, k, v, decay, beta))


def gated_deltas():
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
    return chunk_gated_delta_rule, fused_recurrent_gated_delta_rule


def channel_deltas():
    from fla.ops.kda import chunk_kda, fused_recurrent_kda
    return chunk_kda, fused_recurrent_kda


RULES = {"delta": gated_deltas, "channel_delta": channel_deltas}


def allow_gradients():
    """fla-core refuses gradients of gated rules with Triton 3.4 to 3.7.0 on Hopper, whose values are wrong there. Here they are timed."""
    from fla.ops.common import chunk_o
    chunk_o.TRITON_ABOVE_3_7_1 = True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--mamba", help="not needed for delta rules")
    parser.add_argument("--deltas", nargs="*", choices=RULES, help="these delta rules only (default: both); fla-core must be importable")
    parser.add_argument("--budget-s", type=float, default=200)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sweep = Sweep(arguments)
    if arguments.deltas is not None:
        allow_gradients()
        for rule in arguments.deltas or RULES:
            for shape in DELTAS:
                for sequences in DECODES:
                    sweep.delta_decodes(rule, *shape, sequences)
                for tokens, sequences in TOKENS:
                    sweep.deltas(rule, *shape, tokens, sequences)
        return
    for shape in SHAPES:
        for sequences in DECODES:
            sweep.decodes(*shape, sequences)
    for chunk in CHUNKS:
        for tokens, sequences in TOKENS:
            for shape in SHAPES:
                sweep.scans(*shape, tokens, sequences, chunk)
    for shape in SHAPES:
        sweep.norms(*shape, *TOKENS[0])


if __name__ == "__main__":
    main()
