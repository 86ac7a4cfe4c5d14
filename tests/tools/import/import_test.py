"""llmsweep import: what vLLM measured becomes a run to compare with, a profiler's trace a kernel table; damage is located."""

import csv
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
sys.path.insert(0, str(pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"]) / "tools" / "gpu"))
import kernel_table  # noqa: E402

SPEC = """
base: {task: serve, model: llama-3.1-8b, device: h100-sxm, load: {from: chat, requests: 50}}
axes: [load.rate: [2 req/s, 8 req/s]]
"""


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


def vllm_result(requests=40, seed=1, rate=2.0):
    """In the form that 'vllm bench serve --save-result --save-detailed' writes."""
    draw = np.random.default_rng(seed)
    outputs = draw.integers(2, 30, requests)
    itls = [list(draw.uniform(0.01, 0.02, n - 1)) for n in outputs]
    ttfts = list(draw.uniform(0.05, 0.5, requests))
    return {
        "date": "20260101-000000", "backend": "vllm", "model_id": "m", "num_prompts": requests, "request_rate": rate, "duration": 20.0,
        "completed": requests, "total_input_tokens": 100 * requests, "total_output_tokens": int(outputs.sum()), "request_throughput": requests / 20,
        "request_goodput": None, "output_throughput": float(outputs.sum() / 20), "total_token_throughput": float((outputs.sum() + 100 * requests) / 20),
        "input_lens": [100] * requests, "output_lens": [int(n) for n in outputs], "ttfts": ttfts, "itls": itls, "errors": [""] * requests,
        "mean_ttft_ms": float(np.mean(ttfts) * 1e3), "median_ttft_ms": float(np.median(ttfts) * 1e3), "p99_ttft_ms": float(np.percentile(ttfts, 99) * 1e3),
    }


def kernel(number, name, microseconds, start):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": microseconds,
            "args": {"External id": number, "stream": 7, "correlation": number}}


def operator(number, name, dims, types):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": number, "dur": 1,
            "args": {"External id": number, "Input Dims": dims, "Input type": types}}


BF16 = ["c10::BFloat16"] * 3
TRACE = {"schemaVersion": 1, "traceEvents": [
    *(operator(i, "aten::mm", [[16, 4096], [4096, 1024]], BF16) for i in (1, 2, 3)),
    kernel(1, "void cutlass::Kernel2<int>(x)", 10.0, 0), kernel(2, "void cutlass::Kernel2<int>(x)", 30.0, 20), kernel(3, "void cutlass::Kernel2<int>(x)", 20.0, 60),
    operator(4, "aten::addmm", [[64], [8, 32], [32, 64]], BF16), kernel(4, "gemm", 3.0, 90), kernel(4, "splitKreduce", 2.0, 95),
    operator(5, "aten::_scaled_dot_product_flash_attention", [[2, 32, 128, 64], [2, 8, 128, 64], [2, 8, 128, 64]], BF16), kernel(5, "flash_fwd", 50.0, 100),
    operator(6, "aten::_flash_attention_forward", [[4, 1, 32, 128], [4, 900, 8, 128], [4, 900, 8, 128]], BF16), kernel(6, "flash_fwd_splitkv", 40.0, 200),
    operator(7, "aten::mul", [[4, 4], [4, 4]], BF16), kernel(7, "elementwise", 5.0, 300),
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
]}


def varint(value):
    """Seven bits a byte, the lowest first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number, value):
    """A field of a message of Protocol Buffers: a number, or a text or message with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def chakra_node(number, name, parent, microseconds, dims, types, on_device):
    """A node as chakra_converter writes it: kind COMP_NODE, its parent, its time, its arguments and some attributes."""
    inputs = field(1, "[]") + field(2, str(dims)) + field(3, str(types))
    attributes = field(10, field(1, "rf_id") + field(9, number)) + field(10, field(1, "is_cpu_op") + field(27, int(not on_device)))
    parents = field(4, varint(parent)) if parent else b""
    return field(1, number) + field(2, name) + field(3, 4) + parents + field(7, microseconds) + field(8, inputs) + attributes


def chakra(nodes, metadata=field(1, "0.0.4")):
    return b"".join(varint(len(message)) + message for message in (metadata, *nodes))


