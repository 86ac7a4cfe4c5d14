"""How one call is timed: cold L2, CUDA-graph replay, CUDA events, medians.

A graph holds N calls, each on its own copy of the weights, the KV cache or the streamed buffers. Before every replay
the L2 is filled with unrelated data by reading it, so that each of the N calls finds its own copy in DRAM, as a step of
a real model does. Reading, not writing: dirty lines would charge their write-back to the first timed calls. The flush
also gives the host time to enqueue the replay, so the events see no host time. What an event pair around a graph adds
of its own is measured once with tiny kernels (time of N calls = intercept + N * slope) and subtracted.

Rows are taken at the highest clock. An H200 that multiplies matrices without a pause reaches its power limit after
about 25 ms and slows by a quarter; it recovers in 30-100 ms. So replays come in bursts of a few milliseconds, each
followed by a longer rest. `sustained` measures the other end: no rest, clock and power as they settle.
"""
import concurrent.futures
import ctypes
import dataclasses
import math
import statistics
import time
from typing import Callable

import torch

GRAPH_SECONDS = 300e-6  # per replay: the intercept (about 1-3 us) is then below one per cent even before correction
REPLAY_SECONDS = 20e-3  # timed replays of one row, where five replays do not take longer than that anyway
MAX_CALLS = 64
MIN_REPLAYS = 5
MAX_REPLAYS = 15
BURST_SECONDS = 8e-3
REST = 1.25  # seconds of rest a second of work
SPIN_CYCLES = 100_000
SUSTAINED_WARMUP = 0.5  # the clock settles within 0.2 s
SUSTAINED_WINDOW = 1.0


@dataclasses.dataclass
class Case:
    """A row ready to run: `call(i)` launches the kernel on copy i; warm cases reuse one copy and skip the flush."""
    call: Callable[[int], object]
    copies: int
    warm: bool = False


@dataclasses.dataclass
class Timing:
    seconds: float
    p10: float
    p90: float
    calls: int
    replays: int
    setup: float
    clock: float  # of the multiprocessors, Hz, right after the last burst
    watts: float | None = None  # sustained rows only


def quantile(values, fraction):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def graph_node_count(graph):
    """Nodes of a captured graph (kernels, copies, memsets), or None where the driver does not answer."""
    try:
        count = ctypes.c_size_t(0)
        status = ctypes.CDLL("libcuda.so.1").cuGraphGetNodes(
            ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count))
        return count.value if status == 0 else None
    except (OSError, AttributeError, RuntimeError):
        return None


