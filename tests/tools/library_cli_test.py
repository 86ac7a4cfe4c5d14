"""What a user sees of the library and of the program itself: list, show, describe, completion, version."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])


def llmsweep(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, **options)


class LibraryAtTheCommandLine(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-library-")
        self.home = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def spec(self, text):
        file = self.home / "sweep.yaml"
        file.write_text(text)
        return file

    def said_about(self, text):
        """What `check` says of a sweep with a mistake, without the folder."""
        result = llmsweep("check", self.spec(text))
        self.assertEqual(result.returncode, 2, result.stdout)
        return result.stderr.replace(str(self.home) + "/", "")

    def test_version_is_also_an_option(self):
        result = llmsweep("--version")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout, llmsweep("version").stdout)

    def test_describe_in_short_names_the_same_and_no_meanings(self):
        for arguments in ([], ["bandwidth"], ["ttft"]):
            whole, short = (llmsweep("describe", *arguments, *option).stdout for option in ([], ["--short"]))
            names = lambda text: [line.split()[0] for line in text.splitlines() if line and not line.startswith(("Fields", "Columns"))]
            self.assertEqual(names(short), names(whole))
            self.assertNotIn("meaning", short)
            self.assertLess(len(short), 0.7 * len(whole))

    def test_describe_of_what_is_not_there_says_so(self):
        result = llmsweep("describe", "nothing")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("no field and no column has 'nothing' in its name", result.stderr)
        self.assertIn("did you mean", llmsweep("describe", "bandwith").stderr)
        found = llmsweep("describe", "TTFT_P99").stdout
        self.assertIn("ttft_p99_s", found)
        self.assertNotIn("kernels/*.parquet", found)

    def test_list_knows_calibrations(self):
        text = llmsweep("list", "calibrations").stdout
        self.assertRegex(text, r"(?m)^h200-sxm +measured +calibration.name: h200-sxm ")
        self.assertRegex(text, r"(?m)^vllm_\S+ +transfer +serving.kernels: vllm_")
        self.assertIn("calibrations", llmsweep("list").stdout)
        self.assertIn("transfer", llmsweep("list", "calibrations", "--names").stdout.split())

    def test_part_of_a_device_name_suggests_every_such_device(self):
        said = self.said_about("base: {device: H100, model: llama-3.1-8b}\n")
        for name in ("h100-sxm", "h100-pcie", "h100-nvl"):
            self.assertIn(f"'{name}'", said)

    def test_a_spec_made_from_its_own_name_alters_the_one_that_ships(self):
        (self.home / "specs" / "devices").mkdir(parents=True)
        (self.home / "specs" / "devices" / "h100-sxm.yaml").write_text("from: h100-sxm\nrent: 1 USD/h\n")
        (self.home / "specs" / "devices" / "mine.yaml").write_text("from: mine\n")
        spec = self.spec("base: {device: h100-sxm, model: llama-3.1-8b}\naxes: [device: [h100-sxm, h200-sxm]]\n")
        done = llmsweep("run", spec, "-o", self.home / "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        points = pd.read_parquet(self.home / "run" / "points").set_index("device")
        self.assertAlmostEqual(points["device.rent"]["h100-sxm"] * 3600, 1)
        self.assertEqual(points["device.memory_bandwidth"]["h100-sxm"], 3.35e12)
        # There is none that it could alter.
        self.assertEqual(self.said_about("base: {device: mine, model: llama-3.1-8b}\n"),
                         "specs/devices/mine.yaml:1:7: error: 'mine' is made from itself\n  hint: break the circle of 'from'\n")

    def test_a_name_that_is_not_in_the_library_suggests_the_likely_ones_or_the_list(self):
        self.assertIn("did you mean 'h100-nvl', 'h100-pcie' or 'h100-sxm'?", llmsweep("show", "h100").stderr)
        self.assertEqual(llmsweep("show", "zzzzzzzzzz").stderr,
                         "error: nothing in the library is called 'zzzzzzzzzz'\n  hint: 'llmsweep list' shows what there is\n")

    def test_an_engine_without_calibration_is_a_mistake(self):
        said = self.said_about("base: {device: h100-sxm, model: llama-3.1-8b, serving.kernels: vllm}\n")
        self.assertRegex(said, "1:64: error: serving.kernels: there is no 'vllm' among the calibrations of engines\n"
                               "  hint: did you mean 'vllm_")

    def test_a_hub_name_says_what_to_download(self):
        for model in ("meta-llama/Llama-3.1-70B-Instruct", "{hf_config: meta-llama/Llama-3.1-70B-Instruct}"):
            said = self.said_about(f"base: {{device: h100-sxm, model: {model}}}\n")
            self.assertIn("nothing is downloaded: save the config.json of 'meta-llama/Llama-3.1-70B-Instruct'", said)
            self.assertIn("as 'meta-llama/Llama-3.1-70B-Instruct/config.json'", said)
            self.assertIn("did you mean 'llama-3.1-70b'?", said)

    def test_every_named_spec_resolves(self):
        for library in llmsweep("list", "--names").stdout.split():
            for name in llmsweep("list", library, "--names").stdout.split():
                with self.subTest(spec=f"{library}/{name}"):
                    result = llmsweep("show", f"{library}/{name}")
                    self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_model_that_is_shown_can_be_read_again(self):
        """With the formats it is published in: a copy without them would be another model."""
        models = self.home / "specs" / "models"
        models.mkdir(parents=True)
        for name, weights in (("gpt-oss-120b", "fp4"), ("deepseek-v3", "fp8"), ("llama-3.1-8b", None)):
            with self.subTest(model=name):
                shown = llmsweep("show", f"models/{name}").stdout
                self.assertEqual(weights is not None, "quant:" in shown, shown)
                if weights:
                    self.assertIn(f"weights: {weights}", shown)
                (models / f"{name}-copy.yaml").write_text(shown)
                again = llmsweep("show", f"models/{name}-copy", env={**os.environ, "LLMSWEEP_SPECS": str(self.home / "specs")}).stdout
                self.assertEqual(shown.splitlines()[1:], again.splitlines()[1:])

    def test_library_is_as_large_as_promised(self):
        self.assertGreaterEqual(len(llmsweep("list", "devices", "--names").stdout.split()), 30)
        self.assertGreaterEqual(len(llmsweep("list", "models", "--names").stdout.split()), 30)

    def test_describe_covers_fields_and_columns(self):
        text = llmsweep("describe").stdout
        for word in ("device.memory_bandwidth", "step_time_s", "peak off-chip bandwidth", "kernels/*.parquet", "requests/*.parquet",
                     "timeline/*.parquet", "first_token_s", "kv_use", "output.timeline"):
            self.assertIn(word, text)

    def test_completion_offers_verbs_and_options(self):
        script = llmsweep("completion", "bash").stdout
        path = os.pathsep.join([str(pathlib.Path(BINARY).parent), os.environ["PATH"]])
        for words, offered in (("run --s", "--shard"), ("kernels --dev", "--device"), ("ru", "run")):
            asked = words.split()
            line = f"\nCOMP_WORDS=(llmsweep {words}); COMP_CWORD={len(asked)}; _llmsweep; echo ${{COMPREPLY[@]}}"
            said = subprocess.run(["bash", "-c", script + line], capture_output=True, text=True, env={**os.environ, "PATH": path})
            self.assertIn(offered, said.stdout.split(), said.stderr)

    def test_completion_runs_nothing_and_splits_no_names(self):
        script = llmsweep("completion", "bash").stdout
        specs = self.home / "specs" / "devices"
        specs.mkdir(parents=True)
        text = llmsweep("show", "h100-sxm").stdout
        for name in ("$(touch pwned)", "`touch pwned`"):
            (specs / f"{name}.yaml").write_text(text)
        (self.home / "my sweep.yaml").write_text("")
        (self.home / "my run").mkdir()
        path = os.pathsep.join([str(pathlib.Path(BINARY).parent), os.environ["PATH"]])
        env = {**os.environ, "PATH": path, "LLMSWEEP_SPECS": str(self.home / "specs")}
        for verb, current, offered in (("show", "", "h100-sxm"), ("run", "my", "my sweep.yaml"), ("top", "my", "my run")):
            line = f"\nCOMP_WORDS=(llmsweep {verb} '{current}'); COMP_CWORD=2; _llmsweep; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            said = subprocess.run(["bash", "-c", script + line], capture_output=True, text=True, env=env, cwd=self.home)
            self.assertIn(offered, said.stdout.splitlines(), said.stderr)
        self.assertFalse((self.home / "pwned").exists())

    def test_verbs_about_kernels_are_answered_by_the_program_beside(self):
        for verb in ("kernels", "validate", "calibrate"):
            said = llmsweep(verb, "--help").stdout
            about = re.search(rf"(?m)^  {verb} +(\S.*)$", llmsweep("--help").stdout)[1]
            self.assertIn(about, said)
            self.assertIn(f"llmsweep {verb} ", said)
        self.assertEqual(llmsweep("kernels").returncode, 2)

    def test_list_says_what_each_spec_is(self):
        self.assertRegex(llmsweep("list").stdout, r"(?m)^sweeps +\d+   llmsweep list sweeps$")
        for library, line in (
            ("devices", "h100-sxm +8[0-9.]+ GB, 3.35 TB/s, 989.4 TFLOP/s bf16"),
            ("serving", "vllm-v0 +vLLM V0 without chunked prefill: whole prompts up to the token budget."),
            ("hosts", "none +A host that takes no time: what the devices alone could do."),
            ("loads", "closed-64 +A benchmark client with 64 requests in flight, 1024 tokens in and 256 out."),
            ("suite", "I1.1 +I1.1: one request, Llama-2-7B on an A100."),
            ("sweeps", "first_sweep +Which GPU is the cheapest home for a 70B model\\?"),
        ):
            self.assertRegex(llmsweep("list", library).stdout, f"(?m)^{line}$")

    def test_list_of_an_unknown_library_suggests_one(self):
        result = llmsweep("list", "sweps")
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'sweeps'?", result.stderr)

    def test_version_tells_what_was_built(self):
        self.assertRegex(
            llmsweep("version").stdout,
            r"^llmsweep \d+\.\d+\.\d+ \(model version \d+, Arrow \d+\.\d+\.\d+, "
            r"commit ([0-9a-f]{12}(-dirty)?|unknown), \w+ \d+\.\d+\.\d+\)$",
        )


if __name__ == "__main__":
    unittest.main()
