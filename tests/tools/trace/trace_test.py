"""llmsweep trace: the rules of the trace-event format, and a point simulated alone equal to the sweep's row, bit for bit."""

import collections
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

BINARY = os.environ["LLMSWEEP_BINARY"]
SERVED = """
base: {task: serve, model: llama-3.1-8b, device: h100-sxm, load: {from: chat, requests: 300}, output: {requests: true}}
axes: [load.rate: [2 req/s, 20 req/s], parallel.dp: [1, 2]]
"""
STEP = """
base: {task: step, model: llama-3.1-8b, device: h100-sxm, step: {phase: decode, batch: 8}}
axes: [parallel.tp: [1, 2]]
"""
TRAIN = """
base: {task: train, model: llama-3.1-8b, device: h100-sxm, parallel: {tp: 8}}
axes: [train.micro_batch: [1, 2]]
"""
PIPELINE = """
base: {task: train, model: llama-2-70b, device: h100-sxm, cluster: dgx-h100-4-nodes, parallel: {tp: 8, pp: 4},
       train: {sequence: 2048, micro_batch: 1, global_batch: 8, recompute: full}}
axes: [train.schedule: [gpipe, 1f1b, interleaved, zero_bubble]]
derive: {train.virtual_stages: "train.schedule == 'interleaved' ? 2 : 1"}
"""
# Samples are made, then learnt from; or both at once, on devices of their own.
SAMPLED = """
base: {{task: train, model: llama-3.2-1b, device: h100-sxm, cluster: dgx-h100, parallel: {{dp: 4}},
       train: {{sequence: 2048, micro_batch: 1, global_batch: 16,
                rollout: {{prompts: 32, samples: 4, scoring_passes: 1, colocated: {alone}, asynchronous: {beside}, lengths: {{prompt: 200, output: 300}}}}}},
       rollout: {{serving: {{replicas: 4}}}}}}
"""
# The same load with its rows written by the sweep, and without.
SILENT = SERVED.replace(", output: {requests: true}", "")
LOUD = SERVED.replace("output: {requests: true}", "output: {requests: true, timeline: 2 s}")

