#!/usr/bin/env python3
"""Writes requirements.txt from requirements.in: every package, its exact version and the hashes of its files.

Usage: pin_packages.py [--python PYTHON] [SET...]   asks the pip of PYTHON (default: .deps/py) what it would install on
each machine of the table below, for each set (default: all). Nothing is installed. Needs whatever package index
pip is configured for; call it after a change of SET.in, and look at the difference before it is committed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# What is asked for in SET.in is pinned in SET.txt, with all it needs; of the charts only the wheel itself,
# since nothing is installed but one file taken out of it.
SETS = {"requirements": [], "browser": [], "cluster": [], "docs": [], "python": [], "charts": ["--no-deps"]}

# Python and the newest glibc a wheel may ask for: Debian 12, Ubuntu 24.04 and Debian 13. A newer glibc
# takes older wheels too, so pip is offered every level up to it.
SYSTEMS = [("3.11", 36), ("3.12", 39), ("3.13", 41)]
MACHINES = ["x86_64", "aarch64"]
OLDEST_GLIBC = 5

HEADER = """\
# Written by tools/dev/pin_packages.py from {wanted}; do not edit. pip refuses any file whose hash
# is not here. Hashes are of the wheels for CPython {pythons} on {machines}.
"""


def platforms(machine, glibc):
    levels = [f"manylinux_2_{level}_{machine}" for level in range(glibc, OLDEST_GLIBC - 1, -1)]
    return levels + [f"{old}_{machine}" for old in ("manylinux2014", "manylinux2010", "manylinux1")]


def resolved(pips_python, wanted, python, glibc, machine):
    """{name: (version, hash)} of what pip would install there."""
    with tempfile.TemporaryDirectory(prefix="llmsweep-pins-") as scratch:
        report = pathlib.Path(scratch) / "report.json"
        command = [pips_python, "-I", "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--only-binary=:all:",
                   "--implementation", "cp", "--python-version", python, "--target", scratch,
                   "--report", report, "-r", HERE / f"{wanted}.in", *SETS[wanted]]
        for platform in platforms(machine, glibc):
            command += ["--platform", platform]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text())["install"]
    return {item["metadata"]["name"].lower().replace("_", "-"):
            (item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"])
            for item in found}


def pins(wanted, answers):
    """The answers of all machines as {name: (version, sorted hashes)}."""
    versions, hashes = {}, {}
    for answer in answers:
        for name, (version, digest) in answer.items():
            if versions.setdefault(name, version) != version:
                sys.exit(f"{name} is {versions[name]} on one machine and {version} on another: "
                         f"state a version all of them have in {wanted}.in")
            hashes.setdefault(name, set()).add(digest)
    return {name: (versions[name], sorted(hashes[name])) for name in sorted(versions)}


def text_of(wanted, pinned):
    text = HEADER.format(wanted=f"{wanted}.in", pythons=" ".join(python for python, _ in SYSTEMS), machines=" and ".join(MACHINES))
    for name, (version, digests) in pinned.items():
        text += " \\\n".join([f"{name}=={version}"] + [f"    --hash=sha256:{digest}" for digest in digests]) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=HERE.parent.parent / ".deps/py/bin/python", help="one that has pip")
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    arguments = parser.parse_args()
    for wanted in arguments.sets or SETS:
        answers = [resolved(arguments.python, wanted, python, glibc, machine)
                   for python, glibc in SYSTEMS for machine in MACHINES]
        (HERE / f"{wanted}.txt").write_text(text_of(wanted, pins(wanted, answers)))


if __name__ == "__main__":
    main()
