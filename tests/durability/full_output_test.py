"""Whatever a verb answers, an output that cannot take it ends in exit code 1 and a line that says why."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = "base: {task: step, model: llama-3.1-8b, device: l4}\naxes: [step.batch: [1, 2, 4]]\n"
QUESTION = json.dumps({"base": {"task": "step", "model": "llama-3.1-8b"}, "set": {"device": ["h100-sxm", "l4"]}}) + "\n"
VERBS = {
    "run": "sweep.yaml -o other",
    "check": "sweep.yaml",
    "explain": "sweep.yaml --point 0",
    "top": "run --by step_time_s",
    "pareto": "run --min step_time_s --min memory_used_bytes",
    "sensitivity": "run --of step_time_s",
    "compare": "run run",
    "sql": "run SELECT",
    "summarise": "run",
    "evaluate": "",
    "status": "run",
    "finish": "run",
    "verify": "run",
    "list": "devices",
    "show": "l4",
    "describe": "batch",
    "completion": "bash",
    "version": "",
    "slurm": "sweep.yaml -o night --tasks 2 --dry-run",
}
# They write files, and a line about each; or take minutes; or have nothing to say of a run in which nothing misleads.
ELSEWHERE = {"notes", "report", "trace", "import", "suite", "kernels", "validate", "calibrate"}


class FullOutput(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-full-output-")
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)
        (self.home / "sweep.yaml").write_text(SPEC)
        self.assertEqual(subprocess.run([BINARY, "run", "sweep.yaml", "-o", "run"], cwd=self.home, capture_output=True).returncode, 0)

    def test_every_verb_says_that_its_output_is_lost(self):
        helped = subprocess.run([BINARY, "--help"], capture_output=True, text=True).stdout
        listed = helped.split("Subcommands:\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual({line.split()[0] for line in listed}, VERBS.keys() | ELSEWHERE, "a new verb belongs into one of the two lists")
        for verb, words in VERBS.items():
            with open("/dev/full", "w") as full:
                arguments = [word.replace("SELECT", "select * from points") for word in words.split()]
                done = subprocess.run([BINARY, verb, *arguments], cwd=self.home, input=QUESTION, stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, (verb, done.stderr))
            self.assertEqual(done.stderr.splitlines()[-1], "llmsweep: cannot write the output: No space left on device", verb)


if __name__ == "__main__":
    unittest.main()
