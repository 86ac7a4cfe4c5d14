#!/usr/bin/env python3
"""Which tables of a page are still what the program prints?

Usage: tables.py [--binary LLMSWEEP] [--write] PAGE...     runs the sweep of each block that begins with 'index', and the
`llmsweep top` that stands before the block or in the first lines of the sweep, and compares the rows that the page shows.
With --write the block is replaced by these rows as they are printed now. Sentences about them are left to you. Exit code 1: some moved.
"""

import argparse
import dataclasses
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import tree_pages  # noqa: E402


@dataclasses.dataclass
class Shown:
    line: int
    text: str
    sweep: str
    command: list  # words behind `llmsweep`; empty where nobody says how the table is made


def command_before(lines, sweep_text):
    """The last `llmsweep top` of the section so far, else that of the sweep's comments."""
    section = []
    for line in lines:
        section = [] if line.startswith("#") else [*section, line]
    told = [line.strip() for line in section if line.strip().startswith("llmsweep top")]
    told = told or re.findall(r"^# *(llmsweep top .*)$", sweep_text.replace("\\\n#", " "), re.MULTILINE)
    return shlex.split(told[-1])[1:] if told else []


def tables_of(page, source):
    text = page.read_text()
    lines = text.splitlines()
    for block in tree_pages.blocks_and_prose(text)[0]:
        if not block.text.startswith("index "):
            continue
        before = lines[:block.line - 1]
        named = re.findall(r"specs/sweeps/(\w+)\.yaml", "\n".join(before))
        sweep = source / "specs" / "sweeps" / f"{named[-1]}.yaml"
        yield Shown(block.line, block.text, named[-1], command_before(before, sweep.read_text()))


def words(line):
    return " ".join(line.split())


def rows_now(shown, printed):
    """What is printed now of the rows that the page shows; None where its columns are others."""
    head, *rows = printed.splitlines()
    wanted_head, *wanted = shown.text.splitlines()
    if words(head) != words(wanted_head):
        return None
    indices = {line.split()[0] for line in wanted if line.split()}
    return [head.rstrip(), *(row.rstrip() for row in rows if row.split()[0] in indices)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=tree_pages.SOURCE / "build" / "release" / "llmsweep")
    parser.add_argument("--write", action="store_true", help="put what is printed now into the page")
    parser.add_argument("pages", nargs="+", type=pathlib.Path, metavar="PAGE")
    arguments = parser.parse_args()
    moved = 0
    with tempfile.TemporaryDirectory(prefix="llmsweep-tables-") as home:
        for page in arguments.pages:
            text = page.read_text()
            for shown in tables_of(page, tree_pages.SOURCE):
                where = f"{page}:{shown.line}: {shown.sweep}"
                if not shown.command:
                    print(f"{where}: no command says how it is made")
                    continue
                run = pathlib.Path(home) / shown.sweep
                subprocess.run([arguments.binary, "run", tree_pages.SOURCE / "specs" / "sweeps" / f"{shown.sweep}.yaml", "-o", run, "--quiet"],
                               check=True, stderr=subprocess.DEVNULL)
                verb, _folder, *options = shown.command
                every = [] if "-n" in options else ["-n", "1000"]  # a page may show more rows than `top` prints by itself
                printed = subprocess.run([arguments.binary, verb, run, *options, *every], check=True, capture_output=True, text=True).stdout
                now = rows_now(shown, printed)
                if now is None:
                    print(f"{where}: its columns are not those of 'llmsweep {shlex.join(shown.command)}'")
                elif sorted(map(words, now)) == sorted(map(words, shown.text.splitlines())):
                    print(f"{where}: as printed")
                else:
                    moved += 1
                    print(f"{where}: moved", *("  " + line for line in now), sep="\n")
                    text = text.replace(shown.text, "\n".join(now) + "\n")
            if arguments.write:
                page.write_text(text)
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
