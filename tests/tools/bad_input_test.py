"""Runs that are none, are damaged or have nothing in common, figures that do not exist, expressions with a mistake: every verb that reads runs says
so, names the place, and changes nothing on disk."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base: {task: step, model: llama-3.1-8b, device: h100-sxm, step: {phase: decode}}
axes: [parallel.tp: [1, 2], step.batch: [1, 16]]
"""
# What a verb is asked of a folder; {} is the folder, OUT a file that must not appear.
VERBS = {
    "top": "{} --by step_time_s -o OUT.csv",
    "pareto": "{} --min step_time_s --max per_device_tokens_per_s -o OUT.csv",
    "sensitivity": "{} --of step_time_s -o OUT.csv",
    "report": "{} -o OUT.html",
    "compare": "RUN {} -o OUT.md",
    "sql": "{} SELECT -o OUT.csv",
    "trace": "{} --point 0 -o OUT.json",
    "summarise": "{}",
    "finish": "{}",
    "verify": "{}",
}


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


def contents(folder):
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.rglob("*")) if file.is_file()}


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-bad-")
        cls.home = pathlib.Path(cls.scratch.name)
        (cls.home / "sweep.yaml").write_text(SPEC)
        (cls.home / "apart.yaml").write_text(SPEC.replace("parallel.tp: [1, 2], step.batch: [1, 16]", "step.context: [100, 200]"))
        for name, spec in (("run", "sweep"), ("apart", "apart")):
            done = llmsweep("run", cls.home / f"{spec}.yaml", "-o", cls.home / name)
            assert done.returncode == 0, done.stderr
        (cls.home / "empty").mkdir()
        shutil.copytree(cls.home / "run", cls.home / "half")
        for part in (cls.home / "half" / "points").glob("*.parquet"):
            part.write_bytes(part.read_bytes()[:3000])
        # A manifest cut in its first line, a line whose figures were changed, a part that is gone, and no manifest at all.
        for name in ("cut", "changed", "gone", "unlisted", "flipped"):
            shutil.copytree(cls.home / "run", cls.home / name)
        manifest = "manifest-1of1.jsonl"
        (cls.home / "cut" / manifest).write_text((cls.home / "run" / manifest).read_text()[:60])
        (cls.home / "changed" / manifest).write_text((cls.home / "run" / manifest).read_text().replace('"rows":4', '"rows":5', 1))
        (cls.home / "gone" / "points" / "part-1of1-000000.parquet").unlink()
        (cls.home / "unlisted" / manifest).unlink()
        part = cls.home / "flipped" / "points" / "part-1of1-000000.parquet"
        content = bytearray(part.read_bytes())
        content[20:400] = bytes(380)
        part.write_bytes(content)
        shutil.copytree(cls.home / "run", cls.home / "newer")
        for manifest in (cls.home / "newer").glob("manifest-*.jsonl"):
            manifest.write_text(manifest.read_text().replace('"llmsweep_manifest":', '"llmsweep_manifest":9', 1))

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def ask(self, verb, folder, words=None):
        line = (words or VERBS[verb]).split()
        places = {"{}": folder, "RUN": self.home / "run", "SELECT": "select count(*) from points"}
        return llmsweep(verb, *(places.get(word, str(self.home / word) if word.startswith("OUT") else word) for word in line))

    def refuses(self, verb, folder, *says, words=None, code=None):
        before = contents(self.home)
        done = self.ask(verb, folder, words)
        self.assertIn(done.returncode, (1, 2) if code is None else (code,), (verb, folder, done.stdout, done.stderr))
        for text in says:
            self.assertIn(text, done.stderr, (verb, folder))
        self.assertNotIn("Traceback", done.stderr)
        self.assertLess(len(done.stderr), 3000)
        self.assertEqual(contents(self.home), before, verb)

    def test_what_is_no_run_folder(self):
        for verb in VERBS:
            self.refuses(verb, self.home / "nowhere", "nowhere", "hint: ")
            self.refuses(verb, self.home / "empty", "empty", "hint: ")

    def test_a_file_in_the_place_of_a_folder(self):
        for verb in ("top", "pareto", "sensitivity", "report", "compare", "sql", "summarise", "finish", "verify"):
            self.refuses(verb, self.home / "sweep.yaml", "sweep.yaml: error: this is not a folder\n  hint: name the run folder, not a file in it\n", code=2)
        for words in (["status", self.home / "sweep.yaml"], ["verify", self.home / "sweep.yaml", "--repair"],
                      ["run", self.home / "sweep.yaml", "-o", self.home / "new", "--reuse", self.home / "sweep.yaml"]):
            done = llmsweep(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("this is not a folder", done.stderr)
            self.assertNotIn("go on with", done.stderr)
        shutil.rmtree(self.home / "new")

    def test_a_run_without_a_point_is_called_done_and_not_broken(self):
        spec, run = self.home / "none.yaml", self.home / "none"
        spec.write_text(SPEC + "require: ['step.batch > 100']\n")
        self.assertEqual(llmsweep("run", spec, "-o", run, "--shard", "1/2").returncode, 0)
        for verb in ("top", "pareto", "sensitivity", "report", "compare", "sql", "summarise"):
            self.refuses(verb, run, "the run has no points yet: 2 of 4 positions are done", code=2)
        self.assertEqual(llmsweep("run", spec, "-o", run).returncode, 4)
        for verb in ("top", "pareto", "sensitivity", "report", "compare", "sql", "summarise"):
            self.refuses(verb, run, "the run is done and has no points: 'require' or 'when' rule out every position", code=2)
        for verb in ("finish", "verify"):
            self.assertEqual(self.ask(verb, run).returncode, 0)
        shutil.rmtree(run)
        spec.unlink()

    def test_a_run_named_twice_does_not_count_twice(self):
        (self.home / "link").symlink_to(self.home / "run")
        self.addCleanup((self.home / "link").unlink)
        for again in (self.home / "run", f"{self.home}/run/", f"{self.home}/half/../run", self.home / "link"):
            for words in (["top", "--by", "step_time_s"], ["sensitivity", "--of", "step_time_s"], ["report", "-o", self.home / "OUT.html"]):
                done = llmsweep(words[0], self.home / "run", again, *words[1:])
                self.assertEqual((done.returncode, done.stdout), (2, ""), again)
                self.assertIn(f"{again}: error: this run is named twice", done.stderr)
        self.assertFalse((self.home / "OUT.html").exists())

    def test_a_folder_whose_name_cannot_be_is_not_tried_again(self):
        (self.home / "astray").symlink_to(self.home / "nowhere")
        self.addCleanup((self.home / "astray").unlink)
        for folder in (self.home / ("x" * 300), self.home / "astray"):
            done = llmsweep("run", self.home / "sweep.yaml", "-o", folder)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cannot make the folder", done.stderr)
            self.assertIn("hint: ", done.stderr)
            self.assertNotIn("go on with", done.stderr)

    def test_a_part_that_is_half_written(self):
        for verb in VERBS:
            self.refuses(verb, self.home / "half", "part-1of1-000000.parquet")

    def test_a_manifest_of_a_newer_program(self):
        for verb in VERBS:
            self.refuses(verb, self.home / "newer", "manifest-1of1.jsonl")

    def test_a_manifest_that_is_damaged_or_missing(self):
        for name in ("cut", "changed", "unlisted"):
            for verb in VERBS:
                self.refuses(verb, self.home / name, "manifest-1of1.jsonl")

    def test_a_run_that_would_fail_again_is_not_advised(self):
        for name in ("cut", "changed", "unlisted", "newer"):
            done = llmsweep("run", self.home / "sweep.yaml", "-o", self.home / name)
            self.assertEqual(done.returncode, 1, (name, done.stdout, done.stderr))
            self.assertIn("manifest-1of1.jsonl", done.stderr)
            self.assertIn("hint: ", done.stderr)
            self.assertNotIn("go on with", done.stderr)

    def test_a_part_that_is_gone(self):
        for verb in VERBS:
            self.refuses(verb, self.home / "gone")

    def test_questions_to_damaged_runs_are_mistakes_of_whoever_asks(self):
        for verb in ("top", "pareto", "sensitivity", "report", "compare"):
            for name in ("half", "newer", "cut", "changed", "gone", "unlisted", "flipped"):
                self.assertEqual(self.ask(verb, self.home / name).returncode, 2, (verb, name))

    def test_a_run_that_is_being_written_has_the_rows_of_its_finished_parts(self):
        going = self.home / "going"
        done = llmsweep("run", self.home / "sweep.yaml", "-o", going, "--shard", "1/2")
        self.assertEqual(done.returncode, 0, done.stderr)
        # A part that no manifest names yet, as it lies there until its line is written.
        shutil.copy(next((self.home / "apart" / "points").glob("*.parquet")), going / "points" / "part-1of2-000001.parquet")
        self.addCleanup(shutil.rmtree, going)
        asked = self.ask("top", going, "{} --by step_time_s --format csv")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertIn("is not finished: 2 of 4 positions are done", asked.stderr)
        self.assertEqual(len(asked.stdout.splitlines()), 3)

    def test_a_pipe_or_device_is_not_replaced_by_a_file(self):
        pipe = self.home / "pipe.csv"
        os.mkfifo(pipe)
        self.addCleanup(pipe.unlink)
        done = llmsweep("top", self.home / "run", "--by", "step_time_s", "-o", pipe)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("it is a device or a pipe", done.stderr)
        self.assertTrue(pipe.is_fifo())

    def test_a_page_or_a_trace_is_not_written_under_the_name_of_a_table(self):
        for verb, kind in (("report", "a page"), ("trace", "a trace")):
            for ending in (".csv", ".csv.gz", ".parquet"):
                file = self.home / f"{verb}{ending}"
                done = llmsweep(verb, self.home / "run", "-o", file)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"is the name of a table, and this is {kind}", done.stderr)
                self.assertFalse(file.exists())

    def test_runs_with_nothing_in_common(self):
        self.refuses("compare", self.home / "apart", "no point has the axis labels of one in", "hint: compare two runs of one sweep")

    def test_figures_that_do_not_exist(self):
        for verb, words in (("top", "{} --by step_tim_s"), ("pareto", "{} --min step_tim_s --max per_device_tokens_per_s"), ("sensitivity", "{} --of step_tim_s"),
                            ("compare", "RUN {} --tolerance step_tim_s=1%")):
            self.refuses(verb, self.home / "run", "did you mean 'step_time_s'?", words=words)

    def test_expressions_with_a_mistake(self):
        for verb, rest in (("top", "--by step_time_s"), ("pareto", "--min step_time_s --max per_device_tokens_per_s"), ("sensitivity", "--of step_time_s"), ("report", "-o OUT.html")):
            for expression, words in (("step.batch>", ""), ("step.bach==1", "did you mean"), ("(step.batch==1", "")):
                self.refuses(verb, self.home / "run", "error: ", words, words=f"{{}} {rest} --where {expression}")


if __name__ == "__main__":
    unittest.main()