def chakra_of(events):
    """The same calls and kernels as a profiler's trace has them."""
    nodes = []
    for event in events:
        if event["ph"] != "X":
            continue
        number = event["args"]["External id"]
        if event["cat"] == "kernel":
            nodes.append(chakra_node(1000 + len(nodes), event["name"], number, int(event["dur"]), [], [], True))
        else:
            types = [f"Tensor({kind})" for kind in event["args"]["Input type"]]
            nodes.append(chakra_node(number, event["name"], 0, 1, event["args"]["Input Dims"], types, False))
    return nodes


class Import(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-import-")
        cls.home = pathlib.Path(cls.scratch.name)
        (cls.home / "served.yaml").write_text(SPEC)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def write(self, name, value):
        file = self.home / name
        file.write_text(json.dumps(value) if not isinstance(value, str) else value)
        return file

    def test_a_measured_run_has_the_figures_of_the_file(self):
        files = [self.write(f"{i}.json", vllm_result(seed=i, rate=(2, 8)[i])) for i in (0, 1)]
        done = llmsweep("import", "vllm", self.home / "served.yaml", *files, "-o", self.home / "measured")
        self.assertEqual(done.returncode, 0, done.stderr)
        points = pd.read_parquet(self.home / "measured" / "points").set_index("index")
        for index in (0, 1):
            result = vllm_result(seed=index)
            row = points.loc[index]
            self.assertAlmostEqual(row.ttft_s * 1e3, result["mean_ttft_ms"])
            self.assertAlmostEqual(row.ttft_p50_s * 1e3, result["median_ttft_ms"])
            self.assertAlmostEqual(row.ttft_p99_s * 1e3, result["p99_ttft_ms"])
            tpots = [sum(gaps) / len(gaps) for gaps in result["itls"]]
            self.assertAlmostEqual(row.tpot_s, np.mean(tpots))
            self.assertAlmostEqual(row.output_tokens_per_s, result["output_throughput"])
            self.assertEqual((row.status, row.tier), ("ok", "measured"))
            self.assertTrue(np.isnan(row.kv_peak))
        requests = pd.read_parquet(self.home / "measured" / "requests").query("index == 1")
        self.assertEqual(list(requests.output_tokens), vllm_result(seed=1)["output_lens"])
        np.testing.assert_allclose(requests.first_token_s - requests.arrival_s, vllm_result(seed=1)["ttfts"])

    def test_it_compares_with_the_simulation_of_the_same_sweep(self):
        file = self.write("only.json", vllm_result(rate=8))
        self.assertEqual(llmsweep("import", "vllm", self.home / "served.yaml", file, "--points", 1, "-o", self.home / "one").returncode, 0)
        self.assertIn(llmsweep("run", self.home / "served.yaml", "-o", self.home / "simulated").returncode, (0,))
        done = llmsweep("compare", self.home / "one", self.home / "simulated", "--common", "--tolerance", "1000%")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertIn("ttft", llmsweep("compare", self.home / "one", self.home / "simulated", "--common").stdout)
        self.assertEqual(llmsweep("compare", self.home / "one", self.home / "one", "--common").returncode, 0)
        # A simulation never goes on in a measured folder.
        mixed = llmsweep("run", self.home / "served.yaml", "-o", self.home / "one")
        self.assertEqual(mixed.returncode, 2)
        self.assertIn("the folder holds measured points", mixed.stderr)
        # Nor does it take over what was measured.
        reused = llmsweep("run", self.home / "served.yaml", "-o", self.home / "reused", "--reuse", self.home / "one")
        self.assertEqual(reused.returncode, 2)
        self.assertIn("the folder holds measured points", reused.stderr)
        # What was measured once stays: another measurement of the point is for another folder.
        again = llmsweep("import", "vllm", self.home / "served.yaml", self.write("again.json", vllm_result(seed=5, rate="inf")), "--points", 1, "-o", self.home / "one")
        self.assertEqual(again.returncode, 2)
        self.assertIn("point 1 is there already", again.stderr)

    def test_a_file_of_another_load_is_refused(self):
        # As a pattern of names sorts them: rate16 before rate2.
        (self.home / "rates.yaml").write_text(SPEC.replace("8 req/s", "16 req/s"))
        files = [self.write(f"rate{rate}.json", vllm_result(rate=rate)) for rate in (16, 2)]
        done = llmsweep("import", "vllm", self.home / "rates.yaml", *files, "-o", self.home / "swapped")
        self.assertEqual(done.returncode, 2)
        self.assertTrue(done.stderr.startswith(f"{files[0]}: error: it was measured at 16 requests a second, which is not that of point 0\n"), done.stderr)
        self.assertFalse((self.home / "swapped").exists())
        done = llmsweep("import", "vllm", self.home / "rates.yaml", *files, "--points", "1,0", "-o", self.home / "swapped")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.home / "closed.yaml").write_text(SPEC.replace("[load.rate: [2 req/s, 8 req/s]]", "[load.clients: [4, 8]]").replace("load: {", "load: {arrivals: closed, "))
        for clients, code in ((8, 2), (4, 0)):
            file = self.write("closed.json", {**vllm_result(rate="inf"), "max_concurrency": clients})
            done = llmsweep("import", "vllm", self.home / "closed.yaml", file, "-o", self.home / "closed")
            self.assertEqual(done.returncode, code, done.stderr)

    def test_sums_alone_will_do(self):
        result = {name: value for name, value in vllm_result().items() if name not in ("ttfts", "itls", "input_lens", "output_lens")}
        done = llmsweep("import", "vllm", self.home / "served.yaml", self.write("sums.json", result), "-o", self.home / "sums")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--save-detailed", done.stderr)
        row = pd.read_parquet(self.home / "sums" / "points").iloc[0]
        self.assertAlmostEqual(row.ttft_s * 1e3, result["mean_ttft_ms"])

    def test_damaged_results_are_located_and_write_nothing(self):
        whole = json.dumps(vllm_result(), indent=1)
        short = vllm_result()
        short["itls"] = short["itls"][:-1]
        broken = vllm_result()
        broken["itls"][3] = ["x"]
        sums = {"completed": 5, "duration": 2, "mean_ttft_ms": 50}
        for text, words in ((json.dumps({**sums, "mean_ttft_ms": -50}), "'mean_ttft_ms' is below 0"), (json.dumps({**sums, "completed": 0}), "nothing was measured"),
                            (json.dumps(sums).replace("50", "1e400"), "cut.json: error: a number in it is larger"), (whole[:-40], "cut.json:"), ("[1, 2]", "this is not a result"), (json.dumps(short), "'itls' is not a list of 40"),
                            (json.dumps(broken), "'itls' of request 3"), ("\n\n{,}", "cut.json:3:2: error: this is not JSON")):
            file = self.write("cut.json", text)
            done = llmsweep("import", "vllm", self.home / "served.yaml", file, "-o", self.home / "nothing")
            self.assertEqual(done.returncode, 2, text[:20])
            self.assertIn(words, done.stderr)
            self.assertFalse((self.home / "nothing").exists())
        good = self.write("good.json", vllm_result())
        many = llmsweep("import", "vllm", self.home / "served.yaml", *[good] * 9, "-o", self.home / "nothing")
        self.assertEqual((many.returncode, many.stderr.split("\n")[0]), (2, "error: 9 results for 2 points"))
        for words in (("--points", "9"), ("--points", "0,1")):
            self.assertEqual(llmsweep("import", "vllm", self.home / "served.yaml", good, *words, "-o", self.home / "nothing").returncode, 2)
        self.assertEqual(llmsweep("import", "vllm", self.home / "served.yaml", good, good, "--points", "0,0", "-o", self.home / "nothing").returncode, 2)
        self.assertFalse((self.home / "nothing").exists())

    def test_a_profile_becomes_a_kernel_table(self):
        packed = self.home / "trace.json.gz"
        packed.write_bytes(gzip.compress(json.dumps(TRACE).encode()))
        for trace in (self.write("trace.json", TRACE), packed):
            done = llmsweep("import", "profile", trace, "-o", self.home / "table.csv")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("aten::mul", done.stderr)
            with open(self.home / "table.csv", newline="") as file:
                reader = csv.DictReader(file)
                self.assertEqual(reader.fieldnames, kernel_table.KERNEL_COLUMNS)
                rows = {(row["family"], row["m"]): row for row in reader}
            self.assertEqual(len(rows), 4)
            gemm = rows["gemm", "16"]
            self.assertEqual((gemm["n"], gemm["k"], gemm["dtype"], gemm["impl"]), ("1024", "4096", "bf16", "pytorch_profiler:cutlass::Kernel2"))
            self.assertAlmostEqual(float(gemm["seconds"]), 20e-6)  # the median of three calls
            self.assertAlmostEqual(float(rows["gemm", "8"]["seconds"]), 5e-6)  # both kernels of one call
            prompt, decode = rows["attn_prefill", ""], rows["attn_decode", ""]
            self.assertEqual([prompt[c] for c in ("batch", "query_len", "context_len", "q_heads", "kv_heads", "head_dim")], ["2", "128", "128", "32", "8", "64"])
            self.assertEqual([decode[c] for c in ("batch", "query_len", "context_len", "q_heads", "kv_heads", "head_dim")], ["4", "1", "900", "32", "8", "128"])

    def test_damaged_traces_are_told(self):
        no_shapes = {"traceEvents": [e for e in TRACE["traceEvents"] if e.get("cat") != "cpu_op"]}
        no_length = {"traceEvents": [{**e} for e in TRACE["traceEvents"]]}
        del no_length["traceEvents"][3]["dur"]
        for value, words in ((no_shapes, "record_shapes=True"), ({"traceEvents": []}, "no kernels"), ({"a": 1}, "traceEvents"), (no_length, "event 3 is damaged"),
                             ("{", "ends in the middle"), ({"traceEvents": [1]}, "event 0 is damaged")):
            done = llmsweep("import", "profile", self.write("bad.json", value), "-o", self.home / "bad.csv")
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)
            self.assertFalse((self.home / "bad.csv").exists())
        self.assertEqual(llmsweep("import", "profile", self.home / "nowhere.json").returncode, 2)
        self.assertEqual(llmsweep("import", "profile", self.write("ok.json", TRACE), "-o", self.home / "x.txt").returncode, 2)

    def table(self, kind, trace):
        done = llmsweep("import", kind, trace, "-o", self.home / "table.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.home / "table.csv", newline="") as file:
            return list(csv.DictReader(file)), done

    def test_a_chakra_trace_gives_the_rows_of_the_profile_it_was_made_of(self):
        profiled, _ = self.table("profile", self.write("trace.json", TRACE))
        trace = chakra(chakra_of(TRACE["traceEvents"]))
        for name, content in (("rank0.et", trace), ("rank0.et.gz", gzip.compress(trace))):
            (self.home / name).write_bytes(content)
            rows, done = self.table("chakra", self.home / name)
            self.assertIn("aten::mul", done.stderr)
            for row, expected in zip(rows, profiled, strict=True):
                self.assertEqual(row["impl"], expected["impl"].replace("pytorch_profiler", "chakra"))
                self.assertEqual({**row, "impl": ""}, {**expected, "impl": ""})

    def test_calls_shorter_than_the_clock_have_no_row(self):
        nodes = chakra_of(TRACE["traceEvents"])
        nodes += [chakra_node(50, "aten::mm", 0, 1, [[2, 3], [3, 4]], ["Tensor(float)"] * 2, False), chakra_node(51, "tiny", 50, 0, [], [], True)]
        (self.home / "short.et").write_bytes(chakra(nodes))
        rows, done = self.table("chakra", self.home / "short.et")
        self.assertNotIn("fp32", [row["dtype"] for row in rows])
        self.assertIn("no time by the trace's clock: 1", done.stderr)

    def test_damaged_chakra_traces_are_told(self):
        nodes = chakra_of(TRACE["traceEvents"])
        whole = chakra(nodes)
        host_only = chakra([chakra_node(1, "aten::mm", 0, 5, [[1, 2], [2, 3]], ["Tensor(float)"] * 2, False)])
        no_shapes = chakra([chakra_node(1, "aten::mm", 0, 5, "?", "?", False), chakra_node(2, "gemm", 1, 5, [], [], True)])
        last = len(whole) - len(nodes[-1]) - 1
        for content, words in ((whole[:-3], f"message {len(nodes)} at byte {last} of {len(whole) - 3}"), (b"\xff" * 40, "message 0 at byte 0"), (b"", "no kernels"),
                               (host_only, "chakra_trace_link"), (no_shapes, "whose shape is known"), (json.dumps(TRACE).encode(), "no Chakra execution trace")):
            (self.home / "bad.et").write_bytes(content)
            done = llmsweep("import", "chakra", self.home / "bad.et", "-o", self.home / "bad.csv")
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(words, done.stderr)
            self.assertFalse((self.home / "bad.csv").exists())

    def test_the_test_writes_messages_as_their_library_does(self):
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        except ImportError:
            self.skipTest("there is no protobuf: tools/test --with cluster brings it")
        kinds = descriptor_pb2.FieldDescriptorProto
        file = descriptor_pb2.FileDescriptorProto(name="node.proto", package="p", syntax="proto3")
        inner = file.message_type.add(name="Inputs")
        outer = file.message_type.add(name="Node")
        for message, name, number, kind, many in ((inner, "values", 1, kinds.TYPE_STRING, False), (inner, "shapes", 2, kinds.TYPE_STRING, False), (inner, "types", 3, kinds.TYPE_STRING, False),
                                                  (outer, "id", 1, kinds.TYPE_UINT64, False), (outer, "name", 2, kinds.TYPE_STRING, False), (outer, "type", 3, kinds.TYPE_UINT64, False),
                                                  (outer, "ctrl_deps", 4, kinds.TYPE_UINT64, True), (outer, "duration_micros", 7, kinds.TYPE_UINT64, False)):
            message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL)
        outer.field.add(name="inputs", number=8, type=kinds.TYPE_MESSAGE, type_name=".p.Inputs", label=kinds.LABEL_OPTIONAL)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        make = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Node"))
        node = make(id=300, name="gemm", type=4, ctrl_deps=[70000], duration_micros=12, inputs={"values": "[]", "shapes": "[[1, 2]]", "types": "['Int']"})
        ours = chakra_node(300, "gemm", 70000, 12, [[1, 2]], ["Int"], True)
        self.assertTrue(ours.startswith(node.SerializeToString()))


