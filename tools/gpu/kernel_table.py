"""Kernel tables on disk: which columns they have, and how rows survive a kill.

One row is one measured call. Rows are appended and flushed one by one, so that a run stopped by its time limit
loses at most the row in flight; a resumed run reads what is there and skips it.
"""
import csv
import os

KERNEL_COLUMNS = [
    "family", "impl", "dtype", "kv_dtype", "m", "n", "k", "batch", "query_len", "context_len", "q_heads", "kv_heads",
    "head_dim", "window", "tokens", "hidden", "inter", "topk", "experts", "tp", "ep", "skew", "bytes", "ranks", "seconds",
]
# How each kernel row was measured: kept out of the kernel table so that the table keeps exactly its agreed columns.
DETAIL_COLUMNS = ["row", "calls", "replays", "p10_s", "p90_s", "setup_s", "sm_mhz", "watts"]
HOST_COLUMNS = ["term", "detail", "samples", "p5_s", "p50_s", "p95_s", "mean_s", "unix_time"]
STEP_COLUMNS = [
    "model", "phase", "mode", "batch", "query_len", "context_len", "chunk_context_len", "seconds", "p10", "p90",
    "wall_seconds", "rested_seconds", "sm_mhz", "kernels_launched",
    # The model's shape, so that nobody has to know its name to check a step.
    "layers", "hidden", "q_heads", "kv_heads", "head_dim", "inter", "vocabulary",
]
STEP_KERNEL_COLUMNS = [
    "model", "phase", "batch", "query_len", "context_len", "chunk_context_len", "kernel", "calls", "seconds",
]


def kernel_key(row):
    """Identity of a kernel row: every column but the measured one."""
    return ";".join(str(row.get(column, "")) for column in KERNEL_COLUMNS[:-1])


def step_key(row):
    """Identity of a step row: what was run, not how long it took."""
    return ";".join(str(row.get(column, "")) for column in STEP_COLUMNS[:7])


class AppendTable:
    """A CSV file that only grows; `keys` holds the identities already present."""

    def __init__(self, path, columns, key=None):
        self.columns = columns
        self.key = key
        self.keys = set()
        self.count = 0
        existing = os.path.exists(path) and os.path.getsize(path) > 0
        if existing:
            self._read_existing(path)
        self.file = open(path, "a", newline="", buffering=1)
        self.writer = csv.DictWriter(self.file, columns, extrasaction="ignore", lineterminator="\n")
        if not existing:
            self.writer.writeheader()

    def _read_existing(self, path):
        """Loads identities; a last line cut off by a kill is removed so that the next append starts clean."""
        with open(path, "r+b") as raw:
            content = raw.read()
            whole = content.rfind(b"\n") + 1
            raw.truncate(whole)
        with open(path, newline="") as text:
            reader = csv.DictReader(text)
            if reader.fieldnames != self.columns:
                raise SystemExit(f"{path}: columns differ from this version's; move the file away or choose another --out")
            for row in reader:
                self.count += 1
                if self.key:
                    self.keys.add(self.key(row))

    def append(self, row):
        self.writer.writerow(row)
        self.file.flush()
        self.count += 1
        if self.key:
            self.keys.add(self.key(row))
