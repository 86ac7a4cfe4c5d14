#!/usr/bin/env python3
"""Checks who includes whom. The two tables below are the architecture; the rest only reads them.

Usage: check_layers.py [ROOT]   prints every broken rule as file:line and exits 1 if there is one.
"""

import pathlib
import re
import sys

ENGINE_ROOMS = [
    "base", "hardware", "model", "workload", "calibration", "kernels", "comm", "host", "memory", "step",
    "speculation", "serving", "sharing",
    "training", "economics",
]
# Rooms in rooms, from the bottom up: each may include those before it, and the room around them all of them.
FLOORS = {
    "engine/serving": ["settings", "sequences", "figures", "policies", "lane", "replica", "fleet", "mechanisms"],
    "engine/training": ["settings", "pipeline", "passes", "run"],
}
ENGINE = ["engine"] + [f"engine/{room}" for room in ENGINE_ROOMS]
ENGINE += [f"{room}/{floor}" for room, floors in FLOORS.items() for floor in floors]
CALIBRATE = [f"tools/calibrate/{room}" for room in ("tables", "fit", "errors")]
SWEEP = ["sweep/input", "sweep/workload", "sweep/language", "sweep/space", "sweep/run"]

# A room and the rooms it may include; itself always. "engine" alone is the front door: the files directly in engine/
# (scenario, outcome, evaluate, explain), the leaves of a scenario, and the tasks, whose settings it is made of.
ROOMS = {
    "engine/base": [],
    "engine/hardware": ["engine/base"],
    "engine/model": ["engine/base", "engine/hardware"],
    "engine/workload": ["engine/base"],
    "engine/calibration": ["engine/base", "engine/hardware"],
    "engine/kernels": ["engine/base", "engine/hardware", "engine/model", "engine/calibration"],
    "engine/comm": ["engine/base", "engine/hardware", "engine/model", "engine/calibration"],
    "engine/host": ["engine/base", "engine/hardware", "engine/model"],
    "engine/memory": ["engine/base", "engine/hardware", "engine/model"],
    "engine/step": ["engine/base", "engine/hardware", "engine/model", "engine/calibration",
                    "engine/kernels", "engine/comm", "engine/host"],
    "engine/speculation": ["engine/base", "engine/step"],
    "engine/sharing": ["engine/base", "engine/hardware", "engine/step"],
    "engine/economics": ["engine/base", "engine/hardware"],
    "engine": ENGINE,
    "sweep/input": ["engine/base"],
    "sweep/workload": ENGINE + ["sweep/input"],
    "sweep/space": ENGINE,
    "sweep/language": ENGINE + ["sweep/input", "sweep/space", "sweep/workload"],
    "sweep/run": ["engine", "engine/base", "sweep/space"],
    "results": ENGINE + ["sweep/input", "sweep/space"],
    "tools/calibrate/tables": ENGINE + SWEEP + ["results"],
    "tools/calibrate/fit": ENGINE + SWEEP + ["results", "tools/calibrate/tables"],
    "tools/terminal": ["engine/base", "sweep/input"],
    "tools/calibrate/errors": ENGINE + SWEEP + ["results", "tools/terminal", "tools/calibrate/tables",
                                                "tools/calibrate/fit"],
    "tools": ENGINE + SWEEP + ["results", "tools/terminal"] + CALIBRATE,
    "tests": ENGINE + SWEEP + ["results", "tools", "tools/terminal"] + CALIBRATE,
}
BELOW = {  # what all floors of a room may include
    "engine/serving": ["engine/base", "engine/hardware", "engine/model", "engine/comm",
                       "engine/memory", "engine/step", "engine/workload"],
    "engine/training": ["engine/base", "engine/hardware", "engine/model", "engine/memory",
                        "engine/step", "engine/comm", "engine/workload"],
}
for room, floors in FLOORS.items():
    inside = [f"{room}/{floor}" for floor in floors]
    for height, floor in enumerate(inside):
        ROOMS[floor] = BELOW[room] + inside[:height]
    ROOMS[room] = BELOW[room] + inside

# Start of a package's header and the rooms it may appear in. Tests may include anything.
PACKAGES = {
    "yaml-cpp/": ["sweep/language"],
    "muParser": ["sweep/space"],
    "tbb/": ["sweep/run"],
    "oneapi/tbb": ["sweep/run"],
    "arrow/": ["results"],
    "parquet/": ["results"],
    "CLI/": ["tools"],
    "Random123/": ["engine/base"],
    "xxhash": ["engine", "engine/base", "sweep/workload", "sweep/space", "results"],
    "nlohmann/": ["sweep/workload", "sweep/language", "sweep/space", "results", "tools"],
    "zlib": ["sweep/input", "results", "tools"],
    "gtest/": [],
    "gmock/": [],
    "benchmark/": [],
}

# The engine is arithmetic: no threads, no clock, no files, no generator that differs by library.
NOT_IN_ENGINE = [
    "thread", "mutex", "shared_mutex", "condition_variable", "future", "chrono", "ctime", "time.h",
    "fstream", "iostream", "filesystem", "random", "unistd.h",
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def room_of(path):
    """The room of a path like engine/kernels/gemm.h, or None for a folder the table does not know."""
    folders = pathlib.PurePosixPath(path).parts[:-1]
    if folders[:2] in (("engine", "tasks"), ("engine", "leaves")):
        return "engine"
    for depth in (3, 2, 1):
        # Only whole rooms count: engine/newroom/x.h is not the front door.
        if len(folders) >= depth and "/".join(folders[:depth]) in ROOMS:
            if folders[0] == "engine" and depth == 1 and len(folders) > 1:
                return None
            return "/".join(folders[:depth])
    return None


def broken_rule(room, quote, header):
    """Why a file in `room` may not include `header`, or None."""
    if quote == '"':
        other = room_of(header)
        if other is None:
            return f'"{header}" is in no room of the table (include by full path from the root)'
        if other != room and other not in ROOMS[room]:
            return f"{room} may not include {other}"
        return None
    if room == "tests":
        return None
    if room.split("/")[0] == "engine" and header in NOT_IN_ENGINE:
        return f"<{header}>: the engine knows no threads, no clock and no files"
    for prefix, rooms in PACKAGES.items():
        if header.startswith(prefix) and room not in rooms:
            return f"<{header}> belongs in {' and '.join(rooms) or 'tests'}, not in {room}"
    return None


def check_file(path, text):
    """Every broken rule in one file, as 'file:line: error: rule'."""
    room = room_of(path)
    if room is None:
        return [f"{path}:1: error: this folder is in no room of tools/dev/check_layers.py"]
    errors = []
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        rule = found and broken_rule(room, found[1], found[2])
        if rule:
            errors.append(f"{path}:{number}: error: {rule}")
    return errors


def check_tree(root):
    errors, files = [], 0
    for top in sorted({room.split("/")[0] for room in ROOMS}):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                files += 1
                text = path.read_text(encoding="utf-8")
                errors += check_file(path.relative_to(root).as_posix(), text)
    return errors, files


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    errors, files = check_tree(root)
    print("\n".join(errors + [f"layers: {files} files, {len(errors)} broken rules"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
