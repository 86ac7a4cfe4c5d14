"""The memory that rows are cut from: random numbers made once, sized so that no row allocates anything large.

`weights` and `stream` are only read; `scratch` is written. Activations are shared by all calls of a graph: in a real
step the previous kernel has just written them, so they are in L2 when they fit, while weights and KV are not.
"""
import torch

from gpu_timer import Arena, GpuTimer


class Lab:
    def __init__(self, weights_gib, stream_gib, scratch_gib, fp8_gib):
        torch.manual_seed(1)
        self.timer = GpuTimer()
        self.weights = Arena(weights_gib, torch.bfloat16, 0.02)
        self.stream = Arena(stream_gib, torch.bfloat16, 1.0)
        self.scratch = Arena(scratch_gib, torch.bfloat16, 1.0)
        # One fp8 arena for weights, activations and KV: with a mean square of one, all of e4m3's mantissas occur.
        self.fp8 = Arena(fp8_gib, torch.float8_e4m3fn, 1.0) if fp8_gib else None

    def activation(self, shape):
        return self.stream.cut(0, shape)

    def output(self, shape):
        return self.scratch.cut(0, shape)
