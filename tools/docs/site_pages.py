"""Puts the site's pages together: the Markdown of the tree, the pages below tools/docs/pages, and what the program prints.

Usage: site_pages.py --binary LLMSWEEP OUT     writes OUT/pages and OUT/mkdocs.yml; tools/docs/build makes the site of them.
"""

import argparse
import os
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import printed_pages  # noqa: E402
import tree_pages  # noqa: E402

OWN = "tools/docs/pages/"

# Pages that are on the site under another name than in the tree; None: not there at all.
ELSEWHERE = {
    ".github/CONTRIBUTING.md": "contributing/index.md",
    ".github/CHANGELOG.md": "start/changelog.md",
    ".github/pull_request_template.md": None,
    "tools/docs/README.md": "contributing/site.md",
}

LANGUAGES = {".py": "python", ".yaml": "yaml", ".h": "cpp", ".cc": "cpp", ".sh": "bash", ".csv": "text", ".txt": "text", ".json": "json"}
LARGEST_SHOWN = 200_000  # bytes of a file that gets a page of its own


def site_path(page):
    """Where a page of the tree is on the site; None where it is not."""
    if page in ELSEWHERE:
        return ELSEWHERE[page]
    if page.startswith(OWN):
        page = page[len(OWN):]
    return re.sub(r"(^|/)README\.md$", r"\1index.md", page)


class Site:
    def __init__(self, source, out):
        self.source, self.out = source, out
        self.wanted = {}  # files that pages link to: {path in the tree: path on the site}

    def write(self, path, text):
        file = self.out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def place_of(self, path):
        """Where on the site a file or folder of the tree is shown."""
        full = self.source / path
        library = re.fullmatch(r"specs/(\w+)(?:/([\w.-]+)\.yaml)?/?", path)
        if library and library[1] in printed_pages.LIBRARIES:
            return f"reference/{library[1]}/{library[2]}.md" if library[2] else f"reference/{library[1]}.md"
        if full.is_dir():
            return self.place_of(f"{path}/README.md") if (full / "README.md").exists() else self.shown(path, f"files/{path}.md")
        if full.suffix == ".md":
            return site_path(path)
        if full.suffix == ".png":
            return self.shown(path, path)
        return self.shown(path, f"files/{path}.md" if full.stat().st_size < LARGEST_SHOWN else path)

    def shown(self, path, place):
        self.wanted[path] = place
        return place

    def add_page(self, path):
        place = site_path(path)
        if place is None:
            return
        folder = pathlib.PurePosixPath(path).parent

        def on_site(target):
            if tree_pages.is_outside(target) or target.startswith("#"):
                return target
            file, _, anchor = target.partition("#")
            aimed = self.place_of(os.path.normpath(folder / file))
            if aimed is None:
                raise SystemExit(f"{path}: {target} is not on the site")
            return os.path.relpath(aimed, pathlib.PurePosixPath(place).parent) + (f"#{anchor}" if anchor else "")

        text = tree_pages.with_links((self.source / path).read_text(), on_site)
        self.write(place, as_python_markdown(text))

    def add_files(self):
        """Files that pages link to, as pages or, if they are pictures or large, as they are."""
        for path, place in self.wanted.items():
            full = self.source / path
            if full.is_dir():
                names = sorted(name.name + ("/" if name.is_dir() else "") for name in full.iterdir() if name.name not in tree_pages.SKIPPED)
                self.write(place, hidden(f"# {path}\n\nFiles of this folder:\n\n" + "".join(f"- `{name}`\n" for name in names)))
            elif place.endswith(".md"):
                text = full.read_text()
                language = LANGUAGES.get(full.suffix) or ("bash" if text.startswith("#!") and "bash" in text.split("\n")[0] else "text")
                self.write(place, hidden(f"# {path}\n\n````{language}\n{text}````\n"))
            else:
                (self.out / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(full, self.out / place)


def hidden(text):
    """A page that the search of the site leaves out."""
    return "---\nsearch:\n  exclude: true\n---\n\n" + text


def as_python_markdown(text):
    """The same page for the site's reader of Markdown, which wants an empty line before a list, and four spaces where GitHub takes two."""
    _, prose = tree_pages.blocks_and_prose(text)
    lines, in_list, parted, made = text.splitlines(), False, False, []
    for line, said in zip(lines, prose):
        item = re.match(r"( *)([-*]|\d+\.) ", said)
        if item and not item[1]:
            # Also behind a paragraph or a table of the item before: it would go on with this one.
            if (not in_list or parted) and made and made[-1].strip():
                made.append("")
            in_list, parted = True, False
        elif line.strip() and not line.startswith(" "):
            if in_list and made[-1].strip() == "":
                in_list = False
            elif in_list and not said:
                in_list = False  # a block of code ends the list
        if in_list and line.startswith(" "):
            spaces = len(line) - len(line.lstrip(" "))
            line = " " * (4 * (spaces // 2) if spaces < 8 else spaces + 4) + line.lstrip(" ")
        parted = parted or not line.strip()
        made.append(line)
    return "\n".join(made) + "\n"


def put_together(source, program, out, specs=True):
    """All pages below `out`, which is made anew."""
    shutil.rmtree(out, ignore_errors=True)
    site = Site(source, out)
    for page in tree_pages.pages(source):
        site.add_page(page.relative_to(source).as_posix())
    site.add_files()
    for path, text in printed_pages.made_pages(program, specs=specs).items():
        site.write(path, text)
    shutil.copyfile(HERE / "site.css", out / "site.css")
    return site


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the program whose texts make the reference")
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    put_together(tree_pages.SOURCE, printed_pages.Program(arguments.binary, tree_pages.SOURCE), arguments.out / "pages")
    settings = (HERE / "mkdocs.yml").read_text()
    (arguments.out / "mkdocs.yml").write_text(settings)


if __name__ == "__main__":
    main()
