"""top --launch: the flags of an engine are the settings of the point."""

import csv
import io
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base:
  task: serve
  model: llama-3.1-8b
  device: h100-sxm
  parallel: {tp: 4}
  quant: {weights: fp8, activations: fp8, kv: fp8}
  serving: {from: vllm-v1, max_num_seqs: 96, max_num_batched_tokens: 4096, prefix_caching: false}
  load: {from: chat, requests: 100}
axes: [load.rate: [2 req/s]]
"""
EXPECTED = {
    "vllm": {"--tensor-parallel-size": "4", "--quantization": "fp8", "--kv-cache-dtype": "fp8", "--max-num-seqs": "96",
             "--max-num-batched-tokens": "4096"},
    "sglang": {"--tp-size": "4", "--quantization": "fp8", "--kv-cache-dtype": "fp8_e5m2", "--max-running-requests": "96"},
    "tensorrt-llm": {"--tp_size": "4", "--max_batch_size": "96", "--max_num_tokens": "4096"},
}
ALONE = {"vllm": "--no-enable-prefix-caching", "sglang": "--disable-radix-cache"}
START = {"vllm": ["vllm", "serve"], "sglang": ["python", "-m", "sglang.launch_server"], "tensorrt-llm": ["trtllm-serve"]}


class Launch(unittest.TestCase):
    def test_flags_are_the_settings_of_the_point(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            (home / "sweep.yaml").write_text(SPEC)
            ran = subprocess.run([BINARY, "run", home / "sweep.yaml", "-o", home / "run"], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            for engine, flags in EXPECTED.items():
                done = subprocess.run([BINARY, "top", home / "run", "--by", "e2e_s", "--launch", engine, "--format", "csv"],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                words = shlex.split(next(csv.DictReader(io.StringIO(done.stdout)))["launch"])
                self.assertEqual(words[:len(START[engine])], START[engine])
                self.assertIn("llama-3.1-8b", words)
                for flag, value in flags.items():
                    self.assertEqual(words[words.index(flag) + 1], value, words)
                if engine in ALONE:
                    self.assertIn(ALONE[engine], words)
                # One pipeline stage and one replica need no flag.
                self.assertNotRegex(" ".join(words), "pipeline|pp[-_]size|data-parallel|dp-size")

    def test_what_the_command_leaves_out_is_named_behind_it(self):
        with_draft = SPEC.replace("  load:", "  speculation: {method: ngram, tokens: 3, acceptance: 0.5}\n  prefill: {}\n  load:")
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            for name, text, left_out in (("plain", SPEC, ""), ("draft", with_draft, "speculation, the prefill deployment")):
                (home / f"{name}.yaml").write_text(text)
                ran = subprocess.run([BINARY, "run", home / f"{name}.yaml", "-o", home / name], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                done = subprocess.run([BINARY, "top", home / name, "--by", "e2e_s", "--launch", "vllm", "--format", "csv"],
                                      capture_output=True, text=True)
                line = next(csv.DictReader(io.StringIO(done.stdout)))["launch"]
                self.assertEqual(line.partition("  # not in this command: ")[2], left_out)

    def test_a_training_job_is_no_engine(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            (home / "sweep.yaml").write_text("base: {task: train, device: h200-sxm, model: llama-3.2-1b}\naxes: [train.micro_batch: [1, 2]]\n")
            ran = subprocess.run([BINARY, "run", home / "sweep.yaml", "-o", home / "run"], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            done = subprocess.run([BINARY, "top", home / "run", "--by", "tokens_per_s", "--launch", "vllm"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("points of task train are not served", done.stderr)


if __name__ == "__main__":
    unittest.main()
