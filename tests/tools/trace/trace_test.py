"""llmsweep trace: the rules of the trace-event format, and a point simulated alone equal to the sweep's row, bit for bit."""

import collections
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import pandas as pd

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


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-trace-")
        cls.home = pathlib.Path(cls.scratch.name)
        for name, text in (("served", SERVED), ("step", STEP), ("train", TRAIN)):
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
        for name in ("served", "step", "train"):
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
        self.assertEqual(counters, {"requests", "batch", "KV cache", "output"})

    def test_kernels_fill_the_step(self):
        row = pd.read_parquet(self.home / "step" / "points").set_index("index").loc[0]
        events = [e for e in self.trace("step", 0)["traceEvents"] if e["ph"] == "X"]
        phases = [e for e in events if e["cat"] == "phase"]
        self.assertAlmostEqual(sum(e["dur"] for e in phases), row.step_time_s * 1e6, delta=0.01)
        kernels = [e for e in events if e["cat"] != "phase"]
        self.assertAlmostEqual(sum(e["dur"] for e in kernels), sum(e["dur"] for e in phases), delta=0.01)

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
