"""A linear layer in fp8 with one scale per tensor, as training libraries make it: casts, transposes and three products."""
import torch
from torch import nn

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def cast(x, dtype):
    """The tensor in fp8 and the factor that turns it back; the factor follows from this tensor's own maximum."""
    scale = torch.finfo(dtype).max / x.abs().amax().float().clamp_min(1e-12)
    return (x.float() * scale).to(dtype), 1 / scale


def product(a, a_scale, b, b_scale, fast):
    """a [m, k] times b [n, k] transposed; both lie in rows."""
    return torch._scaled_mm(a, b.t(), scale_a=a_scale, scale_b=b_scale, out_dtype=torch.bfloat16, use_fast_accum=fast)


def transposed(x):
    return x.t().contiguous()


class Fp8Product(torch.autograd.Function):
    """Hopper's fp8 products want both operands along the summed dimension: hence a transposed copy of each for gradients."""

    @staticmethod
    def forward(ctx, x, weight):
        rows = x.reshape(-1, x.shape[-1])
        x8, x_scale = cast(rows, E4M3)
        w8, w_scale = cast(weight, E4M3)
        ctx.save_for_backward(x8, x_scale, w8, w_scale)
        return product(x8, x_scale, w8, w_scale, True).view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    def backward(ctx, gradient):
        x8, x_scale, w8, w_scale = ctx.saved_tensors
        rows = gradient.reshape(-1, gradient.shape[-1])
        g8, g_scale = cast(rows, E5M2)
        inputs = product(g8, g_scale, transposed(w8), w_scale, False)
        weights = product(transposed(g8), g_scale, transposed(x8), x_scale, False)
        return inputs.view(*gradient.shape[:-1], w8.shape[1]), weights


class Fp8Linear(nn.Linear):
    def forward(self, x):
        return Fp8Product.apply(x, self.weight)


def to_fp8(model):
    """Linear layers of a model's layers, not its head, become fp8."""
    for layer in model.layers:
        for name, child in layer.named_children():
            if isinstance(child, nn.Linear):
                child.__class__ = Fp8Linear
