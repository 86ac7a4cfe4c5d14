"""Kernel table of point-to-point transfers inside a node, from public network profiles.

    python3 tools/calibrate/link_table.py a100-80gb-sxm ../shared/data a100_links.csv

Sources: network profiles of NVSwitch nodes (data/vidur_profiles) and nccl-tests runs (data/apex_nccl). Transfers between nodes
and all-reduce rows are left out: the former have no link that a kernel table could name, the latter are mostly host time.
"""

import csv
import sys
from pathlib import Path

COLUMNS = ["family", "impl", "dtype", "bytes", "ranks", "seconds"]
PROFILES = {"a100-80gb-sxm": ("a100_dgx", None), "h100-sxm": ("h100_dgx", "H100-SXM-80GB")}


def profile_rows(path):
    with open(path) as file:
        for row in csv.DictReader(file):
            if row["devices_per_node"] == "2" and row["rank"] == "0":
                yield int(row["size"]), float(row["time_stats.send_recv.median"]) * 1e-3


def test_rows(path):
    with open(path) as file:
        for row in csv.DictReader(file):
            size = float(row["size(kb)"]) * 1024
            if row["num_nodes"] == "1" and size > 0:
                yield int(size), float(row["time(us)"]) * 1e-6


def main():
    device, data, output = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    profile, tests = PROFILES[device]
    rows = list(profile_rows(data / "vidur_profiles" / "network" / profile / "send_recv.csv"))
    if tests:
        rows += test_rows(data / "apex_nccl" / tests / "sendrecv.csv")
    with open(output, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for size, seconds in rows:
            writer.writerow(["send_recv", "nccl:send_recv", "fp16", size, 2, seconds])


if __name__ == "__main__":
    main()
