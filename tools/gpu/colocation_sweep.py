"""Measures what two tenants of one GPU do to one another: steps and kernels alone and side by side.

    python3 tools/gpu/colocation_sweep.py --out DIR [--budget-s 340]

Two rows a pair in DIR/colocation.csv, one for each side, written as they are done. Both sides run without a pause; `seconds`
is the median time from one end of a step (of a kernel's call) to the next while both were running, `alone_s` the same without
the other, in the same mode. Modes:

    streams     one process, one stream each: the hardware mixes their blocks
    partition   the same, each stream on its own multiprocessors (`share` of them; green contexts)
    processes   two processes: the driver gives the GPU to one and then the other
    mps         two processes under MPS, each limited to `share` of the threads; only where nvidia-cuda-mps-control is there

Nothing of the card is set. The parent touches no GPU: each mode is measured by processes of its own.
"""
import argparse
import csv
import ctypes
import json
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

COLUMNS = ["mode", "share", "job", "kind", "model", "batch", "context", "chunk", "beside", "seconds", "p10_s", "p90_s",
           "steps", "alone_s", "slowdown"]
WINDOW = 0.6  # seconds each side runs alone; together they take as long as both need
PARTS = {"streams": 0.3, "processes": 0.3, "partition": 0.3, "mps": 0.3}  # of the budget; shared out where one is missing
PARTITIONED = 4  # jobs
PARTITION_SHARES = [0.5, 0.25, 0.75]
MPS_SHARES = [1.0, 0.5, 0.25]


def pairs(jobs):
    """Those of the first jobs first: a truncated run has all pairs of some jobs."""
    return [(a, b) for b in range(len(jobs)) for a in range(b + 1)]


def gaps(ends, begin, end):
    """Times between ends of steps inside a window."""
    inside = [t for t in ends if begin <= t <= end]
    return [b - a for a, b in zip(inside, inside[1:])]


class Table:
    def __init__(self, path, mode):
        self.file, self.mode = open(path, "a", newline=""), mode
        self.writer = csv.DictWriter(self.file, COLUMNS)
        if not self.file.tell():
            self.writer.writeheader()
        self.rows = 0

    def add(self, share, job, beside, found, alone):
        if not found:
            return
        ordered, median = sorted(found), statistics.median(found)
        self.writer.writerow(dict(
            mode=self.mode, share=share, job=job.name(), kind=job.kind, model=job.model, batch=job.batch,
            context=job.context, chunk=job.chunk, beside=beside, seconds=f"{median:.6g}",
            p10_s=f"{ordered[len(ordered) // 10]:.6g}", p90_s=f"{ordered[len(ordered) * 9 // 10]:.6g}", steps=len(found),
            alone_s=f"{alone:.6g}", slowdown=f"{median / alone:.4f}"))
        self.file.flush()
        self.rows += 1


# ---- one process, two streams ----------------------------------------------------------------------


def split_streams(share, multiprocessors):
    """Two streams on disjoint multiprocessors, the first on about `share` of them, through the driver's green contexts."""
    import torch
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    resource = lambda: ctypes.create_string_buffer(1024)  # CUdevResource, with room to grow
    whole, part, rest = resource(), resource(), resource()
    call("cuDeviceGetDevResource", 0, whole, 1)
    groups = ctypes.c_uint(1)
    call("cuDevSmResourceSplitByCount", part, ctypes.byref(groups), whole, rest, 0, round(share * multiprocessors))
    streams = []
    for piece in (part, rest):
        description, context, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuDevResourceGenerateDesc", ctypes.byref(description), piece, 1)
        call("cuGreenCtxCreate", ctypes.byref(context), description, 0, 1)
        call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, 1, 0)
        streams.append(torch.cuda.ExternalStream(stream.value))
    return streams


