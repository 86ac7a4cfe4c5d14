"""The programs that a Python has started: which are they, and when have they ended?"""

import pathlib
import time


def programs_of(pid):
    """Programs of this name below a process."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = entry.read_text().rsplit(")", 1)
        except OSError:
            continue
        if "llmsweep" in name and int(fields.split()[1]) == pid:
            found.append(int(entry.parent.name))
    return found


def ended(pid, until):
    """Whether it ends before that moment of the monotonic clock. A program whose Python was killed still writes its last rows."""
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not runs(pid)


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
