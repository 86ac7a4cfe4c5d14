"""The reference pages of the site, made from what the program says of itself: verbs, fields, choices, columns, library.

Nothing here is typed by hand but the sentence that opens each page.
"""

import concurrent.futures
import functools
import pathlib
import re
import subprocess

MADE = "<!-- Made by tools/docs/build from the program; change the program's texts, not this page. -->\n\n"

# Folders of specs/ with a page each, and what one of their specs is.
LIBRARIES = {
    "devices": ("Devices", "An accelerator as a program sees it: peaks, memory, caches, powers, rent. Each line of a file names its source."),
    "clusters": ("Clusters", "How many devices a node has, and which link joins devices and nodes."),
    "links": ("Links", "One kind of connection as one device sees it."),
    "models": ("Models", "The shape of a model, from which operations, weights and KV cache follow."),
    "serving": ("Serving engines", "The defaults of an inference engine: policy, limits on batch and memory, whose kernels it runs."),
    "hosts": ("Hosts", "The time that the CPU side of an engine or of a training library adds to each step."),
    "training": ("Training libraries", "What a training library does unless told otherwise."),
    "loads": ("Loads", "Requests: how they arrive, and how long their prompts and answers are."),
    "sweeps": ("Sweeps", "Sweeps that are ready to run. Each opens with the question that it answers."),
    "suite": ("Scenarios", "Sweeps with what is expected of them; `llmsweep suite` holds their results to that."),
}
# Specs of these are read as they were written; they have no resolved form that says more.
AS_WRITTEN = {"sweeps", "suite"}

TABLES = {
    "points": "one row for each point",
    "kernels": "one row for each kernel of a point; `seconds` of all rows add up to the point's time",
    "requests": "one row for each request of a served point, where `output: {requests: true}` asks for them",
    "timeline": "one row for each moment and replica of a served point, where `output: {timeline: 1 s}` asks for them",
}


