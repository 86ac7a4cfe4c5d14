"""A spec that is a dict: how it becomes a file, and places in that file its keys again."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import tempfile
from typing import Any, Iterator, Mapping

from llmsweep.program import plain

NAME = "spec"  # what messages call a file that nobody wrote


def text_of(spec: Mapping[str, Any]) -> str:
    """JSON, which is YAML, with one key or item a line: the line of a mistake says which."""
    return json.dumps({"name": "sweep", **spec}, default=plain, indent=0)


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """What stands on each line of a text, as in 'axes[2].serving.policy[0]'."""
    yield path
    if isinstance(value, dict):
        inside = [(f"{path}.{key}" if path else key, part) for key, part in value.items()]
    elif isinstance(value, list):
        inside = [(f"{path}[{number}]", part) for number, part in enumerate(value)]
    else:
        inside = []
    for name, part in inside:
        yield from _paths(part, name)
    if inside:
        yield path  # the bracket that closes it


def by_key(message: str, file: pathlib.Path, text: str) -> str:
    """A message about a file that nobody wrote, with keys for its lines."""
    name = str(file)
    message = re.sub("go on with: .*", "go on with the same call", message)
    try:
        paths = list(_paths(json.loads(text)))
    except ValueError:  # a file's text after all, whose lines one can look up
        return message.replace(name, NAME)

    def path_of(line: str) -> str:
        return paths[int(line) - 1] or NAME

    place = rf"{re.escape(name)}:(\d+):\d+"
    message = re.sub(rf"({place}:.*\n.*)already set on line (\d+)", lambda found: f"{found[1]}already set at {path_of(found[3])}", message)
    message = re.sub(place, lambda found: path_of(found[1]), message)
    return message.replace(name, NAME)


@contextlib.contextmanager
def written(text: str) -> Iterator[pathlib.Path]:
    """A file, for as long as it is needed. It lies in the working directory, where one may write there: paths in it, and a folder
    `specs`, are looked for beside it."""
    with contextlib.ExitStack() as open_files:
        name = {"mode": "w", "prefix": ".llmsweep-spec-", "suffix": ".yaml"}
        try:
            file = open_files.enter_context(tempfile.NamedTemporaryFile(dir=os.getcwd(), **name))
        except OSError:
            file = open_files.enter_context(tempfile.NamedTemporaryFile(**name))
        file.write(text)
        file.flush()
        yield pathlib.Path(file.name)
