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
    mode: str = "eager"  # eager, compiled, graph

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
    # Shapes that nothing was fitted to: other widths, heads of 80, 96 and 256 values, one key head, large vocabularies.
    TrainModel("qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064),
    TrainModel("mistral-nemo-of-8", 8, 5120, 32, 8, 128, 14336, 131072),
    TrainModel("gemma-2b-of-13", 13, 2304, 8, 4, 256, 9216, 256000),
    TrainModel("neox-20b-of-6", 6, 6144, 64, 64, 96, 24576, 50432, gated=False),
    TrainModel("smollm-1.7b", 24, 2048, 32, 32, 64, 8192, 49152),
    TrainModel("falcon-7b-of-8", 8, 4544, 71, 1, 64, 18176, 65024, gated=False),
    TrainModel("phi-2", 32, 2560, 32, 32, 80, 10240, 51200, gated=False),
    TrainModel("qwen2.5-32b-tp4-of-16", 16, 5120, 10, 2, 128, 6912, 38016),
    TrainModel("llama-405b-of-1", 1, 16384, 128, 8, 128, 53248, 16032),
)}


def heldout():
    """Models, lengths and batches between and beyond those of the sweep, to check predictions that were made before."""
    shapes = {"qwen2.5-7b": ((1, 3072), (2, 2048), (1, 6144)), "mistral-nemo-of-8": ((1, 6144), (3, 2048), (1, 12288)),
              "gemma-2b-of-13": ((1, 3072), (2, 4096), (1, 6144)), "neox-20b-of-6": ((2, 2048), (1, 6144), (4, 1536)),
              "smollm-1.7b": ((6, 1536), (1, 12288), (2, 3072)), "falcon-7b-of-8": ((2, 2048), (1, 6144), (1, 12288)),
              "phi-2": ((1, 2048), (3, 2048), (1, 6144)), "qwen2.5-32b-tp4-of-16": ((1, 3072), (1, 12288), (1, 32768)),
              "llama-405b-of-1": ((1, 2048), (1, 6144), (2, 8192))}
    steps = [TrainStep(model, *shape) for model, some in shapes.items() for shape in some]
    for model in ("mistral-nemo-of-8", "smollm-1.7b", "neox-20b-of-6"):
        for recompute in ("full", "attention"):
            steps.append(TrainStep(model, *shapes[model][1], recompute))
    for model in ("mistral-nemo-of-8", "llama-405b-of-1", "falcon-7b-of-8"):
        steps.append(TrainStep(model, *shapes[model][1], mode="compiled"))
    for model, micro_batch, sequence in (("gpt-350m", 1, 1024), ("gpt-350m", 2, 4096), ("llama-1b", 1, 1024), ("phi-2", 1, 512), ("phi-2", 1, 2048)):
        for mode in ("eager", "graph"):
            steps.append(TrainStep(model, micro_batch, sequence, mode=mode))
    return steps


def sweep():
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


PLANS = {"sweep": sweep, "heldout": heldout}
