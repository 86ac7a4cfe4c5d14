"""Measures the peak memory of training steps on this GPU by what becomes of gradients and by what is computed again.

    python3 tools/gpu/train_memory.py --out DIR [--budget-s 200]

One row a step in DIR/train_memory.csv. Parameters and gradients are bf16, AdamW keeps its two states in bf16, as in train_sweep.py.

    gradients  kept    they stay from step to step, set to zero (zero_grad(set_to_none=False))
               remade  they are freed after the update, PyTorch's default
               freed   each is used and freed as soon as a backward pass has made it (post-accumulate hooks)
    optimizer  fused   one kernel that needs no memory of its own
               foreach PyTorch's lists of tensors, its default for models on a GPU
    again      layers, from the first one, that are computed again
"""
import argparse
import csv
import gc
import pathlib
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from train_model import Model
from train_plan import MODELS

COLUMNS = ["model", "layers", "hidden", "q_heads", "kv_heads", "head_dim", "inter", "vocabulary", "gated", "parameters",
           "micro_batch", "sequence", "gradients", "optimizer", "again", "static_bytes", "after_forward_bytes",
           "after_backward_bytes", "peak_backward_bytes", "peak_bytes"]
SHAPES = {"llama-1b": ((1, 512), (1, 4096), (4, 4096)), "llama-3b": ((1, 512), (1, 4096)), "llama-8b": ((1, 512), (1, 4096)),
          "gpt-350m": ((1, 1024), (8, 1024)), "llama-70b-of-2": ((1, 1024), (1, 8192)), "llama-70b-tp8-of-8": ((1, 8192),)}
KINDS = [("kept", "fused"), ("remade", "fused"), ("remade", "foreach"), ("freed", "fused")]


class Layers(Model):
    """The model of train_model.py whose first layers are computed again."""

    again = 0

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for number, layer in enumerate(self.layers):
            if number < self.again:
                x = checkpoint(layer, x, self.cos, self.sin, use_reentrant=False)
            else:
                x = layer(x, self.cos, self.sin)
        logits = self.head(self.norm(x))
        return torch.nn.functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))


def optimizers_of(model, gradients, kind):
    """What updates the model: one optimizer, or one for each parameter that steps as its gradient is there."""
    options = dict(lr=1e-5, **{kind: True})
    if gradients != "freed":
        return torch.optim.AdamW(model.parameters(), **options), []
    each = {p: torch.optim.AdamW([p], **options) for p in model.parameters()}

    def update(parameter):
        each[parameter].step()
        parameter.grad = None

    return None, [p.register_post_accumulate_grad_hook(update) for p in model.parameters()]


def measure(model, shape, gradients, kind, again):
    model.again = again
    optimizer, hooks = optimizers_of(model, gradients, kind)
    tokens, targets = (torch.randint(0, model.head.out_features, shape, device="cuda") for _ in range(2))
    cos, sin = model.cos, model.sin
    model.cos, model.sin = cos[:shape[1]], sin[:shape[1]]
    try:
        for _ in range(3):
            torch.cuda.synchronize()
            static = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            loss = model(tokens, targets)
            after_forward = torch.cuda.memory_allocated()
            loss.backward()
            after_backward = torch.cuda.memory_allocated()
            peak_backward = torch.cuda.max_memory_allocated()
            if optimizer is not None:
                optimizer.step()
                optimizer.zero_grad(set_to_none=gradients == "remade")
            del loss
        return dict(static_bytes=static, after_forward_bytes=after_forward, after_backward_bytes=after_backward,
                    peak_backward_bytes=peak_backward, peak_bytes=torch.cuda.max_memory_allocated())
    finally:
        model.cos, model.sin = cos, sin
        for hook in hooks:
            hook.remove()
        model.zero_grad(set_to_none=True)


def plan():
    for name, shapes in SHAPES.items():
        for shape in shapes:
            for gradients, kind in KINDS:
                yield name, shape, gradients, kind, 0
            layers = MODELS[name].layers
            for again in sorted({layers // 4, layers // 2, layers}):
                yield name, shape, "remade", "fused", again


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=200)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started, model, of = time.perf_counter(), None, None
    with open(arguments.out / "train_memory.csv", "w", newline="") as file, sdpa_kernel(
            [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for name, shape, gradients, kind, again in plan():
            if time.perf_counter() - started > arguments.budget_s:
                break
            if of != name:
                model, of = None, name
                gc.collect()
                torch.cuda.empty_cache()
                with torch.device("cuda"):
                    model = Layers(MODELS[name], max(s for _, s in SHAPES[name])).to(torch.bfloat16)
            try:
                figures = measure(model, shape, gradients, kind, again)
            except torch.OutOfMemoryError:
                print(name, shape, gradients, kind, again, "does not fit", flush=True)
                gc.collect()
                torch.cuda.empty_cache()
                continue
            one = MODELS[name]
            table.writerow(dict(model=name, layers=one.layers, hidden=one.hidden, q_heads=one.q_heads, kv_heads=one.kv_heads,
                                head_dim=one.head_dim, inter=one.inter, vocabulary=one.vocabulary, gated=int(one.gated),
                                parameters=one.parameters(), micro_batch=shape[0], sequence=shape[1], gradients=gradients,
                                optimizer=kind, again=again, **figures))
            file.flush()
            print(name, shape, gradients, kind, again, f"{figures['peak_backward_bytes'] / 1e9:.2f}",
                  f"{figures['peak_bytes'] / 1e9:.2f}", flush=True)


if __name__ == "__main__":
    main()