class Program:
    """The program whose texts these are."""

    def __init__(self, binary, source):
        self.binary, self.source = str(binary), pathlib.Path(source)

    @functools.cache
    def says(self, *words):
        done = subprocess.run([self.binary, *words], capture_output=True, text=True, cwd=self.source,
                              env={"PATH": "/usr/bin:/bin", "LLMSWEEP_SPECS": str(self.source / "specs")})
        if done.returncode:
            raise RuntimeError(f"llmsweep {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    @functools.cache
    def help(self, *verb):
        return self.says(*verb, "--help")

    def subcommands(self, *verb):
        found = re.search(r"^Subcommands:\n((?:  .*\n)+)", self.help(*verb), re.MULTILINE)
        return re.findall(r"^  (\S+)", found[1], re.MULTILINE) if found else []

    def options(self, *verb):
        options = re.search(r"^Options:\n((?:  .*\n)+)", self.help(*verb), re.MULTILINE)
        lines = re.findall(r"^  (-[^ ]*)", options[1], re.MULTILINE) if options else []
        return {option for line in lines for option in line.split(",")}

    def names(self, library):
        return self.says("list", library, "--names").split()


def cell(text):
    """Text as a cell of a table: no mark of ours is in it."""
    return re.sub(r"([|<>*_])", r"\\\1", text.strip())


def code(text):
    return f"`{text}`" if text.strip() else ""


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


# ---- fields and columns ----------------------------------------------------------------------


def rows_of(printed, last):
    """The rows of a table that 'describe' prints. Cells are as wide as their heads' columns; one that is longer is followed by a
    single space, and those behind it stand further right."""
    head, *lines = [line for line in printed.splitlines() if line.strip()]
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", head)]
    widths = [after - start for start, after in zip(starts, starts[1:])]
    rows = []
    for line in lines:
        cells, at = [], 0
        for width in widths[:last]:
            choice = re.match(r"\S*(?: \| \S+)*", line[at:])[0]
            width = max(width, len(choice) + 1)
            cells.append(line[at:at + width].strip())
            at += width
        rows.append([*cells, line[at:].strip()])
    return rows


def parts(program):
    """What 'describe' prints, as {title: table}."""
    return {title: body for title, body in re.findall(r"^((?:Fields|Columns) of [^\n]*)\n\n(.*?)(?=^(?:Fields|Columns) of |\Z)",
                                                      program.says("describe"), re.MULTILINE | re.DOTALL)}


def fields(program):
    """(path, values, default, meaning) of every field."""
    title = next(title for title in parts(program) if title.startswith("Fields of"))
    return [tuple(row) for row in rows_of(parts(program)[title], last=3)]


def columns(program, name):
    """(column, type, unit, role, meaning) of a table of results."""
    title = next(title for title in parts(program) if title.startswith(f"Columns of {name}/"))
    return [tuple(row) for row in rows_of(parts(program)[title], last=4)]


def sections(program):
    """Fields by what they belong to; those that stand alone come first."""
    found = {"A point": []}
    for row in fields(program):
        name = row[0].split(".")[0]
        found.setdefault(name if "." in row[0] else "A point", []).append(row)
    return found


def without_condition(meaning):
    """What a field means, without when it counts and which way it moves times."""
    return re.sub(r" \((?:counts only where|more is never) .*$", "", meaning)


def clauses(meaning):
    """What the meaning of a field says of each of its values: 'name: text' between semicolons."""
    return dict(re.findall(r"(?:^|; |\. )([\w.]+): ((?:[^;(]|\([^)]*\))*)", meaning))


def choices(program):
    """(values, meaning, default) of fields whose values are names, and the fields that are alike in these."""
    found = {}
    for path, values, default, meaning in fields(program):
        names = tuple(values.split(" | "))
        are_names = all(re.fullmatch(r"[a-z][a-z0-9_.-]+", name) and name not in ("integer", "number", "text") for name in names)
        if len(names) > 1 and are_names and set(names) != {"true", "false"}:
            found.setdefault((names, without_condition(meaning), default), []).append(path)
    return found


def fields_page(program):
    text = ("# Fields\n\n" + MADE + "For who writes a sweep. Every field may be stated under `base`, be an axis, and stand in an expression "
            "([the language](../sweep/index.md)). In the terminal: `llmsweep describe`, or `llmsweep describe ttft` for those with a word in "
            "their names. A role such as `prefill` has the fields of a deployment under its own name (`prefill.device.clock`).\n\n")
    for name, rows in sections(program).items():
        text += f"## {name}\n\n" + table(["field", "unit or values", "unless stated", "meaning"],
                                         [[code(path), cell(values), cell(default), cell(meaning)] for path, values, default, meaning in rows]) + "\n"
    return text


def choices_page(program):
    text = ("# Policies, routers and other choices\n\n" + MADE + "For who writes a sweep. Every field whose value is one of some names, and what "
            "the program says of them. When a field counts is on the page of all [fields](fields.md).\n\n")
    for (names, meaning, default), paths in choices(program).items():
        said = {name: what for name, what in clauses(meaning).items() if name in names}
        first = (meaning[:min([meaning.find(f"{name}: ") for name in said])] if said else meaning).rstrip("; .")
        text += f"## {', '.join(paths)}\n\n" + (f"{cell(first[0].upper() + first[1:])}. " if first else "")
        text += f"Unless stated: {code(default)}.\n\n" if default else "\n\n"
        text += table(["value", "meaning"], [[code(name), cell(said.get(name, ""))] for name in names]) if said else \
            ", ".join(code(name) for name in names) + "\n"
        text += "\n"
    return text


def columns_page(program):
    text = ("# Columns\n\n" + MADE + "For who reads a run. What lies where in its folder is in [The run folder](../results/index.md). Settings have "
            "columns, too, one for each [field](fields.md) under its path, in base units; they are left out here. In the terminal: "
            "`llmsweep describe`.\n\n")
    for name, what in TABLES.items():
        text += f"## {name}\n\n{what[0].upper()}{what[1:]}.\n\n" + table(
            ["column", "type", "unit", "meaning"],
            [[code(column), cell(kind), cell(unit), cell(meaning)] for column, kind, unit, role, meaning in columns(program, name)
             if name != "points" or role != "setting"]) + "\n"
    return text


def commands_page(program):
    text = ("# Commands\n\n" + MADE + "For who sits at a terminal. What `llmsweep --help` and the `--help` of each verb print.\n\n```text\n"
            + program.help() + "```\n\n")
    for verb in program.subcommands():
        text += f"## {verb}\n\n```text\n{program.help(verb)}```\n\n"
        for inner in program.subcommands(verb):
            text += f"### {verb} {inner}\n\n```text\n{program.help(verb, inner)}```\n\n"
    return text


# ---- the library --------------------------------------------------------------------------------


def library_page(program, library):
    title, what = LIBRARIES[library]
    text = (f"# {title}\n\n{MADE}For who looks for a name to put into a sweep. {what} In the terminal: `llmsweep list {library}`"
            + ("" if library in AS_WRITTEN else f", `llmsweep show {library}/NAME`") + ".\n\n")
    rows = []
    for line in program.says("list", library).splitlines():
        name, _, about = line.partition(" ")
        rows.append([f"[{name}]({library}/{name}.md)", cell(about)])
    return text + table(["name", "what it is"], rows)


def spec_page(program, library, name):
    text = f"# {name}\n\n{MADE}`specs/{library}/{name}.yaml`, one of the [{LIBRARIES[library][0].lower()}](../{library}.md), as it is written:\n\n"
    text += f"```yaml\n{(program.source / 'specs' / library / (name + '.yaml')).read_text()}```\n"
    if library not in AS_WRITTEN:
        shown = re.sub(r"^#.*\n", "", program.says("show", f"{library}/{name}"))
        text += f"\n## Every field\n\nWhat `llmsweep show {library}/{name}` prints:\n\n```yaml\n{shown}```\n"
    return text


def calibrations_page(program):
    rows = []
    for line in program.says("list", "calibrations").splitlines():
        name, tier, *use, _file = line.split()
        rows.append([name, tier, cell(" ".join(use))])
    return ("# Calibrations\n\n" + MADE + "For who asks what kernel times were fitted to. [Where each comes from](../specs/calibration/index.md). In the "
            "terminal: `llmsweep list calibrations`.\n\n" + table(["name", "tier", "how a sweep takes it"], rows))


def index_page(program):
    version = program.says("version").split("\n")[0]
    version = re.sub(r", commit.*?(?=,|\))", "", version)
    lines = "".join(f"- [{title}]({library}.md): {what}\n" for library, (title, what) in LIBRARIES.items())
    return ("# Reference\n\n" + MADE + f"For who knows what to look for. These pages are printed by the program they describe ({version}).\n\n"
            "- [Commands](commands.md): every verb and its options.\n"
            "- [Fields](fields.md): what a sweep may state or vary, with unit, default and meaning.\n"
            "- [Policies, routers and other choices](choices.md): fields whose values are names.\n"
            "- [Columns](columns.md): what the tables of a run hold.\n"
            "- [The language](../sweep/index.md) of sweeps, and [the run folder](../results/index.md): written by hand.\n\n"
            "The library of specs:\n\n" + lines + "- [Calibrations](calibrations.md): what kernel times were fitted to.\n")


def made_pages(program, specs=True):
    """{path on the site: text} of all pages; without `specs` only those that are not about a single spec."""
    made = {"reference/index.md": index_page(program), "reference/commands.md": commands_page(program),
            "reference/fields.md": fields_page(program), "reference/choices.md": choices_page(program),
            "reference/columns.md": columns_page(program), "reference/calibrations.md": calibrations_page(program)}
    for library in LIBRARIES:
        made[f"reference/{library}.md"] = library_page(program, library)
    if specs:
        wanted = [(library, name) for library in LIBRARIES for name in program.names(library)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for (library, name), text in zip(wanted, pool.map(lambda one: spec_page(program, *one), wanted)):
                made[f"reference/{library}/{name}.md"] = text
    return made
