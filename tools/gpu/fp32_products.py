"""Times products and prompts of attention in 32 bits, with and without TF32, and whole forward passes in 32 bits.

    python3 tools/gpu/fp32_products.py --out DIR/fp32_products.csv

Inputs and weights come from a ring of buffers that does not fit into the cache, as in a model. One row a call: median of rounds of a replayed
graph.
"""
import argparse
import csv
import statistics

import torch

PRODUCTS = [(m, n, k) for m in (1, 16, 128, 512, 1024, 2048, 4096, 8192)
            for n, k in ((1280, 1280), (5120, 1280), (1280, 5120), (3840, 1280), (50257, 1280), (4096, 4096), (14336, 4096), (4096, 14336))]
ATTENTION = [(b, s, h, d) for d in (64, 128) for h in (16, 32) for b, s in ((1, 512), (4, 1024), (1, 4096), (8, 2048))]
RING_BYTES = 256 << 20
ROUNDS = 7
COLUMNS = ["kind", "name", "tf32", "batch", "m", "n", "k", "sequence", "heads", "head_dim", "seconds", "p10", "p90"]


def timed(calls, least_s=0.02):
    """Median seconds of one of `calls`, which are captured together and replayed."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def round_of(count):
        begin.record()
        for _ in range(count):
            graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / count / len(calls)
    once = round_of(1)
    count = max(1, int(least_s / max(once * len(calls), 1e-7)))
    rounds = sorted(round_of(count) for _ in range(ROUNDS))
    return dict(seconds=f"{statistics.median(rounds):.6g}", p10=f"{rounds[0]:.6g}", p90=f"{rounds[-1]:.6g}")


def products(write):
    for m, n, k in PRODUCTS:
        copies = max(2, min(24, RING_BYTES // (4 * (n * k + m * k + m * n)) + 1))
        rings = [(torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda"), torch.empty(m, n, device="cuda")) for _ in range(copies)]
        for tf32 in (0, 1):
            torch.backends.cuda.matmul.allow_tf32 = bool(tf32)
            calls = [lambda a=a, w=w, c=c: torch.mm(a, w.t(), out=c) for a, w, c in rings]
            write(dict(kind="gemm", tf32=tf32, m=m, n=n, k=k, **timed(calls)))


def attention(write):
    for b, s, h, d in ATTENTION:
        q, k, v = (torch.randn(b, h, s, d, device="cuda") for _ in range(3))
        for tf32 in (0, 1):
            torch.backends.cuda.matmul.allow_tf32 = bool(tf32)
            call = [lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)] * 4
            write(dict(kind="attention_prefill", tf32=tf32, batch=b, sequence=s, heads=h, head_dim=d, **timed(call)))


def passes(write):
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel
    gpt2 = GPT2Config(n_embd=1280, n_layer=36, n_head=20, use_cache=False)
    bert = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    for name, make, config, vocabulary, shapes in (("gpt2-large", GPT2LMHeadModel, gpt2, 50257, ((1, 512), (4, 1024), (8, 1024))),
                                                   ("bert-large", BertModel, bert, 30522, ((1, 512), (8, 512), (16, 512)))):
        with torch.no_grad():
            model = make(config).cuda().eval()
            for b, s in shapes:
                ids = torch.randint(0, vocabulary, (b, s), device="cuda")
                for tf32 in (0, 1):
                    torch.backends.cuda.matmul.allow_tf32 = bool(tf32)
                    torch.backends.cudnn.allow_tf32 = bool(tf32)
                    try:
                        write(dict(kind="forward", name=name, tf32=tf32, batch=b, sequence=s, **timed([lambda: model(ids)])))
                    except Exception as error:  # a model that cannot be captured is timed as it is launched
                        torch.cuda.synchronize()
                        print(name, b, s, tf32, type(error).__name__, str(error)[:200], flush=True)
            del model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(options.out, "w", newline="") as out:
        table = csv.DictWriter(out, COLUMNS, restval="")
        table.writeheader()

        def write(row):
            table.writerow(row)
            out.flush()
        for part in (products, attention, passes):
            try:
                part(write)
            except Exception as error:
                print(part.__name__, type(error).__name__, str(error)[:400], flush=True)


if __name__ == "__main__":
    main()
