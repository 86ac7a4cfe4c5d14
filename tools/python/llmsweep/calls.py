"""How the program is run: shown how far it is, stopped in order, and ended with the Python that started it."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from typing import Callable, Iterable

from llmsweep.program import FAILURE, MISTAKE, STOPPED, LlmsweepError, program
from llmsweep.progress import FAR, Progress

LINE_END = r"\r?\n|\r\x1b\[K"  # the second begins a line that is drawn over


def _environment() -> dict[str, str]:
    """The program ends with the Python that started it, be it killed: nobody would read what it does after that."""
    return {**os.environ, "LLMSWEEP_PARENT": str(os.getpid())}


def _ear(progress: Progress) -> tuple[int, int]:
    """Where messages come out, and where the program puts them in: to a terminal it says often how far it is, else now and then."""
    if progress.moves:
        with contextlib.suppress(OSError):
            return os.openpty()
        progress.moves = False  # this machine has no terminals to give
    return os.pipe()


def _listen(hears: int, progress: Progress, said: list[str], reword: Callable[[str], str]) -> None:
    """Shows how far the program is, and keeps the rest. What is kept when a run turns out to go on are notes, so they are shown; what
    it ends with is said once, by who raises it."""

    def is_far(line: str) -> bool:
        if FAR.match(line):
            progress.say(reword("".join(said)))
            said.clear()
        return progress.far(line)

    rest, text = "", codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        try:
            heard = os.read(hears, 1 << 16)
        except OSError:  # so ends a terminal
            heard = b""
        *lines, rest = re.split(LINE_END, rest + text.decode(heard, not heard))
        said += [line + "\n" for line in filter(None, lines) if not is_far(line)]
        if not heard:
            said += [rest] if rest and not is_far(rest) else []
            return
        # A line that is drawn over ends where the next begins.
        if progress.moves:
            is_far(rest)


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether Ctrl-C ended the program: it is passed on, and waited for, as what is done is kept. A second one ends it at once."""
    interrupted = False
    while True:
        try:
            child.wait()
            return interrupted
        except KeyboardInterrupt:
            interrupted = True
            child.send_signal(signal.SIGINT)


def _heard(command: list[str], progress: Progress, reword: Callable[[str], str]) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end."""
    said: list[str] = []
    hears, says = _ear(progress)
    with open(hears, "rb", buffering=0), tempfile.TemporaryFile() as answer:
        try:
            # Ctrl-C in a terminal is for all in its session: the program would have it from there, and once more from here, which
            # is to end at once. Python gives it to its main thread only.
            alone = threading.current_thread() is threading.main_thread()
            child = subprocess.Popen(command, stdout=answer, stderr=says, env=_environment(), start_new_session=alone)
        finally:
            os.close(says)
        listener = threading.Thread(target=_listen, args=(hears, progress, said, reword), daemon=True)
        try:
            listener.start()
            interrupted = _ended(child)
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            if listener.ident is not None:
                listener.join()
            progress.clear()
        if interrupted:
            raise KeyboardInterrupt
        answer.seek(0)
        return subprocess.CompletedProcess(command, child.returncode, answer.read().decode(errors="replace"), reword("".join(said)))


def call(
    *words: object, good: Iterable[int] = (0,), progress: bool | None = False, reword: Callable[[str], str] = str
) -> subprocess.CompletedProcess[str]:
    """Runs the program; `progress` says whether it is shown how far it is, and what it has to say besides: where errors go, and
    with None only where a person looks on. `reword` turns what it says into words of the caller."""
    shown = Progress(progress)
    done = _heard([program(), *map(str, words)], shown, reword)
    if done.returncode not in tuple(good):
        said = done.stderr
        if done.returncode not in (FAILURE, MISTAKE) or not said:
            said += f"llmsweep {words[0]} " + ("was stopped; what is done is kept" if done.returncode == STOPPED else f"ended with {done.returncode}")
        raise LlmsweepError(said, done.returncode)
    shown.say(done.stderr)
    return done
