"""One forward step of a decoder-only model with random weights, made of exactly the kernels the tables measure.

Every layer has its own weights and its own KV cache, so both are cold in L2 as in a real model. Shapes are real; the
numbers are not, and no communication is done for a tensor-parallel shard: its step is the compute of one rank.
"""
import torch

import triton_elementwise as elementwise
from step_plan import pages
from triton_decode import DecodePlan
from sweep_plan import PAGE

ROPE_POSITIONS = 131072


class Weights:
    """Tensors cut one after another from the arena: no two layers share a byte."""

    def __init__(self, shape, arena):
        self.taken = 0
        cut = lambda *size: self._cut(arena, size)
        heads = (shape.q_heads + 2 * shape.kv_heads) * shape.head_dim
        self.embedding = cut(shape.vocabulary, shape.hidden)
        self.layers = [
            dict(qkv=cut(heads, shape.hidden), out=cut(shape.hidden, shape.q_heads * shape.head_dim),
                 gate_up=cut(2 * shape.inter, shape.hidden), down=cut(shape.hidden, shape.inter))
            for _ in range(shape.layers)]
        self.head = cut(shape.vocabulary, shape.hidden)
        self.norm = torch.ones(shape.hidden, device="cuda", dtype=torch.bfloat16)
        angles = torch.arange(ROPE_POSITIONS, device="cuda")[:, None] / 10000 ** (
            torch.arange(0, shape.head_dim, 2, device="cuda") / shape.head_dim)
        self.cos_sin = torch.cat([angles.cos(), angles.sin()], -1).to(torch.bfloat16)

    def _cut(self, arena, size):
        elements = size[0] * size[1]
        tensor = arena.data[self.taken:self.taken + elements].view(size)
        self.taken += elements
        return tensor


class ModelStep:
    """Buffers, page tables and positions of one step shape; `run` launches it and can be captured."""

    def __init__(self, model, weights, step, lab, attention):
        """`attention` is the pair of functions for a whole prompt and for a chunk with a cached prefix."""
        self.model, self.weights, self.step = model, weights, step
        self.prefill, self.chunk = attention
        tokens, wide = step.tokens(), model.q_heads * model.head_dim
        new = lambda *size: torch.empty(*size, device="cuda", dtype=torch.bfloat16)
        self.ids = torch.randint(0, model.vocabulary, (tokens,), device="cuda")
        self.x, self.residual, self.normed = (new(tokens, model.hidden) for _ in range(3))
        self.qkv = new(tokens, wide + 2 * model.kv_heads * model.head_dim)
        self.attention, self.gate_up = new(tokens, wide), new(tokens, 2 * model.inter)
        self.acted = new(tokens, model.inter)
        # One row of logits a sequence: the chunk's last token and every decode.
        rows = ([step.chunk - 1] if step.chunk else []) + list(range(step.chunk, tokens))
        self.last_rows = torch.tensor(rows, device="cuda")
        self.selected, self.logits = new(len(rows), model.hidden), new(len(rows), model.vocabulary)
        self.sampled = torch.empty(len(rows), device="cuda", dtype=torch.int64)
        self._place(lab)

    def _place(self, lab):
        """KV slots and positions of every token; the chunk's pages are contiguous because cuDNN's kernel is not paged."""
        model, step = self.model, self.step
        chunk_pages, each = pages(step.chunk_context), pages(step.context)
        size = step.slots() * model.kv_heads * model.head_dim
        self.caches = [
            [lab.stream.data[(2 * layer + side) * size:(2 * layer + side + 1) * size].view(
                -1, model.kv_heads, model.head_dim) for side in range(2)]
            for layer in range(model.layers)]
        self.table = (chunk_pages + torch.randperm(max(step.decodes * each, 1), device="cuda").to(torch.int32)).view(
            max(step.decodes, 1), -1)
        self.contexts = torch.full((step.decodes,), step.context, device="cuda", dtype=torch.int32)
        chunk_positions = torch.arange(step.chunk_context - step.chunk, step.chunk_context, device="cuda")
        decode_positions = torch.full((step.decodes,), max(step.context - 1, 0), device="cuda")
        self.positions = torch.cat([chunk_positions, decode_positions])
        decode_slots = self.table[:step.decodes, -1].long() * PAGE + (step.context - 1) % PAGE
        self.slots = torch.cat([chunk_positions, decode_slots])
        self.plan = None
        if step.decodes:
            self.plan = DecodePlan(step.decodes, step.context, model.q_heads, model.kv_heads, model.head_dim,
                                   lab.timer.multiprocessors)

    def run(self):
        model, weights = self.model, self.weights
        torch.index_select(weights.embedding, 0, self.ids, out=self.x)
        self.residual.zero_()
        for layer, (k_cache, v_cache) in zip(weights.layers, self.caches):
            elementwise.norm(self.x, self.residual, weights.norm, self.normed)
            torch.mm(self.normed, layer["qkv"].t(), out=self.qkv)
            elementwise.rope(self.qkv, self.positions, self.slots, weights.cos_sin, k_cache, v_cache, model.q_heads,
                             model.kv_heads, model.head_dim)
            torch.mm(self._attend(k_cache, v_cache), layer["out"].t(), out=self.x)
            elementwise.norm(self.x, self.residual, weights.norm, self.normed)
            torch.mm(self.normed, layer["gate_up"].t(), out=self.gate_up)
            elementwise.act(self.gate_up, self.acted)
            torch.mm(self.acted, layer["down"].t(), out=self.x)
        elementwise.norm(self.x, self.residual, weights.norm, self.normed)
        last = self.normed
        if self.step.chunk:
            last = torch.index_select(self.normed, 0, self.last_rows, out=self.selected)
        torch.mm(last, weights.head.t(), out=self.logits)
        torch.argmax(self.logits, dim=-1, out=self.sampled)

    def _attend(self, k_cache, v_cache):
        """Attention of the chunk, then of the decodes, into one buffer; a lone prefill needs no buffer of ours."""
        model, step = self.model, self.step
        if step.chunk:
            wide = model.q_heads * model.head_dim
            shape = (1, step.chunk, model.q_heads, model.head_dim)
            q = self.qkv[:step.chunk, :wide].view(shape)
            k, v = (cache[:step.chunk_context].unsqueeze(0) for cache in (k_cache, v_cache))
            out = self.attention[:step.chunk].view(shape)
            if step.chunk_context > step.chunk:
                self.chunk(q, k, v, out)
            elif step.decodes:
                out.copy_(self.prefill(q, k, v))
            else:
                return self.prefill(q, k, v).reshape(step.chunk, wide)
        if step.decodes:
            paged = (-1, PAGE, model.kv_heads, model.head_dim)
            self.plan.run(self.qkv[step.chunk:], k_cache.view(paged), v_cache.view(paged), self.table, self.contexts,
                          self.attention[step.chunk:])
        return self.attention
