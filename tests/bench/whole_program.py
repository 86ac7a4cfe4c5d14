"""Whole-program benchmark: time, CPU time and peak memory of `llmsweep run` at 1 and 2 threads.

    python3 tests/bench/whole_program.py build/release/llmsweep             a million points
    python3 tests/bench/whole_program.py build/release/llmsweep --ten       and ten million
    python3 tests/bench/whole_program.py build/release/llmsweep --served    10,000 served loads, nothing else

Every figure is of one run; ratios are between runs of this one call, on this one machine.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SWEEPS = pathlib.Path(__file__).resolve().parents[2] / "specs" / "sweeps"


def run(binary, spec, threads):
    """Returns (wall s, CPU s, peak resident MB, bytes on disk) of one run into a fresh folder."""
    folder = tempfile.mkdtemp(prefix="llmsweep-bench-")
    try:
        start = time.monotonic()
        process = subprocess.Popen(
            [binary, "run", str(SWEEPS / spec), "-o", f"{folder}/run", "-j", str(threads)],
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        if status != 0:
            sys.exit(f"{spec}: exit status {status}")
        size = sum(f.stat().st_size for f in pathlib.Path(folder).rglob("*") if f.is_file())
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, size
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--ten", action="store_true", help="also ten million points")
    parser.add_argument("--served", action="store_true", help="10,000 simulations of 1,000 requests instead")
    arguments = parser.parse_args()
    spec, points = ("ten_thousand_served.yaml", 10_000) if arguments.served else ("million_points.yaml", 1_000_000)
    cases = [(spec, points, 1), (spec, points, 2)]
    if arguments.ten:
        cases.append(("ten_million.yaml", 10_000_000, 2))
    print(f"{'points':>12} {'threads':>8} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'disk MB':>8} {'points/s':>10}")
    walls = []
    for spec, points, threads in cases:
        wall, cpu, memory, size = run(arguments.binary, spec, threads)
        walls.append(wall)
        print(f"{points:>12,} {threads:>8} {wall:>8.2f} {cpu:>8.2f} {memory:>8.0f} {size / 1e6:>8.1f} {points / wall:>10,.0f}")
    print(f"threads 1 to 2: {walls[0] / walls[1]:.2f}x")


if __name__ == "__main__":
    main()