IMPOSSIBLE = [
    ("aten::mm", [[16, -5], [-5, 1024]], "input 0 has a dimension of -5"),
    ("aten::mm", [[16, 4096], [4095, 1024]], "rows of 4096 values cannot be multiplied by columns of 4095"),
    ("aten::addmm", [[64], [8, 32], [33, 64]], "rows of 32 values cannot be multiplied by columns of 33"),
    ("aten::mm", [[9_000_000_000_000, 4096], [4096, 1024]], "input 0 has 3.69e+16 values"),
    ("aten::_scaled_dot_product_flash_attention", [[2, 32, 128, 64], [3, 8, 128, 64], [3, 8, 128, 64]], "queries have batch 2 and keys 3"),
    ("aten::_scaled_dot_product_flash_attention", [[2, 32, 128, 64], [2, 8, 128, 65], [2, 8, 128, 65]], "queries have width 64 and keys 65"),
    ("aten::_flash_attention_forward", [[4, 1, 32, 128], [4, 900, 5, 128], [4, 900, 5, 128]], "32 heads of queries cannot share 5 of keys"),
]


class ImpossibleShapes(unittest.TestCase):
    def imported(self, events):
        with tempfile.TemporaryDirectory(prefix="llmsweep-import-") as scratch:
            trace, table = pathlib.Path(scratch) / "trace.json", pathlib.Path(scratch) / "kernels.csv"
            trace.write_text(json.dumps({"traceEvents": [*TRACE["traceEvents"][:4], *events]}))
            done = llmsweep("import", "profile", trace, "-o", table)
            return done, table.read_text() if table.exists() else "", trace

    def test_what_cannot_have_run_is_refused_with_its_event(self):
        for name, dims, why in IMPOSSIBLE:
            done, table, trace = self.imported([operator(9, name, dims, BF16), kernel(9, "k", 5.0, 900)])
            self.assertEqual(done.returncode, 2, (name, dims))
            self.assertEqual(done.stderr, f"{trace}: error: event 4 is damaged: {name} cannot have run: {why}\n")
            self.assertEqual(table, "")

    def test_an_operator_on_nothing_is_left_out(self):
        for name, dims in (("aten::mm", [[0, 4096], [4096, 1024]]), ("aten::_flash_attention_forward", [[4, 1, 32, 128], [4, 0, 8, 128], [4, 0, 8, 128]])):
            done, table, _ = self.imported([operator(9, name, dims, BF16), kernel(9, "k", 5.0, 900)])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(table.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
