"""What a step costs beside its kernels: launches, replays, synchronisation, small transfers, gaps and switches of kernels.

Host time drifts by a factor of two on one machine within minutes, so each term is sampled in short bursts over several
rounds, and its distribution is kept, not only its middle. Seconds are per call.
"""
import statistics
import time

import torch

import triton_elementwise
from gpu_timer import quantile

BURST = 200
ROUNDS = 30
ROUND_PAUSE = 0.5  # seconds between rounds: bursts see different moments of the host


class HostTerms:
    def __init__(self, lab, table, log):
        self.lab, self.table, self.log = lab, table, log
        self.samples = {}

    def burst(self, term, detail, call, count=BURST, settle=True):
        """Mean host seconds of `count` calls in a row, none of which waits for the GPU."""
        if settle:
            torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            call()
        self.samples.setdefault((term, detail), []).append((time.perf_counter() - began) / count)
        if settle:
            torch.cuda.synchronize()

    def each(self, term, detail, call, count=20):
        """Host seconds of single calls, each started on an idle GPU."""
        for _ in range(count):
            torch.cuda.synchronize()
            began = time.perf_counter()
            call()
            self.samples.setdefault((term, detail), []).append(time.perf_counter() - began)

    def write(self):
        now = int(time.time())
        for (term, detail), values in self.samples.items():
            self.table.append(dict(
                term=term, detail=detail, samples=len(values), p5_s=f"{quantile(values, .05):.4g}",
                p50_s=f"{statistics.median(values):.4g}", p95_s=f"{quantile(values, .95):.4g}",
                mean_s=f"{statistics.fmean(values):.4g}", unix_time=now))


