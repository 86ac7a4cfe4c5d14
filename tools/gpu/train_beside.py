"""Measures what kernels of a training step take on this GPU beside a collective, which occupies some multiprocessors.

    python3 tools/gpu/train_beside.py --out DIR [--budget-s 250]

DIR/train_beside.csv: one kernel (what, format, sizes) beside `occupied` blocks of 640 threads that each fill a multiprocessor's
room for a product's blocks and copy memory, or only wait, until the kernel is done: what NCCL's kernels do. Zero blocks is the kernel
alone. Libraries are not told of it, as in a step. `kernel` is the name that the profiler has for the longest kernel of the call.
Rows with a clock and power are of a second without a pause, in which large products reach the power limit; the others of short bursts.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cupy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from fp8_linear import E4M3, E5M2, product, transposed  # noqa: E402
from train_kernels import Table  # noqa: E402

COLUMNS = ["what", "format", "m", "n", "k", "other", "occupied", "seconds", "p10_s", "p90_s", "sm_mhz", "power_w", "kernel"]
# Rows of a micro-batch and matrices: a 405B model over 8 devices, a 70B model over 4, 7B, 3B and 1B models whole.
SHAPES = [(4096, 13312, 16384), (4096, 16384, 6656), (4096, 2304, 16384), (8192, 14336, 8192), (8192, 8192, 7168), (8192, 2560, 8192),
          (12288, 16384, 4096), (12288, 4096, 16384), (12288, 12288, 4096), (16384, 10240, 2560), (24576, 8192, 2048), (24576, 6144, 2048)]
UNBROKEN = SHAPES[::3]
OCCUPIED = (0, 2, 8, 16, 24, 32)
REPEATS, WARM_UP, CALLS, SPIN, REST = 7, 2, 4, 2_000_000, 1.25
UNBROKEN_S, MOST_NS = 1.2, 5_000_000_000  # of rows under unbroken load; a neighbour ends after so long whatever happens
READ_BOARD = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw.instant", "--format=csv,noheader,nounits"]
THREADS, ROOM = 640, 100_000  # of NCCL's kernels: threads, and more shared memory than a product's block leaves

OCCUPY = cupy.RawKernel(r"""
extern "C" __global__ void occupy(volatile int* done, const uint4* from, uint4* to, int values, int copies, long long most_ns) {
  extern __shared__ int room[];
  long long began, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  const uint4* in = from + (long long)blockIdx.x * values;
  uint4* out = to + (long long)blockIdx.x * values;
  int at = threadIdx.x;
  do {
    if (copies) {
      for (int i = 0; i < 8; ++i) { out[at] = in[at]; at += blockDim.x; if (at >= values) at = threadIdx.x; }
    }
    if (threadIdx.x == 0) room[0] = *done;
    __syncthreads();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (room[0] == 0 && now - began < most_ns);
}
""", "occupy")


class Neighbour:
    """A kernel of so many blocks that is there until told."""

    VALUES = 1 << 18  # of 16 bytes, a block

    def __init__(self):
        self.done = torch.zeros((), dtype=torch.int32, device="cuda")
        self.memory = torch.zeros(2 * max(OCCUPIED) * self.VALUES * 4, dtype=torch.int32, device="cuda")
        self.stream = torch.cuda.Stream()
        OCCUPY.max_dynamic_shared_size_bytes = ROOM

    def start(self, blocks, copies):
        self.done.zero_()
        torch.cuda.synchronize()
        if blocks == 0:
            return
        half = self.memory.numel() // 2 * 4
        with cupy.cuda.ExternalStream(self.stream.cuda_stream):
            OCCUPY((blocks,), (THREADS,), (self.done.data_ptr(), self.memory.data_ptr(), self.memory.data_ptr() + half, self.VALUES, copies,
                                                 MOST_NS), shared_mem=ROOM)


def timed(call, neighbour, blocks, copies):
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        neighbour.start(blocks, copies)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(SPIN)
        start.record()
        for _ in range(CALLS):
            call()
        end.record()
        neighbour.done.fill_(1)
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / CALLS)
        time.sleep(REST * min(0.02, time.perf_counter() - began))
    times.sort()
    return statistics.median(times), times[0], times[-1]


def unbroken(call, neighbour, blocks):
    """Seconds of a call in the second half of a run of calls without a pause, beside copies, with clock and power meanwhile."""
    neighbour.start(blocks, 1)
    torch.cuda._sleep(SPIN)
    began, calls, seen = time.perf_counter(), 0, None
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    behind = [torch.cuda.Event() for _ in range(8)]
    while (passed := time.perf_counter() - began) < UNBROKEN_S:
        if seen is None and passed > UNBROKEN_S / 2:
            start.record()
            seen, calls = subprocess.Popen(READ_BOARD, stdout=subprocess.PIPE, text=True), 0
        for _ in range(CALLS):
            call()
        mark = behind[calls // CALLS % len(behind)]
        mark.synchronize()  # the host stays a few rounds ahead, not more
        mark.record()
        calls += CALLS
    end.record()
    neighbour.done.fill_(1)
    torch.cuda.synchronize()
    clock, power = seen.communicate()[0].split(",")
    return start.elapsed_time(end) / 1e3 / calls, clock.strip(), power.strip()


def longest_kernel(call):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    return max(found.key_averages(), key=lambda event: getattr(event, "self_device_time_total", 0)).key[:120]


def products(m, n, k):
    x, w, g = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k), (m, n)))
    yield "forward", "bf16", lambda: x @ w.t()
    yield "inputs", "bf16", lambda: g @ w
    yield "weights", "bf16", lambda: g.t() @ x
    one = torch.ones((), device="cuda")
    x8, w8, g8 = x.to(E4M3), w.to(E4M3), g.to(E5M2)
    wt, gt, xt = transposed(w8), transposed(g8), transposed(x8)
    yield "forward", "fp8", lambda: product(x8, one, w8, one, True)
    yield "inputs", "fp8", lambda: product(g8, one, wt, one, False)
    yield "weights", "fp8", lambda: product(gt, one, xt, one, False)


def attention(tokens, heads, size):
    q, k, v = (torch.randn(1, heads, tokens, size, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    out = forward()
    gradient = torch.randn_like(out)

    def backward():
        torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    yield "attention", "bf16", forward
    yield "attention_backward", "bf16", backward


def passes(m, n):
    a, b = (torch.randn(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    yield "add", "bf16", lambda: torch.add(a, b, out=out)
    yield "norm", "bf16", lambda: F.rms_norm(a, (n,))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=250)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.perf_counter() + arguments.budget_s
    table, neighbour = Table(arguments.out / "train_beside.csv", COLUMNS), Neighbour()
    plan = [(attention, (8192, 16, 128)), (attention, (4096, 32, 128)), (passes, (8192, 8192))] + [(products, shape) for shape in SHAPES]
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]):
        for make, sizes in plan:
            m, n, k = (*sizes, "")[:3]
            for what, number_format, call in make(*sizes):
                if time.perf_counter() > end:
                    return
                call()
                kernel = longest_kernel(call)
                for blocks in OCCUPIED if sizes in UNBROKEN and what != "inputs" else ():
                    seconds, clock, power = unbroken(call, neighbour, blocks)
                    table.add(dict(what=what, format=number_format, m=m, n=n, k=k, other="copies" if blocks else "", occupied=blocks,
                                   seconds=f"{seconds:.6g}", sm_mhz=clock, power_w=power, kernel=kernel))
                for blocks in OCCUPIED:
                    for other in ("copies", "waits") if blocks in (2, 16) else ("copies",):
                        seconds, low, high = timed(call, neighbour, blocks, int(other == "copies"))
                        table.add(dict(what=what, format=number_format, m=m, n=n, k=k, other=other if blocks else "", occupied=blocks,
                                       seconds=f"{seconds:.6g}", p10_s=f"{low:.6g}", p90_s=f"{high:.6g}", kernel=kernel))


if __name__ == "__main__":
    main()
