"""A Python in a terminal of its own, which can be read, and in which Ctrl-C can be pressed."""

import fcntl
import os
import pathlib
import re
import subprocess
import sys
import termios
import threading
import time

SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE / "tools" / "python"), "COLUMNS": "100"}


class Terminal:
    def __init__(self, script, *words, cwd):
        self._ours, theirs = os.openpty()
        self.shown = ""
        self.python = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, words)], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=ENVIRONMENT,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        while True:
            try:
                heard = os.read(self._ours, 4096)
            except OSError:
                return
            self.shown += heard.decode(errors="replace")

    def wait_for(self, pattern, seconds=120):
        """Until it is shown, or the Python has ended."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.shown) and self.python.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        return re.search(pattern, self.shown)

    def press_ctrl_c(self):
        os.write(self._ours, b"\x03")

    def end(self, seconds=120):
        """The exit code, once all that was shown has been read."""
        code = self.python.wait(seconds)
        self._reader.join()
        os.close(self._ours)
        return code
