"""What the Markdown of this tree says: its pages, headings, links, blocks of code and commands.

Both the site and the test of the pages read it through this file.
"""

import dataclasses
import os
import pathlib
import re
import shlex

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# Made by tools, or not ours.
SKIPPED = {".git", ".deps", "build", "runs", "__pycache__", "node_modules"}


def pages(source=SOURCE):
    """Every Markdown file of the tree, in a fixed order."""
    found = []
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        found += [pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md")]
    return found


@dataclasses.dataclass
class Block:
    line: int  # of its first line of text, from 1
    kind: str  # what follows the three ticks; "indented" for one of four spaces
    text: str


@dataclasses.dataclass
class Link:
    line: int
    target: str


def blocks_and_prose(text):
    """The blocks of code of a page, and its lines with those blocks left blank, so that line numbers stay."""
    blocks, prose = [], []
    fence, lines = None, text.splitlines()
    previous_blank, in_list = True, False
    for number, line in enumerate(lines, 1):
        if fence is not None:
            if line.strip() == fence[0]:
                fence = None
            else:
                blocks[-1].text += line[fence[1]:] + "\n"
            prose.append("")
            continue
        opening = re.match(r"^( *)(`{3,}|~{3,})(.*)$", line)
        if opening:
            fence = (opening[2], len(opening[1]))
            blocks.append(Block(number + 1, opening[3].strip(), ""))
            prose.append("")
            continue
        indented = line.startswith("    ") and line.strip()
        going_on = indented and blocks and blocks[-1].kind == "indented" and blocks[-1].line + blocks[-1].text.count("\n") == number
        if indented and not in_list and (previous_blank or going_on):
            if going_on:
                blocks[-1].text += line[4:] + "\n"
            else:
                blocks.append(Block(number, "indented", line[4:] + "\n"))
            prose.append("")
        else:
            prose.append(line)
            if line.strip() and not line.startswith(" "):
                in_list = bool(re.match(r"([-*]|\d+\.) ", line))
        previous_blank = not line.strip()
    return blocks, prose


def headings(text):
    """(level, text) of every heading, in order."""
    _, prose = blocks_and_prose(text)
    return [(len(found[1]), found[2].strip()) for line in prose if (found := re.match(r"^(#{1,6}) +(.*?)#*$", line))]


def plain(heading):
    """The words of a heading without links and marks."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]", "", heading)


def anchors(text):
    """The names by which links may reach a heading, as GitHub and the site make them."""
    found, seen = set(), {}
    for _, heading in headings(text):
        slug = re.sub(r"[^\w\- ]", "", plain(heading).lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def links(text):
    """Every link and picture outside code."""
    _, prose = blocks_and_prose(text)
    found = []
    for number, line in enumerate(prose, 1):
        line = re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), line)
        found += [Link(number, link[2]) for link in LINK.finditer(line)]
    return found


LINK = re.compile(r"(\]\()([^()\s]*(?:\([^()]*\))?[^()\s]*)((?: \"[^\"]*\")?\))")


def with_links(text, change):
    """The page with change(target) for the target of each link outside code."""
    _, prose = blocks_and_prose(text)
    lines = text.splitlines()
    for number, line in enumerate(prose):
        if not line:
            continue
        pieces = re.split(r"(`[^`]*`)", line)
        # A link whose text is code is cut in two by that code: its target follows in the next piece.
        pieces[::2] = [LINK.sub(lambda link: link[1] + change(link[2]) + link[3], piece) for piece in pieces[::2]]
        lines[number] = "".join(pieces)
    return "\n".join(lines) + "\n"


def is_outside(target):
    return bool(re.match(r"[a-z]+:", target))


@dataclasses.dataclass
class Command:
    line: int
    words: list  # from the verb on


PROGRAMS = {"llmsweep": [], "build/release/llmsweep": [], "tools/run": ["run"]}


def command_words(line):
    """The words after the program's name, with 'run' for tools/run; None where the line calls something else."""
    line = re.sub(r"^\s*(\$|>) ", "", line.strip())
    line = re.sub(r"(^|\s)#.*$", "", line)
    line = re.sub(r"\[(-[^\]]*)\]", r"\1", line)  # [--option VALUE] may be left out
    line = re.sub(r"^((?:[A-Z_]+=\S* +)*(?:nice +)?)", "", line)
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    if not words or words[0] not in PROGRAMS:
        return None
    end = next((i for i, word in enumerate(words) if word in ("|", ">", "<", ";", "&&", "&", "||") or word.endswith(";")), len(words))
    return PROGRAMS[words[0]] + words[1:end] + ([words[end][:-1]] if end < len(words) and len(words[end]) > 1 and words[end].endswith(";") else [])


def commands(text):
    """Every call of the program in blocks of code, and in code within a line."""
    blocks, prose = blocks_and_prose(text)
    lines = []
    for block in blocks:
        if block.kind not in ("", "indented", "bash", "sh", "text", "console"):
            continue
        joined = block.text.replace("\\\n", " ")
        lines += [(block.line + offset, line) for offset, line in enumerate(joined.splitlines())]
    for number, line in enumerate(prose, 1):
        lines += [(number, code) for code in re.findall(r"`([^`]+)`", line)]
    found = []
    for number, line in lines:
        words = command_words(line)
        if words is not None:
            found.append(Command(number, words))
    return found