# What Perfetto's own processor makes of a trace.
PERFETTO = """
import json, sys
from perfetto.trace_processor import TraceProcessor
with TraceProcessor(trace=sys.argv[1]) as processor:
    ask = lambda query: next(iter(processor.query(query))).n
    print(json.dumps({"slices": ask("select count(*) as n from slice"), "counters": ask("select count(*) as n from counter"),
                      "errors": ask("select ifnull(sum(value), 0) as n from stats where severity = 'error'")}))
"""


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-trace-")
        cls.home = pathlib.Path(cls.scratch.name)
        for name, text in (("served", SERVED), ("step", STEP), ("train", TRAIN), ("pipeline", PIPELINE), ("silent", SILENT), ("loud", LOUD)):
            (cls.home / f"{name}.yaml").write_text(text)
            done = llmsweep("run", cls.home / f"{name}.yaml", "-o", cls.home / name)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def trace(self, name, index, *options):
        file = self.home / f"{name}-{index}.json"
        done = llmsweep("trace", self.home / f"{name}.yaml", "--point", index, "-o", file, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(file.read_text())

    def check_rules(self, trace):
        events = trace["traceEvents"]
        times = [event["ts"] for event in events]
        self.assertEqual(times, sorted(times))
        self.assertTrue(all(time >= 0 for time in times))
        open_slices = collections.defaultdict(list)
        for event in events:
            self.assertIn(event["ph"], {"M", "X", "C", "s", "f"})
            if event["ph"] == "C":
                self.assertTrue(all(isinstance(v, (int, float)) for v in event["args"].values()))
            if event["ph"] != "X":
                continue
            # Nanoseconds are whole numbers: no rounding in what follows.
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            self.assertGreaterEqual(event["dur"], 0)
            stack = open_slices[event["pid"], event["tid"]]
            while stack and stack[-1] <= begin:
                stack.pop()
            self.assertTrue(not stack or end <= stack[-1], event)  # within, or apart
            stack.append(end)
        self.check_flows(events)

    def check_flows(self, events):
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertEqual(set(starts), set(ends))
        slices = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        for number, start in starts.items():
            self.assertLessEqual(start["ts"], ends[number]["ts"])
            for flow in (start, ends[number]):
                self.assertTrue(any(a - 1e-6 <= flow["ts"] <= b + 1e-6 for a, b in slices[flow["pid"], flow["tid"]]), flow)

    def test_every_kind_of_trace_follows_the_rules_of_the_format(self):
        for name in ("served", "step", "train", "pipeline"):
            for index in (0, 1):
                self.check_rules(self.trace(name, index))

    def test_a_point_alone_is_the_row_of_the_sweep_bit_for_bit(self):
        for name in ("served", "step", "train"):
            points = pd.read_parquet(self.home / name / "points").set_index("index")
            for index, row in points.iterrows():
                trace = self.trace(name, index)
                self.assertEqual(trace["otherData"]["key"], row["key"])
                figures = trace["otherData"]["figures"]
                self.assertGreater(len(figures), 10)
                for figure, value in figures.items():
                    self.assertEqual(value, row[figure], (name, index, figure))

    def test_requests_are_those_of_the_requests_table(self):
        rows = pd.read_parquet(self.home / "served" / "requests").query("index == 3")
        trace = self.trace("served", 3)
        slices = {e["name"]: e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "request"}
        self.assertEqual(len(slices), len(rows))
        for row in rows.itertuples():
            event = slices[f"request {row.request}"]
            self.assertAlmostEqual(event["ts"], row.scheduled_s * 1e6, delta=1e-3)
            self.assertAlmostEqual(event["ts"] + event["dur"], row.finish_s * 1e6, delta=2e-3)
        replicas = {e["pid"] for e in slices.values()}
        names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"}
        self.assertEqual({names[pid] for pid in replicas}, {f"main replica {i}" for i in set(rows.replica)})
        counters = {e["name"] for e in trace["traceEvents"] if e["ph"] == "C"}
        self.assertEqual(counters, {"requests", "batch", "KV cache", "output", "power of one device"})

    def test_steps_fill_the_busy_time_of_a_replica(self):
        trace = self.trace("served", 0, "--steps", 1000000, "--kernels", 50)
        row = pd.read_parquet(self.home / "served" / "points").set_index("index").loc[0]
        steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "step"]
        self.assertEqual(len(steps), row.steps)
        busy = sum(e["dur"] for e in steps) / 1e6
        self.assertAlmostEqual(busy / (row.utilization * row.makespan_s), 1, delta=1e-6)
        # Every request's prompt is read in some step, and every token but the first of each is decoded in one.
        rows = pd.read_parquet(self.home / "served" / "requests").query("index == 0")
        self.assertEqual(sum(e["args"]["prompt_tokens"] for e in steps), (rows.prompt_tokens - rows.cached_tokens).sum())
        self.assertEqual(sum(e["args"]["decodes"] for e in steps), (rows.output_tokens - 1).sum())

    def test_kernels_fill_the_steps_they_are_in(self):
        trace = self.trace("served", 1, "--kernels", 20)
        events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] < 1000 and e["pid"] >= 10]
        steps = [e for e in events if e["cat"] == "step"]
        kernels = [e for e in events if e["cat"] != "step"]
        for step in steps[:20]:
            inside = [e for e in kernels if (e["pid"], e["tid"]) == (step["pid"], step["tid"])
                      and step["ts"] <= e["ts"] and e["ts"] + e["dur"] <= step["ts"] + step["dur"] + 1e-9]
            self.assertGreater(len(inside), 5)
            self.assertAlmostEqual(sum(e["dur"] for e in inside), step["dur"], delta=1e-2)
        self.assertFalse(any(e["ts"] >= steps[20]["ts"] for e in kernels))

    def test_power_lies_between_rest_and_the_boards_limit(self):
        row = pd.read_parquet(self.home / "served" / "points").set_index("index").loc[1]
        watts = [e["args"]["W"] for e in self.trace("served", 1)["traceEvents"] if e["ph"] == "C" and e["name"] == "power of one device"]
        self.assertGreater(len(set(watts)), 1)
        self.assertGreaterEqual(min(watts), row["device.idle_power"] * (1 - 1e-9))
        self.assertLessEqual(max(watts), row["device.power_limit"] * 1.001)

    def test_passes_are_the_schedule_of_the_pipeline(self):
        points = pd.read_parquet(self.home / "pipeline" / "points").set_index("index")
        for index, row in points.iterrows():
            events = [e for e in self.trace("pipeline", index)["traceEvents"] if e["ph"] == "X" and e["pid"] >= 10]
            chunks = 2 if row["train.schedule"] == "interleaved" else 1
            for kind in ("forward", "backward"):
                passes = [e for e in events if e["cat"] == kind]
                self.assertEqual(len(passes), 4 * 8 * chunks)
                # A micro-batch goes through the chunks in order.
                by_batch = collections.defaultdict(list)
                for e in sorted(passes, key=lambda e: e["ts"]):
                    by_batch[e["args"]["micro_batch"]].append(e["args"]["chunk"])
                order = list(range(4 * chunks))
                self.assertTrue(all(seen == (order if kind == "forward" else order[::-1]) for seen in by_batch.values()))
            self.assertEqual(any(e["cat"] == "weights" for e in events), row["train.schedule"] == "zero_bubble")
            end = max(e["ts"] + e["dur"] for e in events) / 1e6
            self.assertAlmostEqual(end / row.iteration_time_s, 1, delta=1e-6)

    def test_an_iteration_with_samples_is_made_of_its_phases(self):
        for alone, beside in (("true", "false"), ("false", "true")):
            (self.home / "sampled.yaml").write_text(SAMPLED.format(alone=alone, beside=beside))
            events = self.trace("sampled", 0)
            self.check_rules(events)
            done = llmsweep("run", self.home / "sampled.yaml", "-o", self.home / f"sampled-{beside}")
            self.assertEqual(done.returncode, 0, done.stderr)
            row = pd.read_parquet(self.home / f"sampled-{beside}" / "points").iloc[0]
            slices = {e["name"]: e for e in events["traceEvents"] if e["ph"] == "X"}
            for name, seconds in (("rollout", row.rollout_time_s), ("scoring", row.scoring_time_s), ("update", row.update_time_s)):
                self.assertAlmostEqual(slices[name]["dur"] * 1e-6, seconds, delta=1e-6 * seconds + 1e-6)
            # Who makes samples and who trains on them have tracks of their own, both from the beginning.
            kernels = [e for e in events["traceEvents"] if e["ph"] == "X" and e["cat"] == "phase"]
            begins = collections.defaultdict(lambda: math.inf)
            for event in kernels:
                begins[event["tid"]] = min(begins[event["tid"]], event["ts"])
            self.assertEqual(list(begins.values()), [0, 0])
            if "exchange between replicas" in slices:
                self.assertLessEqual(slices["exchange between replicas"]["dur"] * 1e-6, row.replica_exposed_time_s * 1.001 + 1e-6)
            ends = [e["ts"] + e["dur"] for e in slices.values() if e["pid"] == slices["rollout"]["pid"]]
            self.assertLessEqual(max(ends) * 1e-6, row.iteration_time_s * (1 + 1e-6))

    def test_rows_after_the_fact_are_those_the_sweep_would_have_written(self):
        for index in (0, 3):
            tables = self.home / f"tables-{index}"
            done = llmsweep("trace", self.home / "silent", "--point", index, "-o", self.home / "t.json", "--tables", tables, "--every", 2)
            self.assertEqual(done.returncode, 0, done.stderr)
            key = pd.read_parquet(self.home / "silent" / "points").set_index("index").key[index]
            for table in ("requests", "timeline"):
                later = pd.read_parquet(tables / f"{table}.parquet")
                swept = pd.read_parquet(self.home / "loud" / table).query(f"index == {index}").reset_index(drop=True)
                self.assertEqual(set(later.key), {key})
                pd.testing.assert_frame_equal(later.drop(columns="key"), swept.drop(columns="key"), check_exact=True)

    def test_a_run_that_another_program_made_is_said_to_be_one(self):
        folder = self.home / "other"
        shutil.copytree(self.home / "silent", folder)
        part = next((folder / "points").glob("*.parquet"))
        table = pq.read_table(part)
        place = table.column_names.index("ttft_p99_s")
        pq.write_table(table.set_column(place, table.schema.field(place), pc.multiply(table["ttft_p99_s"], 1.5)), part)
        # Its manifest is of the first format, whose lines had no checksums yet.
        manifest = folder / "manifest-1of1.jsonl"
        header, first = (json.loads(line) for line in manifest.read_text().splitlines())
        header["llmsweep_manifest"] = 1
        first["points"]["bytes"] = part.stat().st_size
        manifest.write_text("".join(json.dumps({name: value for name, value in line.items() if name != "line_xxh3"}) + "\n" for line in (header, first)))
        done = llmsweep("trace", folder, "--point", 1, "-o", self.home / "never.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ttft_p99_s", done.stderr)
        self.assertFalse((self.home / "never.json").exists())
        self.assertEqual(llmsweep("trace", self.home, "--point", 0).returncode, 2)

    def test_perfettos_own_processor_reads_it(self):
        file = self.home / "processed.json"
        self.assertEqual(llmsweep("trace", self.home / "served.yaml", "--point", 1, "-o", file).returncode, 0)
        try:
            # In a process of its own: it fetches its program first, which may take for ever where there is no network.
            done = subprocess.run([sys.executable, "-c", PERFETTO, file], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            self.skipTest("Perfetto's trace processor could not be fetched within a minute")
        if done.returncode != 0:
            self.skipTest("there is no trace processor of Perfetto: " + (done.stderr.strip().splitlines() or ["?"])[-1][:200])
        told = json.loads(done.stdout)
        events = json.loads(file.read_text())["traceEvents"]
        self.assertEqual(told["errors"], 0)
        self.assertEqual(told["slices"], sum(event["ph"] == "X" for event in events))
        self.assertGreater(told["counters"], 0)

    def test_kernels_fill_the_step(self):
        row = pd.read_parquet(self.home / "step" / "points").set_index("index").loc[0]
        events = [e for e in self.trace("step", 0)["traceEvents"] if e["ph"] == "X"]
        phases = [e for e in events if e["cat"] == "phase"]
        self.assertAlmostEqual(sum(e["dur"] for e in phases), row.step_time_s * 1e6, delta=0.01)
        kernels = [e for e in events if e["cat"] != "phase"]
        self.assertAlmostEqual(sum(e["dur"] for e in kernels), sum(e["dur"] for e in phases), delta=0.01)

    def test_a_trace_can_be_drawn(self):
        self.trace("pipeline", 1)
        source = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
        done = subprocess.run([sys.executable, source / "tools" / "trace" / "picture.py", self.home / "pipeline-1.json", self.home / "drawn.png"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater((self.home / "drawn.png").stat().st_size, 2000)

    def test_fewer_requests_where_asked_for(self):
        trace = self.trace("served", 0, "--requests", 10)
        self.assertEqual(sum(e["ph"] == "X" and e["cat"] == "request" for e in trace["traceEvents"]), 10)

    def test_mistakes_are_told(self):
        before = sorted(self.home.rglob("*"))
        none = llmsweep("trace", self.home / "step.yaml", "--point", 99, "-o", self.home / "none.json")
        self.assertEqual((none.returncode, none.stderr), (2, "error: --point 99: the sweep has points 0 to 1\n"))
        self.assertEqual(sorted(self.home.rglob("*")), before)

    def test_explain_against_splits_the_difference(self):
        done = llmsweep("explain", self.home / "step.yaml", "--point", 0, "--against", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.split("where the time goes\n")[1].splitlines()
        shares = [float(line.split()[-1]) for line in lines[1:]]
        points = pd.read_parquet(self.home / "step" / "points").set_index("index")
        change = 100 * (points.step_time_s[1] / points.step_time_s[0] - 1)
        self.assertTrue(math.isclose(shares[-1], change, rel_tol=1e-3))
        self.assertAlmostEqual(sum(shares[:-1]), change, delta=0.05)
        same = llmsweep("explain", self.home / "step.yaml", "--point", 0, "--against", 7)
        self.assertEqual(same.returncode, 2)


if __name__ == "__main__":
    unittest.main()