def _launch_calls():
    """Calls whose kernels are shorter than their launch, from bare to what a model layer does."""
    x = torch.randn(1, 1024, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
    out, residual, weight = torch.empty_like(x), torch.zeros_like(x), torch.ones(1024, device="cuda", dtype=torch.bfloat16)
    return {
        "torch_add": lambda: x.add_(0.001),
        "torch_mm": lambda: torch.mm(x, w, out=out),
        "torch_linear": lambda: torch.nn.functional.linear(x, w),
        "triton_norm": lambda: triton_elementwise.norm(x, residual, weight, out),
    }


def _graphs(lab):
    """Graphs of n tiny kernels: the slope of device time over n is a kernel with its gap."""
    tiny = torch.randn(32, device="cuda")
    return {n: lab.timer.capture(lambda i: tiny.add_(1.0), n) for n in (1, 16, 64, 256, 1024)}


def _device_terms(terms, graphs, timer):
    """Device seconds of a replay against its number of kernels, and the slope between the largest two."""
    medians = {}
    for n, graph in graphs.items():
        times, _ = timer.replay_times(graph, 15, warm=True)
        terms.samples.setdefault(("graph_replay_device", f"kernels={n}"), []).extend(times)
        medians[n] = statistics.median(times)
    terms.samples.setdefault(("graph_kernel_slope", "tiny kernel with its gap"), []).append(
        (medians[1024] - medians[64]) / 960)


def _switch_graphs(lab, tokens, rounds=24):
    """The kernels of `rounds` feed-forward blocks, kind after kind and block after block.

    Rows of the kernel table repeat one kernel, whose code then sits in every cache. In a step other kernels, and
    gigabytes of weights, come between. The difference of these two graphs is that, a kernel.
    """
    hidden, inter = 4096, 3584
    new = lambda *size: torch.randn(*size, device="cuda").to(torch.bfloat16)
    x, residual, normed, acted = new(tokens, hidden), new(tokens, hidden), new(tokens, hidden), new(tokens, inter)
    gate_up, weight = new(tokens, 2 * inter), new(hidden)
    kinds = [
        lambda i: triton_elementwise.norm(x, residual, weight, normed),
        lambda i: torch.mm(normed, lab.weights.cut(i, (2 * inter, hidden)).t(), out=gate_up),
        lambda i: triton_elementwise.act(gate_up, acted),
        lambda i: torch.mm(acted, lab.stream.cut(i, (hidden, inter)).t(), out=x),
    ]
    for call in kinds:
        call(0)
    count = len(kinds) * rounds
    grouped = lab.timer.capture(lambda i: kinds[i // rounds](i % rounds), count)
    interleaved = lab.timer.capture(lambda i: kinds[i % len(kinds)](i // len(kinds)), count)
    return grouped, interleaved, count


def _switch_terms(terms, switches, timer):
    for tokens, (grouped, interleaved, count) in switches.items():
        apart, mixed = (statistics.median(timer.replay_times(graph, 5, warm=False)[0]) for graph in (grouped, interleaved))
        terms.samples.setdefault(("kernel_switch", f"tokens={tokens}"), []).append((mixed - apart) / count)


def _token_round_trip(batch):
    """What follows sampling: wait for the step, bring the sampled tokens to the host."""
    tokens = torch.randint(0, 1000, (batch,), device="cuda")
    host = torch.empty(batch, dtype=torch.int64, pin_memory=True)
    done = torch.cuda.Event()

    def pinned():
        host.copy_(tokens, non_blocking=True)
        done.record()
        done.synchronize()
        return host.tolist()

    return {"tolist": tokens.tolist, "pinned_copy_event": pinned}


def _input_preparation(batch):
    """What precedes a step: ids, positions, slots and contexts go up; one page-table row of each request may too."""
    pinned = torch.empty(4, batch, dtype=torch.int64, pin_memory=True)
    device = torch.empty(4, batch, dtype=torch.int64, device="cuda")
    pages = torch.empty(batch, 256, dtype=torch.int32, pin_memory=True)
    device_pages = torch.empty(batch, 256, dtype=torch.int32, device="cuda")
    values = list(range(batch))

    def fill():
        view = pinned.numpy()
        for row in range(4):
            view[row, :] = values

    return {
        "fill_pinned": fill,
        "upload_4_vectors": lambda: device.copy_(pinned, non_blocking=True),
        "upload_page_table": lambda: device_pages.copy_(pages, non_blocking=True),
        "python_loop_requests": lambda: [(i, i + 1, i // 64) for i in values],
    }


def measure_host(lab, table, log, deadline):
    """All terms, ROUNDS times over; stops at the deadline with whatever rounds are complete."""
    terms = HostTerms(lab, table, log)
    launches, graphs = _launch_calls(), _graphs(lab)
    switches = {tokens: _switch_graphs(lab, tokens) for tokens in (1, 16, 128)}
    for call in launches.values():
        call()
    event = torch.cuda.Event()
    for round_number in range(ROUNDS):
        if time.monotonic() > deadline:
            log(f"host terms: stopped after {round_number} of {ROUNDS} rounds")
            break
        for name, call in launches.items():
            terms.burst("eager_launch", name, call)
        for n, graph in graphs.items():
            terms.each("graph_replay_host", f"kernels={n}", graph.replay, count=5)
            terms.each("graph_replay_and_sync", f"kernels={n}", lambda: (graph.replay(), torch.cuda.synchronize()), count=5)
        _device_terms(terms, graphs, lab.timer)
        _switch_terms(terms, switches, lab.timer)
        terms.burst("stream_synchronize_idle", "", lab.timer.stream.synchronize)
        terms.burst("event_record", "", event.record)
        for batch in (1, 16, 64, 256):
            for name, call in _token_round_trip(batch).items():
                terms.each("tokens_to_host", f"{name} batch={batch}", call)
            for name, call in _input_preparation(batch).items():
                terms.burst("input_preparation", f"{name} batch={batch}", call, count=50)
        time.sleep(ROUND_PAUSE)
    terms.write()
    log(f"host terms: {len(terms.samples)} terms")