def run_streams(runs):
    """Ends of the steps of each (graph, calls, stream, step count), all started together, in seconds of one clock."""
    import torch
    origin = torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000)
    origin.record()
    marks = [[] for _ in runs]
    done = [0] * len(runs)
    for run in runs:
        run[2].wait_event(origin)
    while any(count < run[3] for count, run in zip(done, runs)):
        i = min(range(len(runs)), key=lambda i: done[i] / runs[i][3])
        graph, _, stream, _ = runs[i]
        with torch.cuda.stream(stream):
            graph.replay()
            mark = torch.cuda.Event(enable_timing=True)
            mark.record()
        marks[i].append(mark)
        done[i] += 1
    torch.cuda.synchronize()
    return [[origin.elapsed_time(mark) * 1e-3 for mark in side] for side in marks]


def settled(ends):
    """Gaps of a side that ran alone, its first quarter left out."""
    return gaps(ends[len(ends) // 4:], 0, float("inf"))


def alone_in_stream(tenant, graph, calls):
    guess = statistics.median(settled(run_streams([(graph, calls, tenant.stream, 8)])[0]))
    count = max(8, round(WINDOW / guess))
    return settled(run_streams([(graph, calls, tenant.stream, count)])[0]), count


def measure_streams(path, mode, share, chosen, deadline):
    """`chosen`: pairs of jobs; those that the deadline leaves no time for are left out."""
    import torch
    from colocation_jobs import JOBS, Tenant
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    streams = split_streams(share, multiprocessors) if mode == "partition" else [torch.cuda.Stream() for _ in range(2)]
    tenants = [Tenant(stream, multiprocessors) for stream in streams]
    table, graphs, alone = Table(path, mode), {}, {}
    shares = [share, round(1 - share, 3)] if mode == "partition" else [share, share]
    for side in range(2):
        for number in sorted({pair[side] for pair in chosen}):
            job = JOBS[number]
            try:
                graphs[side, number] = tenants[side].capture(job)
                found, count = alone_in_stream(tenants[side], *graphs[side, number])
            except Exception as error:  # a kernel that this torch does not have must not end the sweep
                print(mode, job.name(), type(error).__name__, str(error)[:300], flush=True)
                continue
            calls = graphs[side, number][1]
            alone[side, number] = (statistics.median(found) / calls, count)
            table.add(shares[side], job, "", [t / calls for t in found], alone[side, number][0])
    for a, b in chosen:
        if (0, a) not in alone or (1, b) not in alone or time.monotonic() > deadline:
            continue
        sides = [(0, a), (1, b)]
        ends = run_streams([(*graphs[s], tenants[s[0]].stream, alone[s][1]) for s in sides])
        begin, end = max(side[2] for side in ends), min(side[-1] for side in ends)
        for i, side in enumerate(sides):
            calls = graphs[side][1]
            found = [t / calls for t in gaps(ends[i], begin, end)]
            table.add(shares[i], JOBS[side[1]], JOBS[sides[1 - i][1]].name(), found, alone[side][0])
    print(f"{mode} {share}: {table.rows} rows", flush=True)


# ---- two processes ---------------------------------------------------------------------------------


def serve_tenant(pipe):
    """A process that owns one tenant: builds the job it is told, runs it from one moment until another."""
    import torch
    from colocation_jobs import JOBS, Tenant
    tenant = Tenant(torch.cuda.Stream(), torch.cuda.get_device_properties(0).multi_processor_count)
    graphs = {}
    for number, job in enumerate(JOBS):
        try:
            graphs[number] = tenant.capture(job)
        except Exception as error:
            print(job.name(), type(error).__name__, str(error)[:300], flush=True)
    pipe.send({number: calls for number, (_, calls) in graphs.items()})
    while (order := pipe.recv()) is not None:
        number, begin, end = order
        graph, ends, pending = graphs[number][0], [], []
        while time.monotonic() < begin:
            pass
        with torch.cuda.stream(tenant.stream):
            while time.monotonic() < end:
                graph.replay()
                mark = torch.cuda.Event()
                mark.record()
                pending.append(mark)
                if len(pending) > 2:  # the next step is always enqueued before the one before it ends
                    pending.pop(0).synchronize()
                    ends.append(time.monotonic())
        torch.cuda.synchronize()
        pipe.send(ends)


def measure_processes(path, mode, share, deadline):
    from colocation_jobs import JOBS
    ends_of_pipes, processes = [], []
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        mine, other = context.Pipe()
        processes.append(context.Process(target=serve_tenant, args=(other,), daemon=True))
        processes[-1].start()
        ends_of_pipes.append(mine)
    table, alone = Table(path, mode), {}
    try:
        calls = [pipe.recv() if pipe.poll(120) else {} for pipe in ends_of_pipes]

        def run(orders):
            begin = time.monotonic() + 0.05
            for side, number in orders:
                ends_of_pipes[side].send((number, begin, begin + (2 if len(orders) > 1 else 1) * WINDOW))
            ends = [ends_of_pipes[side].recv() for side, _ in orders]
            first, last = max(e[len(e) // 6] for e in ends), min(e[-1] for e in ends)
            return [[t / calls[side][number] for t in gaps(e, first, last)] for (side, number), e in zip(orders, ends)]

        usable = [n for n in range(len(JOBS)) if all(n in side for side in calls)]
        for number in usable:
            found = run([(0, number)])[0]
            alone[number] = statistics.median(found)
            table.add(share, JOBS[number], "", found, alone[number])
        for a, b in pairs(JOBS):
            if a not in alone or b not in alone or time.monotonic() > deadline:
                continue
            for i, found in enumerate(run([(0, a), (1, b)])):
                number, other = (a, b)[i], (a, b)[1 - i]
                table.add(share, JOBS[number], JOBS[other].name(), found, alone[number])
        for pipe in ends_of_pipes:
            pipe.send(None)
    finally:
        for process in processes:
            process.join(20)
            if process.is_alive():
                process.kill()
    print(f"{mode} {share}: {table.rows} rows", flush=True)


# ---- the parts -------------------------------------------------------------------------------------


def part(target, *arguments, limit):
    """A part in a process of its own, which may fail alone."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        print(arguments[1:3], "took too long", flush=True)


def measure_mps(path, control, budget):
    folder = tempfile.mkdtemp()
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=folder, CUDA_MPS_LOG_DIRECTORY=folder)
    try:
        subprocess.run([control, "-d"], check=True, timeout=20)
        for share in MPS_SHARES:
            os.environ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(round(100 * share))
            each = budget / len(MPS_SHARES)
            part(measure_processes, path, "mps", share, time.monotonic() + each, limit=each + 60)
    except (OSError, subprocess.SubprocessError) as error:
        print("mps:", error, flush=True)
    finally:
        subprocess.run([control], input="quit\n", text=True, timeout=20, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--budget-s", type=float, default=340)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "colocation.csv"
    path.unlink(missing_ok=True)
    from colocation_jobs import JOBS
    import torch
    (arguments.out / "colocation_environment.json").write_text(json.dumps(dict(
        torch=torch.__version__, cuda=torch.version.cuda, window_s=WINDOW, jobs=[job.name() for job in JOBS])))
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        print("mps: there is no nvidia-cuda-mps-control", flush=True)
    parts = {mode: share for mode, share in PARTS.items() if control or mode != "mps"}
    budget = {mode: arguments.budget_s * share / sum(parts.values()) for mode, share in parts.items()}
    until = lambda seconds: time.monotonic() + seconds
    part(measure_streams, path, "streams", "", pairs(JOBS), until(budget["streams"]), limit=budget["streams"] + 20)
    part(measure_processes, path, "processes", "", until(budget["processes"]), limit=budget["processes"] + 20)
    both_ways = [way for a, b in pairs(JOBS[:PARTITIONED]) for way in dict.fromkeys([(a, b), (b, a)])]
    each = budget["partition"] / len(PARTITION_SHARES)
    for share in PARTITION_SHARES:
        part(measure_streams, path, "partition", share, both_ways, until(each), limit=each + 20)
    if control:
        measure_mps(path, control, budget["mps"])


if __name__ == "__main__":
    main()
