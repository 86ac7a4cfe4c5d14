"""A sweep on a Ray cluster that is there already: many shards, each a task that Ray places, and places again when its node is lost."""

from __future__ import annotations

import ctypes
import io
import os
import pathlib
import signal
import subprocess
import tarfile
import tempfile
import time
from typing import Any, Iterator, Sequence

from llmsweep.calls import call
from llmsweep.program import FAILURE, MISTAKE, NO_POINT_WORKS, STOPPED, LlmsweepError, program
from llmsweep.progress import Progress
from llmsweep.spec import by_key

# Finer than the workers: the last ones decide how far apart nodes end.
SHARDS_PER_WORKER = 8
# Of one shard, before its run is given up. A node that is lost costs each of its shards one.
MOST_RETRIES = 5
# A node that is gone may hold the lock of its shard until the file server notices.
LOCK_PATIENCE_S = 180.0
HELD = "another process is writing this shard"


class TryAgain(LlmsweepError):
    """What another try, perhaps on another node, may mend."""


LIBC = ctypes.CDLL(None)  # loaded before anything forks
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Lets the kernel kill the program with the process that started it: an orphan would go on writing its shard."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_shard(words: Sequence[object]) -> None:
    """Runs the program to the end of its shard."""
    give_up = time.monotonic() + LOCK_PATIENCE_S
    while True:
        done = subprocess.run([program(), "run", *map(str, words)], capture_output=True, text=True, preexec_fn=end_with_parent)
        if done.returncode in (0, NO_POINT_WORKS):
            return
        if not (done.returncode == MISTAKE and HELD in done.stderr):
            break
        if time.monotonic() > give_up:
            raise TryAgain(done.stderr, done.returncode)
        time.sleep(1.0)
    # A program that a signal ended has a negative code.
    kind = TryAgain if done.returncode in (FAILURE, STOPPED) or done.returncode < 0 else LlmsweepError
    raise kind(done.stderr or done.stdout or f"the program ended with {done.returncode}", done.returncode)


def packed(folder: pathlib.Path) -> bytes:
    """The visible files of a run folder."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.name.startswith("."):
                archive.add(file, str(file.relative_to(folder)))
    return data.getvalue()


def unpack(data: bytes, folder: pathlib.Path) -> None:
    """Adds the files of a shard. Its manifest comes last: a shard that has one is whole."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in sorted(archive.getmembers(), key=lambda file: file.name.startswith("manifest-")):
            stream = archive.extractfile(member)
            if stream is None:
                continue
            target = folder / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            hidden = target.with_name(f".{target.name}.pulled")
            hidden.write_bytes(stream.read())
            os.replace(hidden, target)


def work(spec: str, is_text: bool, folder: str | None, words: Sequence[object]) -> bytes | None:
    """One shard, on whatever node: into the shared folder, or (without one) into bytes to send back."""
    with tempfile.TemporaryDirectory(prefix="llmsweep-shard-") as scratch:
        file = pathlib.Path(spec)
        if is_text:
            file = pathlib.Path(scratch) / "sweep.yaml"
            file.write_text(spec)
        place = pathlib.Path(folder) if folder is not None else pathlib.Path(scratch) / "run"
        try:
            run_shard([file, "-o", place, *words])
        except LlmsweepError as error:
            raise type(error)(by_key(str(error), file, spec) if is_text else str(error), error.exit_code) from None
        return None if folder is not None else packed(place)


def connected_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise LlmsweepError("cluster='ray' needs Ray: pip install ray", MISTAKE) from None
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False)
        except ConnectionError as error:
            raise LlmsweepError(f"there is no Ray cluster to connect to: {error}; start one ('ray start --head') or call ray.init yourself", MISTAKE) from error
    return ray


def results_of(ray: Any, tasks: dict[Any, int], progress: Progress) -> Iterator[tuple[int, bytes | None]]:
    """Shards in the order in which they end. Whatever ends this early ends those that are left, and waits until they have."""
    total = len(tasks)
    try:
        while tasks:
            ended, _ = ray.wait(list(tasks), num_returns=1)
            shard = tasks.pop(ended[0])
            try:
                yield shard, ray.get(ended[0])
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None)
                if isinstance(cause, LlmsweepError):
                    raise cause from None
                raise LlmsweepError(f"shard {shard}: {error}; what is done is kept, and the same call goes on", FAILURE) from error
            progress.far(f"{100 * (total - len(tasks)) / total:.1f}%  {total - len(tasks)} of {total} shards")
    finally:
        progress.clear()
        for task in tasks:
            ray.cancel(task)
        if tasks:
            ray.wait(list(tasks), num_returns=len(tasks), timeout=LOCK_PATIENCE_S)


def run_on_ray(
    spec: str, is_text: bool, folder: pathlib.Path, words: Sequence[object], *, threads: int, shards: int | None, pull: bool, progress: bool | None
) -> None:
    """Runs all shards and checks that the run is whole. A call after one that failed does what is missing."""
    ray = connected_ray()
    if shards is None:
        workers = int(ray.cluster_resources().get("CPU", 1)) // threads
        shards = max(1, workers) * SHARDS_PER_WORKER
    # Nobody reads a spec by another node's path, unless that path is the same everywhere.
    if pull and not is_text:
        spec, is_text = pathlib.Path(spec).read_text(), True
    elif not is_text:
        spec = str(pathlib.Path(spec).absolute())
    place = folder.absolute()
    shard_task = ray.remote(work).options(num_cpus=threads, max_retries=MOST_RETRIES, retry_exceptions=[TryAgain])
    wanted = [k for k in range(1, shards + 1) if not (pull and (place / f"manifest-{k}of{shards}.jsonl").exists())]
    tasks = {}
    for k in wanted:
        options = [*words, "--threads", threads, "--shard", f"{k}/{shards}"]
        tasks[shard_task.remote(spec, is_text, None if pull else str(place), options)] = k
    for _, data in results_of(ray, tasks, Progress(progress)):
        if data is not None:
            unpack(data, place)
    call("finish", place, good=(0,))
