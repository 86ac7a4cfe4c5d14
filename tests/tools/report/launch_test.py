"""top --launch: the flags of an engine are the settings of the point."""

import csv
import io
import os
import pathlib
import re
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
    "sglang": {"--tp-size": "4", "--quantization": "fp8", "--kv-cache-dtype": "fp8_e5m2", "--max-running-requests": "96",
               "--chunked-prefill-size": "4096"},
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
                self.assertIn("meta-llama/Llama-3.1-8B", words)
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
                line = self.launched(home, name, text, "vllm")
                self.assertEqual(line.partition("  # not in this command: ")[2], left_out)

    def launched(self, home, name, spec, engine):
        (home / f"{name}.yaml").write_text(spec)
        ran = subprocess.run([BINARY, "run", home / f"{name}.yaml", "-o", home / name], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        done = subprocess.run([BINARY, "top", home / name, "--by", "e2e_s", "--launch", engine, "--format", "csv"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(csv.DictReader(io.StringIO(done.stdout)))["launch"]

    def test_replicas_that_share_experts_are_counted_as_each_engine_counts(self):
        # Attention on two devices in each of four replicas, experts over all eight.
        shared = (SPEC.replace("llama-3.1-8b", "qwen3-30b-a3b").replace("{tp: 4}", "{tp: 2, dp: 4, ep: 8}")
                  .replace("weights: fp8, activations: fp8, kv: fp8", "weights: bf16"))
        wanted = {"vllm": "--tensor-parallel-size 2 --data-parallel-size 4 --enable-expert-parallel ",
                  "sglang": "--tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8 ",
                  "tensorrt-llm": "--tp_size 8 --ep_size 8 "}
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for engine, words in wanted.items():
                line = self.launched(pathlib.Path(scratch), engine, shared, engine)
                self.assertIn(words, line)
                self.assertEqual("enable_attention_dp" in line, engine == "tensorrt-llm", line)

    def test_sglang_is_told_what_all_ranks_of_data_parallel_attention_have_together(self):
        # It divides both limits by --dp-size where attention is data-parallel, and nowhere else.
        model = SPEC.replace("llama-3.1-8b", "qwen3-30b-a3b").replace("weights: fp8, activations: fp8, kv: fp8", "weights: bf16")
        limits = re.sub(r"serving: \{[^}]*\}", "serving: {from: sglang, chunk: 1000, max_num_seqs: 30}", model)
        own = re.sub(r"serving: \{[^}]*\}", "serving: sglang", model)
        for layout, chunk, seats in (("{tp: 2, dp: 4, ep: 8}", 4000, 120), ("{tp: 2, dp: 4}", 1000, 30), ("{tp: 8, ep: 8}", 1000, 30)):
            with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
                line = self.launched(pathlib.Path(scratch), "stated", limits.replace("{tp: 4}", layout), "sglang")
                self.assertIn(f"--max-running-requests {seats} ", line)
                self.assertIn(f"--chunked-prefill-size {chunk} ", line)
                # What the engine sets by itself it need not be told.
                line = self.launched(pathlib.Path(scratch), "own", own.replace("{tp: 4}", layout), "sglang")
                self.assertNotIn("--chunked-prefill-size", line)
                self.assertNotIn("--mem-fraction-static", line)

    def test_how_tokens_get_to_experts_is_said(self):
        shared = (SPEC.replace("llama-3.1-8b", "qwen3-30b-a3b").replace("{tp: 4}", "{dp: 4, ep: 4}")
                  .replace("weights: fp8, activations: fp8, kv: fp8", "weights: bf16"))
        flags = "--all2all-backend|--moe-a2a-backend|--deepep-mode|expert_exchange"
        cases = (("vllm", "gathered", []), ("vllm", "auto", ["--all2all-backend", "deepep_low_latency"]),
                 ("vllm", "normal", ["--all2all-backend", "deepep_high_throughput"]), ("sglang", "gathered", []),
                 ("sglang", "auto", ["--moe-a2a-backend", "deepep"]),
                 ("sglang", "normal", ["--moe-a2a-backend", "deepep", "--deepep-mode", "normal"]), ("tensorrt-llm", "gathered", []))
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for engine, exchange, wanted in cases:
                spec = shared.replace("{from: vllm-v1,", f"{{from: vllm-v1, expert_exchange: {exchange},")
                line = self.launched(pathlib.Path(scratch), f"{engine}-{exchange}", spec, engine)
                self.assertIn(" ".join(wanted), line)
                self.assertEqual(len(re.findall(flags, line)), len(wanted) // 2, line)
            spec = shared.replace("{from: vllm-v1,", "{from: vllm-v1, expert_exchange: normal,")
            self.assertIn("# not in this command: enable_attention_dp, serving.expert_exchange",
                          self.launched(pathlib.Path(scratch), "normal", spec, "tensorrt-llm"))

    def test_every_setting_that_is_not_an_engines_own_is_said_or_named(self):
        # A setting, another value of it, and what each engine is told, or what is named behind its command.
        cases = (
            ("serving.kv_blocks", "5000", "--num-gpu-blocks-override 5000", "--max-total-tokens {}", None),
            ("serving.block_size", "64", "--block-size 64", "--page-size 64", None),
            ("serving.long_prefill_threshold", "300", "--long-prefill-token-threshold 300", None, None),
            ("serving.ordering", "priority", "--scheduling-policy priority", "--enable-priority-scheduling", None),
            ("serving.ordering", "longest_prefix", None, "--schedule-policy lpm", None),
            ("serving.ordering", "fair_share", None, None, None),
            ("serving.preemption", "priority", None, None, None),
            ("serving.prefix_caching", "false", "--no-enable-prefix-caching", "--disable-radix-cache", None),
            ("serving.all_reduce", "nccl", "--disable-custom-all-reduce", "--disable-custom-all-reduce", None),
            ("serving.admission.max_queue", "9", None, "--max-queued-requests 9", None),
            ("serving.mixed_attention", "overlapped", None, None, None),
            ("serving.retention.policy", "pinned", None, None, None),
            ("serving.watermark", "0.25", None, None, None),
            ("host.mode", "eager", "--enforce-eager", "--disable-cuda-graph", None),
            ("host.largest_graph", "64", "--max-cudagraph-capture-size 64", "--cuda-graph-max-bs 64", None),
            ("host.captured_sizes", "64 128", "--cudagraph-capture-sizes 64 128", "--cuda-graph-bs 64 128", None),
            ("host.asynchronous", "false", "--no-async-scheduling", "--disable-overlap-schedule", None),
        )
        presets = {"vllm": "vllm-v1", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm"}
        block = {"sglang": 1}
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            for place, engine in enumerate(presets):
                base = (f"base: {{task: serve, model: llama-3.1-8b, device: h100-sxm, parallel: {{tp: 2}}, serving: {presets[engine]}, "
                        "load: {from: chat, requests: 20}}\naxes: [load.rate: [1 req/s]]\n")
                plain = self.launched(home, engine, base, engine)
                self.assertNotIn("#", plain)
                for number, (column, value, *told) in enumerate(cases):
                    line = self.launched(home, f"{engine}-{number}",
                                         base.replace("parallel:", f'{column}: "{value}", parallel:'), engine)
                    self.assertNotEqual(line, plain, column)
                    words, _, behind = line.partition("  # not in this command: ")
                    if told[place] is None:
                        self.assertEqual((words, behind), (plain, f"{column}: {value}"))
                    else:
                        self.assertIn(" " + told[place].format(5000 * block.get(engine, 1)), words)
                        self.assertEqual(behind, "")

    def test_an_engine_that_was_not_simulated_is_named(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            self.assertIn("serving.policy: vllm_v1", self.launched(pathlib.Path(scratch), "other", SPEC, "sglang"))

    def test_where_experts_of_every_token_run_is_said(self):
        base = ("base: {task: serve, model: deepseek-v3, device: h200-sxm, parallel: {tp: 8}, quant: {weights: fp8, activations: fp8}, "
                "serving: {from: SERVING, shared_experts: VALUE}, load: {from: chat, requests: 20}}\naxes: [load.rate: [1 req/s]]\n")
        cases = (("vllm", "vllm-v1", "beside", ""), ("vllm", "vllm-v1", "after", "VLLM_DISABLE_SHARED_EXPERTS_STREAM=1 "),
                 ("sglang", "sglang", "after", ""), ("sglang", "sglang", "beside", "serving.shared_experts: beside"),
                 ("tensorrt-llm", "tensorrt-llm", "beside", ""), ("tensorrt-llm", "tensorrt-llm", "after", "serving.shared_experts: after"))
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for number, (engine, preset, value, wanted) in enumerate(cases):
                text = base.replace("SERVING", preset).replace("VALUE", value)
                line = self.launched(pathlib.Path(scratch), f"case{number}", text, engine)
                self.assertIn(wanted, line)
                self.assertEqual(bool(re.search("SHARED_EXPERTS|shared_experts", line)), bool(wanted), line)
                # A model without such experts has nothing to say.
                line = self.launched(pathlib.Path(scratch), f"other{number}", text.replace("deepseek-v3", "qwen3-30b-a3b"), engine)
                self.assertNotRegex(line, "SHARED_EXPERTS|shared_experts")

    def test_redundant_experts_and_two_batches_are_said(self):
        base = ("base: {task: serve, model: qwen3-30b-a3b, device: h100-sxm, parallel: {dp: 4, ep: 4, redundant_experts: 8}, "
                "serving: {from: PRESET, expert_exchange: normal, two_batch_overlap: true}, "
                "load: {from: chat, requests: 20}}\naxes: [load.rate: [1 req/s]]\n")
        cases = (("vllm", "vllm-v1", "--enable-eplb --eplb-config.num_redundant_experts 8", "--enable-dbo"),
                 ("sglang", "sglang", "--enable-eplb --ep-num-redundant-experts 8", "--enable-two-batch-overlap"),
                 ("tensorrt-llm", "tensorrt-llm", "second copies of experts", "serving.two_batch_overlap: true"))
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for engine, preset, *wanted in cases:
                line = self.launched(pathlib.Path(scratch), engine, base.replace("PRESET", preset), engine)
                for words in wanted:
                    self.assertIn(words, line)

    def test_fp8_weights_beside_wider_inputs_are_named_where_the_device_would_multiply_in_fp8(self):
        wide = SPEC.replace("activations: fp8, kv: fp8", "activations: bf16")
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            self.assertIn("# not in this command: activations in bf16", self.launched(home, "hopper", wide, "vllm"))
            self.assertNotIn("#", self.launched(home, "ampere", wide.replace("h100-sxm", "a100-80gb-sxm"), "vllm"))

    def test_formats_that_only_a_checkpoint_can_have_are_named(self):
        int4 = SPEC.replace("weights: fp8, activations: fp8, kv: fp8", "weights: int4, activations: bf16")
        own = "{from: tensorrt-llm, max_num_seqs: 96}"
        other = re.sub(r"{from: vllm-v1.*}", own, SPEC)
        cases = (("vllm", SPEC, ""), ("vllm", int4, "weights in int4"), ("sglang", re.sub(r"{from: vllm-v1.*}", "sglang", int4), "weights in int4"),
                 ("tensorrt-llm", other, "weights in fp8, the KV cache in fp8"))
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for number, (engine, spec, left_out) in enumerate(cases):
                line = self.launched(pathlib.Path(scratch), f"case{number}", spec, engine)
                self.assertEqual(line.partition("  # not in this command: ")[2], left_out)

    def test_kernels_of_four_bit_experts_are_said_to_vllm(self):
        own = (SPEC.replace("llama-3.1-8b", "gpt-oss-20b").replace("weights: fp8, activations: fp8, kv: fp8", "weights: fp4, activations: bf16")
               .replace("{from: vllm-v1,", "{from: vllm-v1, four_bit_experts: own,"))
        marlin = own.replace("four_bit_experts: own", "four_bit_experts: marlin")
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            self.assertTrue(self.launched(home, "own", own, "vllm").startswith("vllm serve openai/gpt-oss-20b "))
            self.assertTrue(self.launched(home, "marlin", marlin, "vllm").startswith("VLLM_MXFP4_USE_MARLIN=1 vllm serve openai/gpt-oss-20b "))
            self.assertIn("Marlin's kernels", self.launched(home, "sglang", marlin, "sglang"))
            wide = marlin.replace("weights: fp4", "weights: bf16")
            self.assertTrue(self.launched(home, "wide", wide, "vllm").startswith("vllm serve openai/gpt-oss-20b "))

    def test_what_no_engine_serves_starts_none(self):
        cases = (("train", "llama-3.2-1b", "train.micro_batch", "tokens_per_s"), ("denoise", "dit-xl-2", "denoise.batch", "images_per_s"),
                 ("classify", "resnet-50", "classify.batch", "images_per_s"))
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            for task, model, axis, figure in cases:
                (home / "sweep.yaml").write_text(f"base: {{task: {task}, device: h200-sxm, model: {model}}}\naxes: [{axis}: [1, 2]]\n")
                ran = subprocess.run([BINARY, "run", home / "sweep.yaml", "-o", home / task], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                done = subprocess.run([BINARY, "top", home / task, "--by", figure, "--launch", "vllm"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"points of task {task} are not served", done.stderr)

    def test_a_model_is_one_word_of_the_command_whatever_it_is_called(self):
        name = "x; touch pwned $(id) 'y'"
        spec = SPEC.replace("model: llama-3.1-8b", f'model: {{from: llama-3.1-8b, hub: "{name}"}}')
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for engine in START:
                words = shlex.split(self.launched(pathlib.Path(scratch), engine, spec, engine), comments=True)
                self.assertIn(name, words)

    def test_an_engine_is_started_with_the_repository_of_these_very_weights(self):
        # What a sweep says of a model, and what engines are told.
        known, own, none = "meta-llama/Llama-3.1-8B", "me/mine", "YOUR_CHECKPOINT"
        cases = (("llama-3.1-8b", known), ("{from: llama-3.1-8b, name: mine, max_context: 8192}", known),
                 ("{from: llama-3.1-8b, layers: 16}", none), ("llama-3.1-8b, model.layers: 16", none),
                 ("{from: llama-3.1-8b, mlp: plain}", none), (f"{{from: llama-3.1-8b, layers: 16, hub: {own}}}", own),
                 ("gpt3-6.7b", none), (f"{{from: gpt3-6.7b, hub: {own}}}", own))
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for number, (model, word) in enumerate(cases):
                name = f"case{number}"
                line = self.launched(pathlib.Path(scratch), name, self.short(model), "vllm")
                self.assertEqual(shlex.split(line)[2], word, model)
                remark = line.partition("  # YOUR_CHECKPOINT stands for the weights of this model: ")[2]
                self.assertEqual(remark, "" if word != none else "model.hub names no repository of the Hugging Face hub"
                                 if model.startswith("gpt3") else "its shape is not that of its 'model.hub'")

    def test_what_a_sweep_does_to_a_model_is_seen_row_by_row(self):
        spec = self.short("llama-3.1-8b").replace("parallel.tp: [1]", "model.layers: [16, 32]")
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            self.launched(home, "layers", spec, "vllm")
            done = subprocess.run([BINARY, "top", home / "layers", "--by", "e2e_s", "--launch", "vllm", "--show", "model.layers", "--format",
                                   "csv"], capture_output=True, text=True)
            words = {row["model.layers"]: shlex.split(row["launch"])[2] for row in csv.DictReader(io.StringIO(done.stdout))}
            self.assertEqual(words, {"16": "YOUR_CHECKPOINT", "32": "meta-llama/Llama-3.1-8B"})

    def test_a_downloaded_config_says_whose_it_is(self):
        config = ('{"architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, '
                  '"num_hidden_layers": 16, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072}')
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            home = pathlib.Path(scratch)
            for folder, word in (("me--tuned", "me/tuned"), ("tuned", "YOUR_CHECKPOINT")):
                (home / folder).mkdir()
                (home / folder / "config.json").write_text(config)
                line = self.launched(home, f"run-{folder}", self.short(f"{{hf_config: {folder}}}"), "sglang")
                self.assertEqual(shlex.split(line)[4], word)

    @staticmethod
    def short(model):
        return ("base: {task: serve, device: h100-sxm, serving: vllm-v1, load: {from: chat, requests: 20, rate: 2 req/s}, "
                f"model: {model}}}\naxes: [parallel.tp: [1]]\n")

    def test_a_share_of_another_memory_is_named(self):
        presets = {"vllm": "vllm-v1", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm"}
        shares = {"vllm": "whole", "sglang": "model_and_kv", "tensorrt-llm": "rest"}
        with tempfile.TemporaryDirectory(prefix="llmsweep-launch-") as scratch:
            for simulated, preset in presets.items():
                spec = re.sub(r"{from: vllm-v1.*}", preset, SPEC)
                for engine in presets:
                    line = self.launched(pathlib.Path(scratch), f"{simulated}-{engine}", spec, engine)
                    named = f"serving.memory_share: {shares[simulated]}" in line.partition("  # not in this command: ")[2]
                    self.assertEqual(named, engine != simulated, line)


if __name__ == "__main__":
    unittest.main()
