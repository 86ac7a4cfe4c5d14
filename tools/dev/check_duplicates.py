#!/usr/bin/env python3
"""Finds pieces of C++ that stand in two places. Usage: check_duplicates.py [ROOT] [--lines N]

A piece is N (10) lines in a row that say something, equal but for spaces: comments, braces alone, includes and the
rows of tables do not count. Prints each pair once as file:line and exits 1 if there is one. Tests are left out: two of them may begin alike.
"""

import argparse
import collections
import pathlib
import re
import sys

FOLDERS = ["engine", "sweep", "results", "tools"]
SAYS_NOTHING = re.compile(
    r"^(//.*|[{}();,\s]*|#.*|namespace\b.*|}\s*//.*|using .*|public:|private:|visit\(.*"
    r'|\{?"[^;]*|&\w+::\w+,|\{[\d.,e+\- ]*\},?)$')


def telling_lines(text):
    """(number, line) of the lines that say something, without their spaces."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not SAYS_NOTHING.match(stripped):
            yield number, re.sub(r"\s+", "", stripped)


def duplicates(files, length):
    """[(file, line, file, line)] for the first line of each longest piece; files is {name: text}."""
    lines = {name: list(telling_lines(text)) for name, text in files.items()}
    places = collections.defaultdict(list)
    for name, told in lines.items():
        for at in range(len(told) - length + 1):
            places[tuple(line for _, line in told[at:at + length])].append((name, at))
    found = []
    for where in places.values():
        (first, a), *others = where
        for other, b in others:
            # The piece that begins a line earlier says it already.
            longer = a > 0 and b > 0 and lines[first][a - 1][1] == lines[other][b - 1][1]
            overlaps = first == other and abs(a - b) < length
            if not longer and not overlaps:
                found.append((first, lines[first][a][0], other, lines[other][b][0]))
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--lines", type=int, default=10)
    arguments = parser.parse_args()
    files = {path.relative_to(arguments.root).as_posix(): path.read_text(encoding="utf-8")
             for top in FOLDERS for path in sorted((arguments.root / top).rglob("*")) if path.suffix in (".h", ".cc")}
    found = duplicates(files, arguments.lines)
    for first, a, other, b in found:
        print(f"{first}:{a}: error: the same {arguments.lines} lines stand in {other}:{b}")
    print(f"duplicates: {len(files)} files, {len(found)} pieces of {arguments.lines} lines twice")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
