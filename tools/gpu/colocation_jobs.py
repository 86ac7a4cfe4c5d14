"""What two tenants of one GPU run: whole model steps and single kernels, each a CUDA graph of a few milliseconds.

A job has weights, KV cache and buffers of its own: two jobs share no byte, so one never finds its operands in the L2
cache because the other has just read them.
"""
import dataclasses
import math
import types

import torch

import attention_calls
from gpu_timer import Arena
from model_step import ModelStep, Weights
from step_plan import MODELS, StepShape

WEIGHTS_GIB, KV_GIB = 16, 18  # of one tenant: an 8B model, and 64 sequences of 2,048 tokens of it
GRAPH_SECONDS = 2e-3  # single kernels are repeated to about this


@dataclasses.dataclass(frozen=True)
class Job:
    """`model` names a model of step_plan.py; without one, `kind` is a single kernel."""
    kind: str  # decode, prefill, mixed: steps; read, gemm, attn_decode, attn_prefill: kernels
    model: str = ""
    batch: int = 0
    context: int = 0
    chunk: int = 0

    def name(self):
        sizes = [f"{self.batch}x{self.context}"] if self.batch else []
        sizes += [str(self.chunk)] if self.chunk else []
        return "_".join(filter(None, [self.kind, self.model] + sizes))


JOBS = [
    Job("decode", "llama-3.1-8b", 16, 1024),
    Job("prefill", "llama-3.1-8b", chunk=2048),
    Job("decode", "llama-3.2-3b", 16, 1024),
    Job("decode", "llama-3.1-8b", 64, 2048),
    Job("prefill", "llama-3.1-8b", chunk=512),
    Job("mixed", "llama-3.1-8b", 32, 1024, 512),
    Job("read"),
    Job("gemm"),
    Job("attn_decode", batch=32, context=4096),
    Job("attn_prefill", chunk=4096),
]


class Tenant:
    """Memory of one tenant and the stream it runs on; jobs are built one after another in the same memory."""

    def __init__(self, stream, multiprocessors):
        self.stream = stream
        self.weights, self.kv = Arena(WEIGHTS_GIB, torch.bfloat16, 0.02), Arena(KV_GIB, torch.bfloat16, 1.0)
        self.lab = types.SimpleNamespace(stream=self.kv, timer=types.SimpleNamespace(multiprocessors=multiprocessors))
        self.attention = attention_calls.step_attention(set())
        self.kept = []  # graphs do not keep the tensors alive that their kernels read and write

    def capture(self, job):
        """A graph, and how many steps of the job, or calls of the kernel, are in it."""
        with torch.cuda.stream(self.stream):
            call = self._step(job) if job.model else getattr(self, "_" + job.kind)(job)
            self.kept.append(call)
            call(0)  # compiles, builds plans
            torch.cuda.synchronize()
            calls = 1 if job.model else max(1, math.ceil(GRAPH_SECONDS / self._seconds_of(call)))
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(capture_error_mode="thread_local")
            for i in range(calls):
                call(i)
            graph.capture_end()
        torch.cuda.synchronize()
        return graph, calls

    def _seconds_of(self, call):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(self.stream)
        for i in range(4):
            call(i)
        end.record(self.stream)
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e-3 / 4

    def _step(self, job):
        model = next(shape for shape in MODELS if shape.name == job.model)
        shape = StepShape(decodes=job.batch, context=job.context, chunk=job.chunk, chunk_context=job.chunk)
        step = ModelStep(model, Weights(model, self.weights), shape, self.lab, self.attention)
        return lambda i: step.run()

    def _read(self, job):
        """Bandwidth alone: a sum over a gibibyte, another one at each call."""
        result = torch.empty((), device="cuda")
        views = [self.kv.data[i * 2**29:(i + 1) * 2**29].view(torch.float32) for i in range(8)]
        return lambda i: torch.sum(views[i % len(views)], dim=0, out=result)

    def _gemm(self, job):
        """Arithmetic alone: a product of three large square matrices."""
        size = 8192
        a, b = self.kv.cut(0, (size, size)), self.weights.cut(0, (size, size))
        out = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
        return lambda i: torch.mm(a, b, out=out)

    def _attn_prefill(self, job):
        model = MODELS[0]
        new = lambda heads: torch.randn(1, job.chunk, heads, model.head_dim, device="cuda").to(torch.bfloat16)
        q, k, v = new(model.q_heads), new(model.kv_heads), new(model.kv_heads)
        return lambda i: self.attention[0](q, k, v)

    def _attn_decode(self, job):
        model = dataclasses.replace(MODELS[0], layers=4)
        step = ModelStep(model, Weights(model, self.weights), StepShape(decodes=job.batch, context=job.context), self.lab,
                         self.attention)
        return lambda i: step._attend(*step.caches[i % model.layers])