class GpuTimer:
    """Owns the stream everything runs on, the flush buffer and the memory pool that all graphs share."""

    def __init__(self):
        properties = torch.cuda.get_device_properties(0)
        self.multiprocessors = properties.multi_processor_count
        self.l2_bytes = properties.L2_cache_size
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        self.flush_buffer = torch.randn(3 * self.l2_bytes // 4, device="cuda")
        self.flush_result = torch.empty((), device="cuda")
        self.pool = torch.cuda.graph_pool_handle()
        self.tiny = torch.randn(32, device="cuda")
        self.tiny.add_(1.0)
        # A pool is dropped with its last graph; this one keeps it alive, so rows do not pay cudaMalloc and cudaFree.
        self.anchor = self.capture(lambda i: self.tiny.add_(1.0), 1)
        self.intercept = 0.0
        self.tiny_call = 0.0
        self.spin_overhead = 0.0
        self._calibrate()

    def _calibrate(self):
        torch.cuda._sleep(100_000_000)  # 50 ms: the clock must have left idle
        short, long = (statistics.median(self._spin_times(cycles)) for cycles in (SPIN_CYCLES, 3 * SPIN_CYCLES))
        self.spin_overhead = short - (long - short) / 2
        medians = {}
        for calls in (16, 128):
            graph = self.capture(lambda i: self.tiny.add_(1.0), calls)
            self.replay_times(graph, 5, warm=True)
            medians[calls] = statistics.median(self.replay_times(graph, 31, warm=True)[0])
        self.tiny_call = (medians[128] - medians[16]) / 112
        self.intercept = min(max(medians[16] - 16 * self.tiny_call, 0.0), 5e-6)

    def capture(self, call, calls, keep_graph=False):
        """Captures `calls` calls without torch.cuda.graph's gc.collect and empty_cache, which cost more than a row."""
        graph = torch.cuda.CUDAGraph(keep_graph=keep_graph)
        torch.cuda.synchronize()
        graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
        try:
            for i in range(calls):
                call(i)
        except BaseException:
            try:
                graph.capture_end()  # leaves capture mode; the first error is the one worth reporting
            except RuntimeError:
                pass
            raise
        graph.capture_end()
        if keep_graph:
            graph.instantiate()
        return graph

    def flush(self):
        torch.sum(self.flush_buffer, dim=0, out=self.flush_result)

    def delay(self):
        """Keeps the GPU busy for tens of microseconds while the host enqueues what is to be timed."""
        torch.cuda._sleep(150_000)

    def _timed(self, action):
        """Enqueues an action between two events."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        action()
        end.record()
        return start, end

    def _spin_times(self, cycles):
        pairs = []
        for _ in range(5):
            self.delay()
            pairs.append(self._timed(lambda: torch.cuda._sleep(cycles)))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e-3 for start, end in pairs]

    def _clock(self, spin):
        """Clock in Hz from the events around a spin of SPIN_CYCLES."""
        return SPIN_CYCLES / (spin[0].elapsed_time(spin[1]) * 1e-3 - self.spin_overhead)

    def replay_times(self, graph, replays, warm, burst=None):
        """Device seconds of each replay, and the clock after the last; `burst` replays at a time, with rests, if given.

        Nothing is waited for until all of a burst are enqueued. A spin of known cycles at its end shows the clock.
        """
        times = []
        while len(times) < replays:
            began, pairs = time.perf_counter(), []
            for _ in range(min(burst or replays, replays - len(times))):
                self.delay() if warm else self.flush()
                pairs.append(self._timed(graph.replay))
            spin = self._timed(lambda: torch.cuda._sleep(SPIN_CYCLES))
            torch.cuda.synchronize()
            times += [start.elapsed_time(end) * 1e-3 for start, end in pairs]
            clock = self._clock(spin)
            if burst:
                time.sleep(REST * (time.perf_counter() - began))
        return times, clock

    def estimate(self, case):
        """Device seconds of one call. A graph of one: what the host needs for an eager call may exceed the delay."""
        case.call(0)  # compilation, heuristics, plans
        times, _ = self.replay_times(self.capture(case.call, 1), 2, case.warm)
        return max(min(times) - self.intercept, 1e-6)

    def measure(self, case):
        began = time.perf_counter()
        estimate = self.estimate(case)
        wanted = min(MAX_CALLS, math.ceil(GRAPH_SECONDS / estimate))
        calls = wanted if case.warm else min(wanted, case.copies)
        graph = self.capture(case.call, calls)
        setup = time.perf_counter() - began
        once = calls * estimate + 80e-6
        replays = max(MIN_REPLAYS, min(MAX_REPLAYS, int(REPLAY_SECONDS / once)))
        warm_up = 1 if once > 5e-3 else 2
        times, clock = self.replay_times(graph, warm_up + replays, case.warm, max(1, int(BURST_SECONDS / once)))
        times = [max(t - self.intercept, 0.1e-6) / calls for t in times[warm_up:]]
        return Timing(statistics.median(times), quantile(times, 0.1), quantile(times, 0.9), calls, replays, setup, clock)

    def sustained(self, case, meter):
        """Per-call time and power of uninterrupted replay: the power limit acts, as in a busy server."""
        began = time.perf_counter()
        estimate = self.estimate(case)
        calls = math.ceil(20e-3 / estimate)  # copies repeat; a long graph keeps the host out of it
        graph = self.capture(case.call, calls)
        setup = time.perf_counter() - began
        replays = math.ceil((SUSTAINED_WARMUP + SUSTAINED_WINDOW + 0.3) / (calls * estimate))
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
        torch.cuda.synchronize()
        with concurrent.futures.ThreadPoolExecutor(1) as thread:  # the host may block on a full queue
            watts = thread.submit(meter.mean_watts, SUSTAINED_WARMUP, SUSTAINED_WINDOW)
            marks[0].record()
            for mark in marks[1:]:
                graph.replay()
                mark.record()
            spin = self._timed(lambda: torch.cuda._sleep(SPIN_CYCLES))
            torch.cuda.synchronize()
        clock = self._clock(spin)
        settled = [i for i in range(replays) if marks[0].elapsed_time(marks[i]) * 1e-3 > SUSTAINED_WARMUP]
        times = [marks[i].elapsed_time(marks[i + 1]) * 1e-3 / calls for i in settled]
        return Timing(statistics.median(times), quantile(times, 0.1), quantile(times, 0.9), calls, len(times), setup, clock,
                      watts.result())


class Arena:
    """A large block of random numbers that rows cut their weights or KV caches from.

    Filling it once keeps random-number generation out of the rows. One random gibibyte is repeated: the copies differ
    in address, which is what caches see, and their bits are as random as fresh ones, which is what power sees.
    """

    def __init__(self, gibibytes, dtype, std):
        unit = 2**30 // dtype.itemsize
        seed = torch.randn(unit, device="cuda", dtype=torch.float32) * std
        self.data = torch.empty(unit * gibibytes, device="cuda", dtype=dtype)
        block = seed.to(dtype)
        for i in range(gibibytes):
            self.data[i * unit:(i + 1) * unit].copy_(block)

    def copies(self, elements):
        return self.data.numel() // self._pitch(elements)

    def cut(self, i, shape):
        """Copy i of a tensor of this shape (wrapping around), 4 KiB aligned."""
        elements = math.prod(shape)
        pitch = self._pitch(elements)
        start = (i % self.copies(elements)) * pitch
        return self.data[start:start + elements].view(shape)

    def _pitch(self, elements):
        quantum = 4096 // self.data.dtype.itemsize
        return -(-elements // quantum) * quantum
