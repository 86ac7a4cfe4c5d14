"""The program as a child that stays: requests go down a pipe, rows of points come back."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
import threading
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from llmsweep.program import FAILURE, MISTAKE, LlmsweepError, plain, program


class MistakenScenarios(LlmsweepError):
    """Some scenarios cannot be read. `scenarios` are their numbers, in the list that was given."""

    def __init__(self, message: str, scenarios: list[int]):
        super().__init__(message, MISTAKE)
        self.scenarios = scenarios


def _not_finite(fields: dict[str, list[Any]]) -> MistakenScenarios:
    """Which scenarios have a number that JSON cannot say."""
    at = [(number, path) for path, values in fields.items() for number, value in enumerate(values) if not _is_finite(value)]
    text = "".join(f"scenario {number}: error: {path} is not a finite number\n" for number, path in at)
    return MistakenScenarios(text or "base: error: a number is not finite\n", [number for number, _ in at])


def _is_finite(value: Any) -> bool:
    try:
        json.dumps(value, default=plain, allow_nan=False)
    except ValueError:
        return False
    return True


def _one_value(chunk: Any, kind: pa.DataType) -> pa.Scalar | None:
    """What a column holds in every row, if its statistics say that it is one value or none at all."""
    known = chunk.statistics
    if known is None or not known.has_null_count:
        return None
    if known.null_count == chunk.num_values:
        return pa.scalar(None, kind)
    if known.null_count or not known.has_min_max or known.min != known.max:
        return None
    return pa.scalar(known.max, kind)  # of zeros the least is said to be -0


def _table(rows: bytes) -> pa.Table:
    """The table of a Parquet file. Most of its columns hold one value for all scenarios: those that hold the same one are
    one array, and nothing of them is decoded."""
    file = pa.parquet.ParquetFile(pa.BufferReader(rows))
    if file.metadata.num_row_groups != 1:
        return file.read()
    group, count = file.metadata.row_group(0), file.metadata.num_rows
    arrays: dict[tuple[pa.DataType, Any], pa.Array] = {}
    columns: dict[str, Any] = {}
    for number, field in enumerate(file.schema_arrow):
        value = _one_value(group.column(number), field.type)
        if value is None:
            columns[field.name] = None
            continue
        key = (field.type, value.as_py())
        if key not in arrays:
            arrays[key] = pa.repeat(value, count)
        columns[field.name] = arrays[key]
    others = file.read(columns=[name for name, array in columns.items() if array is None])
    made = [others[name] if array is None else array for name, array in columns.items()]
    return pa.table(made, schema=file.schema_arrow)


class Server:
    """One child. What it answers belongs to what was asked last, so only one thread asks at a time."""

    def __init__(self, threads: int | None = None):
        self.threads = threads
        self._child: subprocess.Popen[bytes] | None = None
        self._words: IO[bytes] | None = None
        self._home: tuple[int, str, str] | None = None
        self._lock = threading.Lock()

    def ask(self, base: dict[str, Any], fields: dict[str, list[Any]], columns: list[str] | None) -> pa.Table:
        """The rows of scenarios that set the same fields, in their order; without fields, the one row of the base."""
        request: dict[str, Any] = {"base": base, "set": fields}
        if columns is not None:
            request["columns"] = columns
        try:
            line = json.dumps(request, separators=(",", ":"), default=plain, allow_nan=False).encode() + b"\n"
        except ValueError:
            raise _not_finite(fields) from None
        with self._lock:
            child = self._alive()
            try:
                header, rows = self._exchange(child, line)
            except BaseException:
                # Half an answer may be in the pipe: the next question must not find it.
                self._end()
                raise
        if "error" in header:
            raise MistakenScenarios(header["error"], header["scenarios"])
        return _table(rows)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _exchange(self, child: subprocess.Popen[bytes], line: bytes) -> tuple[dict[str, Any], bytes]:
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(line)
            child.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and the next line says so
        answer = child.stdout.readline()
        header = json.loads(answer) if answer.endswith(b"\n") else {}
        rows = child.stdout.read(header.get("bytes", 0)) if header else b""
        if not header or len(rows) < header.get("bytes", 0):
            raise LlmsweepError(self._last_words(child), child.returncode or FAILURE)
        return header, rows

    def _alive(self) -> subprocess.Popen[bytes]:
        """The child; a new one after a fork, in another folder (paths are relative to it), or once the last has ended."""
        home = (os.getpid(), os.getcwd(), program())
        if self._child is not None and (self._home != home or self._child.poll() is not None):
            self._end()
        if self._child is None:
            self._words = tempfile.TemporaryFile(prefix="llmsweep-evaluate-")
            options = [] if self.threads is None else ["--threads", str(self.threads)]
            # In a session of its own: Ctrl-C is for who asks.
            self._child = subprocess.Popen(
                [program(), "evaluate", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, start_new_session=True
            )
            self._home = home
        return self._child

    def _last_words(self, child: subprocess.Popen[bytes]) -> str:
        child.wait()
        words = b""
        if self._words is not None:
            self._words.seek(0)
            words = self._words.read()
        return f"llmsweep evaluate ended with {child.returncode}; the next call starts it anew\n{words.decode(errors='replace')}"

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None or self._home is None:
            return
        for pipe in (child.stdin, child.stdout, self._words):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        # After a fork the child is the other process's.
        if self._home[0] == os.getpid():
            child.kill()
            child.wait()


_servers: dict[int | None, Server] = {}


def server(threads: int | None = None) -> Server:
    """The one that is kept for this number of threads."""
    if threads not in _servers:
        _servers[threads] = Server(threads)
        atexit.register(_servers[threads].close)
    return _servers[threads]
