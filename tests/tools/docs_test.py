"""What the documentation says can be done can be done: its links lead somewhere, its commands exist, its sweeps are read, what it shows
as printed is printed, and the pages of its reference can be made."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
DOCS = SOURCE / "tools" / "docs"
sys.path.insert(0, str(DOCS))

import printed_pages  # noqa: E402
import site_pages  # noqa: E402
import tables  # noqa: E402
import tree_pages  # noqa: E402

PROGRAM = printed_pages.Program(BINARY, SOURCE)
PAGES = {page.relative_to(SOURCE).as_posix(): page.read_text() for page in tree_pages.pages(SOURCE)}

# Entries stay as they were written: commands and names in it are those of their version.
OF_OLDER_VERSIONS = "engine/MODEL_CHANGES_ARCHIVE.md"


def llmsweep(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, cwd=SOURCE, **options)


def block_after(page, words):
    """The first block of code of a page behind the line that holds these words."""
    line = next(number for number, line in enumerate(PAGES[page].splitlines(), 1) if words in line)
    blocks, _ = tree_pages.blocks_and_prose(PAGES[page])
    return next(block.text for block in blocks if block.line + block.text.count("\n") > line)


class Links(unittest.TestCase):
    def test_every_link_within_the_tree_leads_somewhere(self):
        count = 0
        for page, text in PAGES.items():
            for link in tree_pages.links(text):
                if tree_pages.is_outside(link.target):
                    continue
                count += 1
                path, _, anchor = link.target.partition("#")
                aimed = pathlib.PurePosixPath(os.path.normpath(pathlib.PurePosixPath(page).parent / path)) if path else pathlib.PurePosixPath(page)
                where = f"{page}:{link.line}: {link.target}"
                self.assertTrue((SOURCE / aimed).exists(), where)
                if anchor:
                    self.assertIn(anchor, tree_pages.anchors(PAGES[aimed.as_posix()]), where)
        self.assertGreater(count, 250)

    def test_no_page_names_a_place_of_one_machine(self):
        for page, text in PAGES.items():
            self.assertNotRegex(text, r"(?<![\w.~])/(work|home|root|tmp/wt)/", page)


class Readers(unittest.TestCase):
    def test_every_page_says_at_once_whom_it_is_for(self):
        for page, text in PAGES.items():
            if page.endswith("pull_request_template.md"):
                continue
            _, prose = tree_pages.blocks_and_prose(text)
            title, *rest = [line for line in prose if line.strip()]
            self.assertTrue(title.startswith("# "), page)
            self.assertRegex(rest[0], r"^For ", f"{page}: the first line under the title says whom the page is for")

    def test_the_readme_is_short(self):
        self.assertLess(len(PAGES["README.md"].split()), 1500)

    def test_every_page_is_on_the_site(self):
        named = set(re.findall(r"[:-] ([\w./-]+\.md)$", (DOCS / "mkdocs.yml").read_text(), re.MULTILINE))
        there = {place for page in PAGES if (place := site_pages.site_path(page))}
        made = set(printed_pages.made_pages(PROGRAM, specs=False))
        self.assertEqual(sorted(named - there - made), [], "named in tools/docs/mkdocs.yml, and not there")
        self.assertEqual(sorted((there | made) - named), [], "not named in tools/docs/mkdocs.yml")


class Commands(unittest.TestCase):
    def test_every_command_names_a_verb_and_options_that_there_are(self):
        verbs = set(PROGRAM.subcommands())
        count = 0
        for page, text in PAGES.items():
            if page == OF_OLDER_VERSIONS:
                continue
            for command in tree_pages.commands(text):
                where = f"{page}:{command.line}: llmsweep {' '.join(command.words)}"
                if not command.words or command.words[0] in ("...", "VERB"):
                    continue
                count += 1
                verb = [command.words[0]]
                if verb == ["--help"] or verb == ["--version"]:
                    continue
                self.assertIn(verb[0], verbs, where)
                inner = PROGRAM.subcommands(*verb)
                if inner and len(command.words) > 1 and re.fullmatch(r"[a-z-]+", command.words[1]):
                    self.assertIn(command.words[1], inner, where)
                    verb.append(command.words[1])
                known = PROGRAM.options(*verb)
                for word in command.words[len(verb):]:
                    option = re.match(r"(--[a-z][\w-]*|-[a-zA-Z])(?=$|=|\d)", word)
                    if option:
                        self.assertIn(option[1], known, where)
        self.assertGreater(count, 100)

    def test_every_spec_that_a_command_names_is_there(self):
        for page, text in PAGES.items():
            if page == OF_OLDER_VERSIONS:
                continue
            for command in tree_pages.commands(text):
                for word in command.words:
                    if re.fullmatch(r"specs/(sweeps|suite|devices|models)/[\w.-]+\.yaml", word):
                        self.assertTrue((SOURCE / word).exists(), f"{page}:{command.line}: {word}")

    def test_sweeps_of_the_guides_are_read(self):
        """Those of README.md and sweep/README.md are read by tests/sweep/language/readme_test.cc."""
        count = 0
        for page, text in PAGES.items():
            if not page.startswith(site_pages.OWN):
                continue
            for block in tree_pages.blocks_and_prose(text)[0]:
                if block.kind != "yaml" or not block.text.startswith("base:"):
                    continue
                count += 1
                # Read and counted like any other; a requirement that no point meets spares the simulations.
                with tempfile.TemporaryDirectory(prefix="llmsweep-docs-") as home:
                    spec = pathlib.Path(home) / "page.yaml"
                    spec.write_text(block.text + 'require: ["load.rate < 0 req/s"]\n')
                    done = llmsweep("check", spec)
                    self.assertEqual(done.returncode, 4, f"{page}:{block.line}\n{done.stdout}{done.stderr}")
                    self.assertIn(", 0 points\n", done.stdout)
        self.assertGreaterEqual(count, 3)


class WhatIsPrinted(unittest.TestCase):
    """Blocks that show what the program prints; times on the clock are left out."""

    def test_the_first_sweep(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-docs-") as home:
            done = llmsweep("run", "specs/sweeps/first_sweep.yaml", "-o", f"{home}/runs/first_sweep")
            self.assertEqual(done.returncode, 0, done.stderr)
            shown = block_after("README.md", "parallelism, nine batch sizes").splitlines()[1:]
            without_times = lambda lines: [re.sub(r" in [^(]*\(.*\)$", "", line.replace(home + "/", "")).rstrip() for line in lines]
            self.assertEqual(without_times(shown), without_times(done.stdout.splitlines()))

            import pandas as pd

            points = pd.read_parquet(f"{home}/runs/first_sweep/points")
            code = block_after("README.md", "The cheapest design at each batch size")
            code = "\n".join(line for line in code.splitlines() if not line.startswith(("import", "points =", "print")))
            names = {"points": points}
            exec(code, names)  # the lines that the README shows
            best = names["best"][["step.batch", "device", "parallel.tp", "step_time_s", "price_usd_per_mtok", "max_batch"]]
            lines = {" ".join(line.split()[1:]) for line in best.to_string().splitlines()[1:]}
            blocks, _ = tree_pages.blocks_and_prose(PAGES["README.md"])
            table = next(block.text for block in blocks if block.text.startswith(" step.batch")).splitlines()[1:]
            self.assertEqual(len(table), 5)
            for line in table:
                self.assertIn(" ".join(line.split()), lines)

    def test_the_capacities(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-docs-") as home:
            self.assertEqual(llmsweep("run", "specs/sweeps/capacity.yaml", "-o", f"{home}/capacity", "--quiet").returncode, 0)
            import pandas as pd

            points = pd.read_parquet(f"{home}/capacity/points")
            blocks, _ = tree_pages.blocks_and_prose(PAGES["tools/docs/pages/guides/serving.md"])
            head, *lines = next(block.text for block in blocks if "capacity_req_per_s" in block.text and block.text.startswith(" ")).splitlines()
            printed = {" ".join(line.split()) for line in points[head.split()].to_string(index=False).splitlines()}
            self.assertEqual(len(lines), 4)
            for line in lines:
                self.assertIn(" ".join(line.split()), printed)

    def test_the_fastest_strategies(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-docs-") as home:
            self.assertEqual(llmsweep("run", "specs/sweeps/train_70b.yaml", "-o", f"{home}/train_70b", "--quiet").returncode, 0)
            done = llmsweep("top", f"{home}/train_70b", "--by", "tokens_per_s_per_device", "--group-by", "parallel.tp")
            blocks, _ = tree_pages.blocks_and_prose(PAGES["tools/docs/pages/guides/training.md"])
            shown = next(block.text for block in blocks if "1,638 points" in block.text)
            count, *table = shown.splitlines()
            self.assertIn(count, done.stderr.splitlines())
            self.assertEqual([line.rstrip() for line in table], [line.rstrip() for line in done.stdout.splitlines()])


class Reference(unittest.TestCase):
    def test_its_pages_have_all_that_the_program_says(self):
        made = printed_pages.made_pages(PROGRAM, specs=False)
        for path, text in made.items():
            self.assertTrue(text.startswith("# "), path)
            self.assertGreater(len(text.splitlines()), 8, path)
            self.assertNotIn(str(SOURCE), text, path)
        described = re.findall(r"^([a-z][\w.]*) ", PROGRAM.says("describe").split("Columns of points")[0], re.MULTILINE)
        described = [path for path in described if path != "field"]
        self.assertGreater(len(described), 400)
        for path in described:
            self.assertIn(f"| `{path}` |", made["reference/fields.md"])
        for verb in PROGRAM.subcommands():
            self.assertIn(f"\n## {verb}\n", made["reference/commands.md"])
        for library in printed_pages.LIBRARIES:
            self.assertEqual(made[f"reference/{library}.md"].count("]("), len(PROGRAM.names(library)), library)
        self.assertIn("| `least_outstanding` | the one with fewest requests inside |", made["reference/choices.md"])
        self.assertIn("| `step_time_s` |", made["reference/columns.md"])
        self.assertNotIn("| `device.clock` |", made["reference/columns.md"])

    def test_cells_are_told_apart_where_they_are_longer_than_their_columns(self):
        rows = {row[0]: row[1:] for row in printed_pages.fields(PROGRAM)}
        self.assertEqual(rows["task"], ("step | request | serve | train | denoise | classify", "step", "what is evaluated"))
        self.assertEqual(rows["device.array.dataflow"][:2], ("weight_stationary | output_stationary", "weight_stationary"))
        self.assertEqual(rows["device.clock"][:2], ("Hz", "1 GHz"))
        self.assertEqual(rows["speculation.method"][:2], ("none | draft_model | ngram | heads | mtp | self", "none"))
        for path, (values, default, meaning) in rows.items():
            self.assertNotIn("|", default, path)
            self.assertNotRegex(meaning, r"  ", path)

    def test_a_spec_has_a_page(self):
        page = printed_pages.spec_page(PROGRAM, "devices", "h100-sxm")
        self.assertIn("memory_bandwidth: 3.35 TB/s", page)
        self.assertNotIn(str(SOURCE), page)

    def test_links_of_the_site_lead_somewhere(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-docs-") as home:
            out = pathlib.Path(home) / "pages"
            site_pages.put_together(SOURCE, PROGRAM, out, specs=False)
            specs = {f"reference/{library}/{name}.md" for library in printed_pages.LIBRARIES for name in PROGRAM.names(library)}
            texts = {file.relative_to(out).as_posix(): file.read_text() for file in out.rglob("*.md")}
            for page, text in texts.items():
                for link in tree_pages.links(text):
                    if tree_pages.is_outside(link.target):
                        continue
                    path, _, anchor = link.target.partition("#")
                    aimed = os.path.normpath(pathlib.PurePosixPath(page).parent / path) if path else page
                    self.assertTrue((out / aimed).exists() or aimed in specs, f"{page}: {link.target}")
                    if anchor and aimed in texts:
                        self.assertIn(anchor, tree_pages.anchors(texts[aimed]), f"{page}: {link.target}")


class TheReaderOfPages(unittest.TestCase):
    """What the checks above rest on."""

    def test_blocks_headings_and_links(self):
        text = "# A `b` & c\n\nSee [x](y.md#z) and `[no](link.md)`.\n\n    llmsweep run S\n\n```yaml wrong\n# not a heading [a](b)\n```\n\n## A b\n\n## A b\n"
        blocks, _ = tree_pages.blocks_and_prose(text)
        self.assertEqual([(block.line, block.kind) for block in blocks], [(5, "indented"), (8, "yaml wrong")])
        self.assertEqual([link.target for link in tree_pages.links(text)], ["y.md#z"])
        self.assertEqual(tree_pages.anchors(text), {"a-b--c", "a-b", "a-b-1"})

    def test_commands(self):
        text = ("Say `llmsweep explain SPEC --point 17 [--against 21]`.\n\n    $ tools/run a.yaml -j2   # a comment\n"
                "    llmsweep top DIR --by X | head\n    ls\n")
        self.assertEqual([command.words for command in tree_pages.commands(text)],
                         [["run", "a.yaml", "-j2"], ["top", "DIR", "--by", "X"], ["explain", "SPEC", "--point", "17", "--against", "21"]])

    def test_links_are_changed_and_code_is_not(self):
        self.assertEqual(tree_pages.with_links("[`a`](b.md) `[c](d.md)`\n\n    [e](f.md)\n", str.upper),
                         "[`a`](B.MD) `[c](d.md)`\n\n    [e](f.md)\n")

    def test_tables_know_how_they_are_made(self):
        found = list(tables.tables_of(SOURCE / "engine" / "serving" / "FLEET.md", SOURCE))
        self.assertGreaterEqual(len(found), 8)
        self.assertEqual(found[0].sweep, "disaggregation")
        self.assertEqual(found[0].command[:4], ["top", "out", "--by", "capacity_req_per_s"])
        for shown in found:
            self.assertEqual(shown.command[0], "top", f"{shown.line}: {shown.sweep}")
        shown = tables.Shown(1, "index  a  b\n    2  x  1\n", "s", ["top"])
        self.assertEqual(tables.rows_now(shown, "index  a  b\n    1  y  1\n    2  x  9\n"), ["index  a  b", "    2  x  9"])
        self.assertIsNone(tables.rows_now(shown, "index  a\n    2  x\n"))

    def test_lists_for_the_site(self):
        self.assertEqual(site_pages.as_python_markdown("Text:\n- one\n  more\n  - two\n\nEnd\n"), "Text:\n\n- one\n    more\n    - two\n\nEnd\n")
        self.assertEqual(site_pages.as_python_markdown("- one\n\n  | a |\n\n  more\n- two\n- three\n"),
                         "- one\n\n    | a |\n\n    more\n\n- two\n- three\n")


if __name__ == "__main__":
    unittest.main()
