"""A decoder-only model that trains: plain PyTorch, one kernel an operation where PyTorch has one."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Layer(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        wide, narrow = model.q_heads * model.head_dim, model.kv_heads * model.head_dim
        self.attention_norm = nn.RMSNorm(model.hidden)
        self.mlp_norm = nn.RMSNorm(model.hidden)
        self.qkv = nn.Linear(model.hidden, wide + 2 * narrow, bias=False)
        self.out = nn.Linear(wide, model.hidden, bias=False)
        self.up = nn.Linear(model.hidden, (2 if model.gated else 1) * model.inter, bias=False)
        self.down = nn.Linear(model.inter, model.hidden, bias=False)
        self.recompute = "none"

    def attend(self, x, cos, sin):
        model = self.model
        batch, sequence, _ = x.shape
        wide, narrow = model.q_heads * model.head_dim, model.kv_heads * model.head_dim
        q, k, v = self.qkv(x).split((wide, narrow, narrow), -1)
        q, k, v = (t.view(batch, sequence, -1, model.head_dim).transpose(1, 2) for t in (q, k, v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        core = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                              enable_gqa=model.q_heads != model.kv_heads)
        if self.recompute == "attention":
            y = checkpoint(core, q, k, v, use_reentrant=False)
        else:
            y = core(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, sequence, wide))

    def mlp(self, x):
        if not self.model.gated:
            return self.down(F.gelu(self.up(x), approximate="tanh"))
        gate, up = self.up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)

    def forward(self, x, cos, sin):
        x = x + self.attend(self.attention_norm(x), cos, sin)
        return x + self.mlp(self.mlp_norm(x))


class Model(nn.Module):
    def __init__(self, model, sequence):
        super().__init__()
        self.embedding = nn.Embedding(model.vocabulary, model.hidden)
        self.layers = nn.ModuleList(Layer(model) for _ in range(model.layers))
        self.norm = nn.RMSNorm(model.hidden)
        self.head = nn.Linear(model.hidden, model.vocabulary, bias=False)
        angles = torch.arange(sequence)[:, None] / 10000 ** (torch.arange(0, model.head_dim, 2) / model.head_dim)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.full_recompute = False

    def set_recompute(self, kind):
        self.full_recompute = kind == "full"
        for layer in self.layers:
            layer.recompute = "attention" if kind == "attention" else "none"

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for layer in self.layers:
            if self.full_recompute:
                x = checkpoint(layer, x, self.cos, self.sin, use_reentrant=False)
            else:
                x = layer(x, self.cos, self.sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))
