"""What a user sees at the command line: verbs, exit codes, messages, and nothing half-done."""
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
FIRST = SOURCE / "specs" / "sweeps" / "first_sweep.yaml"


def llmsweep(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, **options)


class CommandLine(unittest.TestCase):
    NOT_ONE = "base: {device: l4, model: llama-3.1-70b}\naxes:\n  - step.batch: [1, 2, 4]\n  - parallel.tp: [1, 3]\n"

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-cli-")
        self.home = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def spec(self, text):
        file = self.home / "sweep.yaml"
        file.write_text(text)
        return file

    def test_help_names_every_verb_and_exit_code(self):
        text = llmsweep("--help").stdout
        for word in ("run", "check", "explain", "list", "show", "describe", "kernels", "validate", "calibrate", "completion", "version", "Exit codes"):
            self.assertIn(word, text)

    def test_a_quiet_run_says_what_one_has_to_know_and_nothing_else(self):
        well = llmsweep("run", "--quiet", self.spec("base: {device: h100-sxm, model: llama-3.1-8b}\n"), "-o", self.home / "well")
        self.assertEqual((well.returncode, well.stdout, well.stderr), (0, "", ""))
        self.assertEqual(len(pd.read_parquet(self.home / "well" / "points")), 1)
        badly = llmsweep("run", "-q", self.spec(self.NOT_ONE), "-o", self.home / "badly")
        self.assertEqual((badly.returncode, badly.stdout), (4, ""))
        self.assertIn("warning: not one of 6 points works", badly.stderr)
        self.assertEqual(llmsweep("run", "-q", self.spec("base: {modell: x}\n"), "-o", self.home / "wrong").returncode, 2)

    def test_a_verb_whose_program_is_not_built_says_how_to_build_it(self):
        alone = self.home / "build"
        alone.mkdir()
        shutil.copy(BINARY, alone / "llmsweep")
        for verb in ("kernels", "validate", "calibrate"):
            for cache, hint in ((False, "in a checkout: cmake --build build/release --target llmsweep-calibrate"),
                                (True, f"cmake --build {alone} --target llmsweep-calibrate")):
                (alone / "CMakeCache.txt").unlink(missing_ok=True)
                if cache:
                    (alone / "CMakeCache.txt").write_text("")
                done = subprocess.run([alone / "llmsweep", verb, "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stderr, f"error: '{verb}' needs llmsweep-calibrate, which is not in {alone}\n  hint: build it: {hint}\n")

    def test_no_verb_and_unknown_options_are_mistakes(self):
        alone = llmsweep()
        self.assertEqual(alone.returncode, 2)
        self.assertIn("llmsweep run specs/sweeps/first_sweep.yaml", alone.stderr)
        self.assertEqual(llmsweep("run", FIRST, "--treads", "2").returncode, 2)

    def test_a_mistyped_verb_or_option_gets_a_suggestion(self):
        for arguments, hint in (
            (["runn"], "did you mean 'run'?"),
            (["chek", FIRST], "did you mean 'check'?"),
            (["help"], "llmsweep --help"),
            (["sweep.yaml"], "llmsweep run sweep.yaml"),
            (["run", FIRST, "--treads", "2"], "did you mean '--threads'?"),
            (["run", FIRST, "--shards=1/2"], "did you mean '--shard'?"),
        ):
            result = llmsweep(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(hint, result.stderr)

    NOT_ONE = "base: {device: l4, model: llama-3.1-70b}\naxes:\n  - step.batch: [1, 2, 4]\n  - parallel.tp: [1, 3]\n"

    def test_points_that_do_not_work_are_counted_by_class_of_reason(self):
        spec = self.spec(self.NOT_ONE.replace("l4", "h100-sxm").replace("[1, 3]", "[1, 3, 8]"))
        checked = llmsweep("check", spec)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("of 9 points: 3 ok, 6 infeasible\n", checked.stdout)
        self.assertRegex(checked.stdout, r"\n  memory +3  point 0: the model does not fit")
        self.assertRegex(checked.stdout, r"\n  divisibility +3  point 1: ")
        run = llmsweep("run", spec, "-o", self.home / "out")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"\n  ok +3\n  infeasible +6\n  reasons +6  memory 3, divisibility 3\n")

    def test_not_one_point_that_works_is_no_success(self):
        spec = self.spec(self.NOT_ONE)
        said = "warning: not one of 6 points works (memory 3, divisibility 3); point 0, for one: the model does not fit"
        for arguments in (
            ["check", spec],
            ["run", spec, "-o", self.home / "out"],
            ["run", spec, "-o", self.home / "out"],  # nothing left to do, and still no success
        ):
            result = llmsweep(*arguments)
            self.assertEqual(result.returncode, 4, arguments)
            self.assertIn(said, result.stderr)
        none = llmsweep("run", self.spec(self.NOT_ONE + 'require: ["step.batch > 4"]\n'), "-o", self.home / "none")
        self.assertEqual(none.returncode, 4)
        self.assertIn("there is no point", none.stderr)

    def test_a_shard_that_does_not_work_fails_only_the_whole(self):
        for second, code in (("b200-sxm", 0), ("a10", 4)):
            # Shards take blocks of 64 positions in turn: one device each.
            spec = self.spec(f"base: {{model: llama-3.1-70b}}\naxes:\n  - device: [l4, {second}]\n"
                             "  - step.batch: {linear: [1, 64], count: 64}\n")
            codes = [llmsweep("run", spec, "-o", self.home / second, "--shard", f"{k}/2").returncode for k in (1, 2)]
            self.assertEqual(codes, [0, code])

    def test_the_command_to_go_on_is_the_one_given(self):
        folder = self.home / "it's a run"
        spec = self.spec(
            "base: {device: h100-sxm, model: llama-3.1-8b, calibration.tier: roofline}\naxes:\n"
            "  - step.batch: {linear: [1, 5000], count: 5000}\n  - step.context: {linear: [1, 2000], count: 2000}\n"
        ).rename(self.home / "one two.yaml")
        options = ["-j", "1", "--shard", "1/2", "--limit", "10000000"]
        command = [BINARY, "run", str(spec), "-o", str(folder), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            process.stdout.readline()  # the run begins: from here on it stops in good order
            process.send_signal(signal.SIGINT)
            said = process.stdout.read()
        self.assertEqual(process.returncode, 3, said)
        again = shlex.split(said.split("Go on with: ")[1])
        self.assertEqual(again[:3], [BINARY, "run", str(spec)])
        given = dict(zip(again[3::2], again[4::2]))
        self.assertEqual(given, {"--output": str(folder), "--threads": "1", "--shard": "1/2", "--limit": "10000000"})

    def test_a_number_that_is_not_above_zero_is_said_in_one_line(self):
        for option in ("--limit", "--point-budget"):
            for number in ("0", "-1", "x"):
                done = llmsweep("run", FIRST, "-o", self.home / "run", option, number)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr.splitlines()[0], f"{option}: '{number}' is not a number above 0")
        self.assertFalse((self.home / "run").exists())

    def test_a_number_is_written_as_in_a_sweep(self):
        spec = self.spec("base: {task: step, device: l4, model: phi-2}\naxes:\n  - step.batch: {linear: [1, 150], count: 150}\n")
        for number, code in (("1e2", 2), ("149", 2), ("1_50", 0), ("2e2", 0)):
            done = llmsweep("run", spec, "-o", self.home / "run", "--limit", number)
            self.assertEqual(done.returncode, code, (number, done.stderr))
        done = llmsweep("run", spec, "-o", self.home / "run", "--limit", "1.5")
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (2, "--limit: '1.5' is not a whole number"))
        done = llmsweep("top", self.home / "run", "--by", "step_time_s", "-n", "1e1")
        self.assertEqual(len(done.stdout.splitlines()), 11)

    def test_a_name_that_is_empty_is_a_mistake(self):
        for option in ("-o", "--reuse"):
            done = llmsweep("run", FIRST, option, "", cwd=self.home)
            self.assertEqual(done.returncode, 2)
            self.assertIn("the name is empty", done.stderr)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_a_run_that_reuses_nothing_says_so(self):
        lines = "base: {{task: step, device: l4, model: phi-2}}\naxes:\n  - step.batch: [{}]\n"
        for name, batches in (("old", "1, 2"), ("wider", "1, 2, 3"), ("apart", "5, 6")):
            spec = self.home / f"{name}.yaml"
            spec.write_text(lines.format(batches))
            reuse = [] if name == "old" else ["--reuse", self.home / "run-old"]
            done = llmsweep("run", spec, "-o", self.home / f"run-{name}", *reuse)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("has none of these points" in done.stderr, name == "apart", done.stderr)

    def test_the_line_of_python_is_python(self):
        spec = self.spec("base: {task: step, device: l4, model: phi-2}\n")
        folder = self.home / "it's \"here\" \\ and ü"
        done = llmsweep("run", spec, "-o", folder)
        line = done.stdout.splitlines()[-1].split("in Python: ")[1]
        self.assertEqual(len(eval(line, {"pandas": pd})), 1, line)

    def test_check_tells_what_points_are_not_every_field_of_their_devices(self):
        spec = self.spec("""
base: {device: h100-sxm, model: llama-3.1-8b}
axes:
  - model: [llama-3.1-8b, llama-3.2-1b]
  - concat: [{base: {device: h200-sxm, step.batch: 2}}, {base: {device: h100-sxm, step.batch: 3}}]
  - sample: {random: 2, of: {device.clock: [1 GHz, 2 GHz], model.layers: [8, 16]}}
""")
        said = llmsweep("check", spec)
        self.assertEqual(said.returncode, 0, said.stderr)
        first = said.stdout.split("first points:\n")[1].splitlines()[0]
        self.assertRegex(first, r"^ +0  model=llama-3.1-8b  concat=1  device.name=h200-sxm  device.clock=1.\d+ GHz  model.layers=\d+  step.batch=2$")

    def test_the_room_that_check_expects_is_about_what_a_run_takes(self):
        for axes in ("[{step.batch: [1, 2]}]", "[{step.batch: {linear: [1, 1000], count: 1000}}]"):
            spec = self.spec(f"base: {{task: step, device: h100-sxm, model: llama-3.1-8b}}\naxes: {axes}\n")
            expected, unit = re.search(r"estimate: .*, ([0-9.]+) (kB|MB) on disk", llmsweep("check", spec).stdout).groups()
            shutil.rmtree(self.home / "run", ignore_errors=True)
            self.assertEqual(llmsweep("run", spec, "-o", self.home / "run").returncode, 0)
            taken = sum(file.stat().st_size for file in (self.home / "run").rglob("*") if file.is_file())
            self.assertTrue(0.5 < float(expected) * {"kB": 1e3, "MB": 1e6}[unit] / taken < 2, (expected, unit, taken))

    def test_an_inert_axis_is_a_mistake(self):
        spec = self.spec("base: {task: serve, device: h100-sxm, model: llama-3.1-8b, load: chat}\n"
                         "axes: [{step.batch: [1, 2, 4]}]\n")
        result = llmsweep("check", spec)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("sweep.yaml:2:9: error: 'step.batch' changes nothing here", result.stderr)

    def test_every_example_sweep_is_valid(self):
        for file in sorted((SOURCE / "specs" / "sweeps").glob("*.yaml")):
            with self.subTest(sweep=file.name):
                result = llmsweep("check", file)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("positions", result.stdout)

    def test_a_mistake_is_located_and_nothing_is_written(self):
        spec = self.spec("base: {device: h100-sxn, model: llama-3.1-8b}\n")
        result = llmsweep("run", spec, "-o", self.home / "out")
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"{spec}:1:16: error:", result.stderr)
        self.assertIn("did you mean 'h100-sxm'?", result.stderr)
        self.assertFalse((self.home / "out").exists())

    def test_a_missing_file_is_a_mistake(self):
        result = llmsweep("run", self.home / "nothing.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nothing.yaml", result.stderr)

    def test_a_huge_grid_checks_at_once_and_is_not_run_by_accident(self):
        spec = self.spec(
            "base: {device: h100-sxm, model: llama-3.1-8b}\naxes:\n"
            "  - step.batch: {linear: [1, 10000], count: 10000}\n"
            "  - step.context: {linear: [1, 10000], count: 10000}\n"
            "  - device.memory_bandwidth: {geometric: [1 TB/s, 9 TB/s], count: 10000}\n"
        )
        result = llmsweep("check", spec, timeout=60)
        self.assertIn("1,000,000,000,000 positions", result.stdout)
        refused = llmsweep("run", spec, "-o", self.home / "out")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--limit 1000000000000", refused.stderr)
        self.assertFalse((self.home / "out").exists())

    def test_dry_run_writes_nothing(self):
        result = llmsweep("run", FIRST, "-o", self.home / "out", "--dry-run")
        self.assertEqual(result.returncode, 0)
        self.assertIn("432 positions, 416 points", result.stdout)
        self.assertIn("rejected 16: step.batch * step.context <= 4194304", result.stdout)
        self.assertFalse((self.home / "out").exists())

    def test_explain_shows_the_point_of_the_table(self):
        result = llmsweep("explain", FIRST, "--point", 300)
        self.assertIn("llama-3.1-70b on 8 x h200-sxm", result.stdout)
        self.assertIn("gate_up", result.stdout)
        self.assertEqual(llmsweep("explain", FIRST, "--point", 432).returncode, 2)

    def test_explain_of_a_run_is_that_of_its_spec_and_held_to_its_row(self):
        done, half = self.home / "done", self.home / "half"
        self.assertEqual(llmsweep("run", FIRST, "-o", done).returncode, 0)
        for words in (["--point", 300], ["--point", 300, "--against", 303]):
            of_run = llmsweep("explain", done, *words)
            self.assertEqual(of_run.returncode, 0, of_run.stderr)
            self.assertEqual(of_run.stdout, llmsweep("explain", FIRST, *words).stdout)
        self.assertEqual(llmsweep("run", FIRST, "-o", half, "--shard", "1/2").returncode, 0)
        rows, fewer = (set(pd.read_parquet(run / "points")["index"]) for run in (done, half))
        told = llmsweep("explain", half, "--point", min(rows - fewer))
        self.assertEqual(told.returncode, 1)
        self.assertIn("is not among its rows yet", told.stderr)
        no_run = llmsweep("explain", self.home)
        self.assertEqual(no_run.returncode, 2)
        self.assertIn("not a run folder", no_run.stderr)

    def test_a_bad_trace_is_located_and_nothing_runs(self):
        (self.home / "requests.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,10,5\n0.5,10,-5\n")
        spec = self.spec(
            "base: {task: serve, device: h100-sxm, model: llama-3.1-8b,"
            " load: {arrivals: trace, trace: requests.csv}}\n"
        )
        result = llmsweep("run", spec, "-o", self.home / "out")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(
            result.stderr,
            f"{self.home}/requests.csv:4:1: error: the arrival is before that of the row above\n"
            "  hint: sort the rows by arrival\n"
            f"{self.home}/requests.csv:4:8: error: output_tokens is not a whole number from 1 to 100000000\n",
        )
        self.assertFalse((self.home / "out").exists())

    def test_a_run_does_not_go_on_with_another_trace(self):
        trace = self.home / "requests.csv"
        of = {"base": "{arrivals: trace, trace: requests.csv}}", "axis": "{arrivals: trace}}\naxes: [load.trace: [requests.csv]]"}
        for name, load in of.items():
            trace.write_text("arrival_s,prompt_tokens,output_tokens\n0,100,10\n")
            spec = self.spec(f"base: {{task: serve, device: h100-sxm, model: llama-3.1-8b, load: {load}\n")
            run = self.home / name
            self.assertEqual(llmsweep("run", spec, "-o", run).returncode, 0)
            self.assertEqual(llmsweep("run", run / "run.yaml", "-o", run).returncode, 0)
            trace.write_text("arrival_s,prompt_tokens,output_tokens\n0,100,20\n")
            # Neither the sweep nor what was made of it.
            for again in (spec, run / "run.yaml"):
                done = llmsweep("run", again, "-o", run)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertRegex(done.stderr, "another spec|is not what it was when this sweep was resolved")
            self.assertNotEqual(llmsweep("explain", run, "--point", 0).returncode, 0)

    def test_explain_shows_a_served_load(self):
        text = llmsweep("explain", SOURCE / "specs" / "sweeps" / "serving_load.yaml", "--point", 59).stdout
        self.assertRegex(text, r"served load chat: poisson arrivals, policy vllm_v0, 1 replica")
        self.assertRegex(text, r"load (stable|backlogged|overloaded|undecided)")
        self.assertRegex(text, r"mean +p50 +p90 +p95 +p99\n +queue +[\d.]+ .?s")
        self.assertRegex(text, r"prefill +gate_up")

    def test_a_bad_shard_is_a_mistake(self):
        for shard in ("0/3", "4/3", "x", "1/", "1/3/2"):
            result = llmsweep("run", FIRST, "-o", self.home / "out", "--shard", shard)
            self.assertEqual(result.returncode, 2, shard)
            self.assertIn("--shard", result.stderr)

    def test_an_unwritable_folder_is_said_plainly(self):
        (self.home / "file").write_text("in the way")
        result = llmsweep("run", FIRST, "-o", self.home / "file" / "out")
        self.assertIn(result.returncode, (1, 2))
        self.assertIn(str(self.home / "file"), result.stderr)


if __name__ == "__main__":
    unittest.main()
