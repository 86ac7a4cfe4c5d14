"""Measures how KV blocks get from host memory to this GPU and back: in one piece, piece by piece, or gathered by a kernel.

    python3 tools/gpu/kv_copies.py --out DIR [--budget-s 120]

One row a way and size in DIR/kv_copies.csv. Pieces lie at random places of a pinned buffer and of the GPU's memory, as blocks of a paged
cache do, and all belong to one load. `seconds` is the median of the stream's time from before the first launch to after the last piece.

| way | is |
|---|---|
| whole | one copy of all bytes, which lie together |
| copies | one `cudaMemcpyAsync` a piece, from a loop in C |
| batch | one `cudaMemcpyBatchAsync` of all pieces, where the runtime has it |
| kernel | one kernel that reads one side and writes the other |

`beside` says what runs meanwhile: nothing, whole copies the other way, or a kernel that reads the GPU's memory, whose rate with and
without copies is in `reading_slower`.
"""
import argparse
import csv
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import triton
import triton.language as tl

COLUMNS = ["direction", "way", "beside", "piece_bytes", "pieces", "seconds", "least_s", "most_s", "reading_slower"]
PIECES = [2**i for i in range(12, 23)]
MOST_PIECES = 4096
MOST_BYTES = 2**28
REPEATS = 9
CHUNK = 4096  # bytes that a program of the kernel moves at once
LOOP = """
#include <stddef.h>
typedef int (*copy_t)(void*, const void*, size_t, int, void*);
int copy_all(copy_t copy, char* to, const char* from, const long* to_piece, const long* from_piece, size_t bytes, int kind, long n, void* stream) {
  for (long i = 0; i < n; ++i) {
    int status = copy(to + to_piece[i] * bytes, from + from_piece[i] * bytes, bytes, kind, stream);
    if (status) return status;
  }
  return 0;
}
"""


@triton.jit
def _move(to_ptr, from_ptr, to_piece, from_piece, piece, CHUNK: tl.constexpr):
    which, part = tl.program_id(0), tl.program_id(1)
    words = part * CHUNK + tl.arange(0, CHUNK)
    live = words < piece
    read = tl.load(from_ptr + tl.load(from_piece + which) * piece + words, mask=live)
    tl.store(to_ptr + tl.load(to_piece + which) * piece + words, read, mask=live)


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Attributes(ctypes.Structure):
    _fields_ = [("order", ctypes.c_int), ("source", Location), ("target", Location), ("flags", ctypes.c_uint)]


def compile_loop():
    folder = tempfile.mkdtemp()
    source, library = pathlib.Path(folder, "loop.c"), pathlib.Path(folder, "loop.so")
    source.write_text(LOOP)
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library)).copy_all


