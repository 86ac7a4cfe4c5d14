"""Which whole steps are measured: model shapes, step shapes and their order; no torch, as in sweep_plan.py."""
import dataclasses

from sweep_plan import BANDWIDTH, BF16_RATE, PAGE, level

PREFILL = [128, 256, 512, 1024, 2048, 4096, 8192]
DECODE_BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
DECODE_CONTEXTS = [256, 1024, 4096, 16384]
# (decodes, their context, chunk, chunk's context)
MIXED = [(32, 1024, 512, 512), (64, 2048, 1024, 1024), (32, 1024, 512, 4608), (128, 1024, 2048, 2048),
         (16, 4096, 2048, 10240), (255, 512, 256, 2304), (8, 8192, 1024, 17408)]
STEP_KV_LIMIT = 64 * 2**30


@dataclasses.dataclass(frozen=True)
class ModelShape:
    name: str
    layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    inter: int
    vocabulary: int

    def parameters(self):
        heads = (2 * self.q_heads + 2 * self.kv_heads) * self.head_dim
        return self.layers * self.hidden * (heads + 3 * self.inter) + 2 * self.vocabulary * self.hidden

    def kv_bytes_per_token(self):
        return 2 * self.layers * self.kv_heads * self.head_dim * 2


MODELS = [
    ModelShape("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256),
    ModelShape("llama-3.1-70b-tp8-rank", 80, 8192, 8, 1, 128, 3584, 16032),
    ModelShape("qwen3-14b-like", 40, 5120, 40, 8, 128, 17408, 151936),
    ModelShape("qwen2.5-32b-tp2-rank", 64, 5120, 20, 4, 128, 13824, 76032),
    ModelShape("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256),
]


@dataclasses.dataclass(frozen=True)
class StepShape:
    """`decodes` sequences of one token over `context` tokens, and one chunk of `chunk` tokens ending at `chunk_context`."""
    decodes: int = 0
    context: int = 0
    chunk: int = 0
    chunk_context: int = 0

    def tokens(self):
        return self.decodes + self.chunk

    def slots(self):
        """KV slots, in whole pages: the chunk's sequence first, then the decodes."""
        return pages(self.chunk_context) * PAGE + self.decodes * pages(self.context) * PAGE


def pages(tokens):
    return -(-tokens // PAGE)


def step_rows(model):
    """(row, step shape) of one model, coarse to fine, those whose KV cache does not fit left out."""
    found = []
    for i, length in enumerate(PREFILL):
        step = StepShape(chunk=length, chunk_context=length)
        for j, mode in enumerate(("graph", "eager")):
            found.append((level(i, len(PREFILL)) + j, "prefill", mode, step))
    for i, batch in enumerate(DECODE_BATCHES):
        for j, context in enumerate(DECODE_CONTEXTS):
            step = StepShape(decodes=batch, context=context)
            depth = level(i, len(DECODE_BATCHES)) + level(j, len(DECODE_CONTEXTS))
            found.append((depth, "decode", "graph", step))
            if j == 1 and batch in (1, 16, 256):
                found.append((2, "decode", "eager", step))
    for i, shape in enumerate(MIXED):
        found.append((1 + i // 3, "mixed", "graph", StepShape(*shape)))
    rows = []
    for _, phase, mode, step in sorted(found, key=lambda item: item[0]):
        if step.slots() * model.kv_bytes_per_token() <= STEP_KV_LIMIT:
            shape = dataclasses.asdict(model)
            del shape["name"]
            rows.append((dict(
                **shape, model=model.name, phase=phase, mode=mode, batch=step.decodes or 1, query_len=step.chunk or 1,
                context_len=step.context or step.chunk_context,
                chunk_context_len=step.chunk_context if phase == "mixed" else ""), step))
    return rows


def row_seconds(model, step):
    """Wall time of one row: some thirty steps of weight and KV traffic or prefill arithmetic, rests included, and set-up."""
    parameters = model.parameters()
    moved = 2 * parameters + step.decodes * step.context * model.kv_bytes_per_token()
    once = max(moved / BANDWIDTH, 2 * parameters * step.tokens() / BF16_RATE)
    return 0.3 + max(0.3, 30 * once)
