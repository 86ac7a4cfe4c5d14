"""Which training steps are measured: model shapes, sequence lengths, micro-batches, recomputation. No torch here."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class TrainModel:
    name: str
    layers: int
    hidden: int
    q_heads: int
    kv_heads: int
    head_dim: int
    inter: int
    vocabulary: int
    gated: bool = True

    def parameters(self):
        attention = self.hidden * self.head_dim * (2 * self.q_heads + 2 * self.kv_heads)
        mlp = (3 if self.gated else 2) * self.hidden * self.inter
        return self.layers * (attention + mlp + 2 * self.hidden) + 2 * self.vocabulary * self.hidden + self.hidden


@dataclasses.dataclass(frozen=True)
class TrainStep:
    model: str
    micro_batch: int
    sequence: int
    recompute: str = "none"  # none, attention, full
    mode: str = "eager"  # eager, compiled

    def key(self):
        return f"{self.model}/{self.micro_batch}x{self.sequence}/{self.recompute}/{self.mode}"


MODELS = {m.name: m for m in (
    TrainModel("gpt-350m", 24, 1024, 16, 16, 64, 4096, 50304, gated=False),
    TrainModel("llama-1b", 16, 2048, 32, 8, 64, 8192, 128256),
    TrainModel("llama-3b", 28, 3072, 24, 8, 128, 8192, 128256),
    TrainModel("llama-8b", 32, 4096, 32, 8, 128, 14336, 128256),
    TrainModel("llama-8b-of-4", 4, 4096, 32, 8, 128, 14336, 32000),
    TrainModel("llama-70b-of-2", 2, 8192, 64, 8, 128, 28672, 32000),
    # One rank of eight of a 70B, without its communication.
    TrainModel("llama-70b-tp8-of-8", 8, 8192, 8, 1, 128, 3584, 16000),
)}


def plan():
    """Steps in the order of what they tell: a run that is cut short has the most useful ones."""
    steps = []
    for model in ("llama-8b", "llama-1b", "llama-70b-of-2", "gpt-350m", "llama-3b", "llama-8b-of-4", "llama-70b-tp8-of-8"):
        steps.append(TrainStep(model, 1, 4096))
    for recompute in ("full", "attention"):
        for model in ("llama-8b-of-4", "llama-1b", "llama-8b"):
            steps.append(TrainStep(model, 1, 4096, recompute))
    for model in ("llama-8b-of-4", "llama-1b", "llama-70b-of-2"):
        steps.append(TrainStep(model, 1, 4096, mode="compiled"))
    for model in ("llama-8b-of-4", "llama-1b", "gpt-350m", "llama-70b-tp8-of-8"):
        for micro_batch, sequence in ((1, 1024), (1, 2048), (4, 2048), (1, 8192), (2, 8192), (1, 16384), (8, 1024)):
            steps.append(TrainStep(model, micro_batch, sequence))
    for model in ("llama-3b", "llama-70b-of-2"):
        for micro_batch, sequence in ((2, 2048), (1, 8192), (1, 2048)):
            steps.append(TrainStep(model, micro_batch, sequence))
    for model, micro_batch, sequence in (("llama-1b", 4, 2048), ("llama-8b-of-4", 1, 16384), ("gpt-350m", 8, 1024)):
        steps.append(TrainStep(model, micro_batch, sequence, "full"))
    for model in ("gpt-350m", "llama-70b-tp8-of-8"):
        steps.append(TrainStep(model, 2, 4096, mode="compiled"))
    return steps