def runtime():
    """The CUDA runtime that PyTorch has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libcudart" in line}
    return ctypes.CDLL(paths.pop())


class Copies:
    def __init__(self):
        self.host = torch.empty(2 * MOST_BYTES, dtype=torch.uint8, pin_memory=True)
        self.host.random_()
        self.device = torch.empty(2 * MOST_BYTES, dtype=torch.uint8, device="cuda")
        self.stream, self.aside = torch.cuda.Stream(), torch.cuda.Stream()
        self.loop, self.cuda = compile_loop(), runtime()
        version = ctypes.c_int()
        self.cuda.cudaRuntimeGetVersion(ctypes.byref(version))
        self.version = version.value
        self.read = torch.empty(2**32, dtype=torch.uint8, device="cuda").view(torch.float32)

    def ends(self, direction):
        down = direction == "device_to_host"
        return (self.host, self.device, 2) if down else (self.device, self.host, 1)

    def places(self, piece, pieces, seed):
        make = torch.Generator().manual_seed(seed)
        return torch.randperm(2 * MOST_BYTES // piece, generator=make)[:pieces].to(torch.int64)

    def whole(self, direction, piece, pieces):
        to, source, _ = self.ends(direction)
        size = piece * pieces
        return lambda: to[:size].copy_(source[:size], non_blocking=True)

    def copies(self, direction, piece, pieces):
        to, source, kind = self.ends(direction)
        to_piece, from_piece = self.places(piece, pieces, 1), self.places(piece, pieces, 2)
        copy = ctypes.cast(self.cuda.cudaMemcpyAsync, ctypes.c_void_p)
        pointers = [ctypes.c_void_p(x.data_ptr()) for x in (to, source, to_piece, from_piece)]

        def call():
            status = self.loop(copy, *pointers, ctypes.c_size_t(piece), kind, ctypes.c_long(pieces), ctypes.c_void_p(self.stream.cuda_stream))
            if status:
                raise RuntimeError(f"cudaMemcpyAsync: {status}")
            return to_piece, from_piece  # alive until here

        return call

    def batch(self, direction, piece, pieces):
        to, source, _ = self.ends(direction)
        addresses = ctypes.c_void_p * pieces
        targets = addresses(*(to.data_ptr() + p * piece for p in self.places(piece, pieces, 1).tolist()))
        sources = addresses(*(source.data_ptr() + p * piece for p in self.places(piece, pieces, 2).tolist()))
        sizes = (ctypes.c_size_t * pieces)(*([piece] * pieces))
        attributes, first = Attributes(order=1), ctypes.c_size_t(0)
        failed = [ctypes.byref(ctypes.c_size_t())] if self.version < 13000 else []

        def call():
            status = self.cuda.cudaMemcpyBatchAsync(targets, sources, sizes, ctypes.c_size_t(pieces), ctypes.byref(attributes), ctypes.byref(first),
                                                    ctypes.c_size_t(1), *failed, ctypes.c_void_p(self.stream.cuda_stream))
            if status:
                raise RuntimeError(f"cudaMemcpyBatchAsync: {status}")

        return call

    def kernel(self, direction, piece, pieces):
        to, source, _ = self.ends(direction)
        to_piece, from_piece = self.places(piece, pieces, 1).cuda(), self.places(piece, pieces, 2).cuda()
        words = piece // 8
        grid = (pieces, -(-words // (CHUNK // 8)))
        return lambda: _move[grid](to.view(torch.int64), source.view(torch.int64), to_piece, from_piece, words, CHUNK=CHUNK // 8)

    def check(self):
        """What a way brings is what lay there."""
        piece, pieces = 65536, 64
        for way in (self.copies, self.batch, self.kernel):
            self.device.zero_()
            with torch.cuda.stream(self.stream):
                way("host_to_device", piece, pieces)()
            torch.cuda.synchronize()
            brought = self.device.view(-1, piece)[self.places(piece, pieces, 1).cuda()].cpu()
            if not torch.equal(brought, self.host.view(-1, piece)[self.places(piece, pieces, 2)]):
                raise RuntimeError(f"{way.__name__} brought something else")

    def seconds(self, call, meanwhile=None):
        times = []
        for _ in range(REPEATS + 2):
            torch.cuda.synchronize()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            if meanwhile:
                with torch.cuda.stream(self.aside):
                    meanwhile()
            with torch.cuda.stream(self.stream):
                start.record()
                call()
                end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e-3)
        return sorted(times[2:])


def reading_slower(copies, call):
    """How much longer reading the GPU's memory takes while loads run."""
    def read():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        copies.read.sum()
        end.record()
        return start, end

    found = {}
    for beside in (False, True):
        times = []
        for _ in range(REPEATS):
            torch.cuda.synchronize()
            if beside:
                with torch.cuda.stream(copies.stream):
                    call()
            time.sleep(0.0005)
            with torch.cuda.stream(copies.aside):
                start, end = read()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        found[beside] = statistics.median(times)
    return found[True] / found[False]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=120)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    copies = Copies()
    copies.check()
    (arguments.out / "kv_copies_environment.json").write_text(json.dumps(dict(
        device=torch.cuda.get_device_name(), torch=torch.__version__, triton=triton.__version__, cuda_runtime=copies.version)))
    with open(arguments.out / "kv_copies.csv", "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()

        def write(times, **row):
            table.writerow(dict(row, seconds=f"{statistics.median(times):.6g}", least_s=f"{times[0]:.6g}", most_s=f"{times[-1]:.6g}"))
            file.flush()

        def other_way(direction):
            back = "device_to_host" if direction == "host_to_device" else "host_to_device"
            return copies.whole(back, MOST_BYTES, 1)

        for piece in PIECES:
            pieces = min(MOST_PIECES, MOST_BYTES // piece)
            for direction in ("host_to_device", "device_to_host"):
                for way in (copies.whole, copies.copies, copies.batch, copies.kernel):
                    if time.perf_counter() - started > arguments.budget_s:
                        sys.exit("out of time")
                    call = way(direction, piece, pieces)
                    row = dict(direction=direction, way=way.__name__, piece_bytes=piece, pieces=pieces)
                    write(copies.seconds(call), beside="nothing", **row)
                    if piece in (2**15, 2**21):
                        write(copies.seconds(call, other_way(direction)), beside="other_direction", **row)
                        slower = reading_slower(copies, call)
                        write(copies.seconds(call, copies.read.sum), beside="reading", reading_slower=f"{slower:.4f}", **row)
    print(f"done in {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
