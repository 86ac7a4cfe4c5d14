"""llmsweep report: the page holds the run's own figures, needs nothing from outside, and takes labels for text."""

import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np
import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
CHARTS = SOURCE / ".deps" / "charts" / "echarts.min.js"
HOSTILE = "</script><script>stolen=1</script><img src=x onerror=stolen=1>"
SPEC = f"""
base: {{task: step, device: h100-sxm, model: llama-3.1-8b, step: {{phase: decode}}}}
axes:
  - device: [h100-sxm, {{value: h200-sxm, label: "{HOSTILE}"}}]
  - parallel.tp: [1, 2, 3]
  - step.batch: [1, 16, 256]
"""
SERVED = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  load: {requests: 300, lengths: {distribution: lognormal, prompt: 300, output: 60}}
  serving.replicas: 2
  output: {requests: true, timeline: 1 s}
axes:
  - load.rate: [2 req/s, 20 req/s]
"""
TYPES = {"f32": np.float32, "f64": np.float64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32}


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Page:
    """A page as its scripts read it."""

    def __init__(self, file):
        self.html = file.read_text(encoding="utf-8")
        self.data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', self.html, re.S)[1])
        blobs = re.findall(r'<script type="application/octet-stream" id="blob-(\d+)">(.*?)</script>', self.html, re.S)
        self.blobs = {int(number): text for number, text in blobs}
        self.columns = {column["name"]: column for column in self.data["points"]["columns"]}

    def blob(self, number):
        return np.frombuffer(zlib.decompress(base64.b64decode(self.blobs[number])), TYPES[self.data["types"][number]])

    def values(self, name):
        column = self.columns[name]
        values = self.blob(column["blob"])
        if "names" not in column:
            return values
        return [column["names"][code] if code < len(column["names"]) else None for code in values]


@unittest.skipUnless(CHARTS.exists(), f"there is no chart library in {CHARTS}: tools/dev/charts.sh fetches it")
class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-report-")
        cls.home = pathlib.Path(cls.scratch.name)
        for name, spec in (("steps", SPEC), ("served", SERVED)):
            (cls.home / f"{name}.yaml").write_text(spec)
            done = llmsweep("run", cls.home / f"{name}.yaml", "-o", cls.home / name)
            assert done.returncode == 0, done.stderr
        cls.points = pd.read_parquet(cls.home / "steps" / "points").sort_values("index")
        cls.page = cls.made("steps")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def made(cls, *runs, options=()):
        file = cls.home / "page.html"
        done = llmsweep("report", *(cls.home / run for run in runs), "-o", file, *options)
        assert done.returncode == 0, done.stderr
        return Page(file)

    def test_figures_are_the_runs(self):
        metrics = [column for column in self.page.columns.values() if column["role"] == "metric"]
        self.assertGreater(len(metrics), 10)
        for column in metrics:
            np.testing.assert_array_equal(self.page.values(column["name"]), self.points[column["name"]].astype(np.float32), column["name"])
        facts = {fact["name"]: fact["value"] for fact in self.page.data["points"]["facts"]}
        for name, value in facts.items():
            self.assertEqual(set(self.points[name].dropna()), {value}, name)
        # Every figure that the run has is a column or a fact.
        have = {name for name in self.points.columns[list(self.points.columns).index("step_time_s"):-1] if self.points[name].notna().any()}
        self.assertEqual(have, facts.keys() | {column["name"] for column in metrics})

    def test_the_figures_shown_first_are_those_of_the_question(self):
        step = "task: step, model: llama-3.1-8b"
        images = "task: denoise, model: dit-xl-2"
        train = "task: train, model: llama-3.2-1b"
        serve = "task: serve, model: llama-3.1-8b, load: {requests: 40, lengths: {distribution: fixed, prompt: 300, output: 60}"
        device_rate = "output_per_device_tokens_per_s"
        cases = (("step", step, "step.batch: [1, 2, 4]", ("step_time_s", "per_device_tokens_per_s")),
                 ("images", images, "denoise.batch: [1, 2, 4]", ("image_latency_s", "images_per_s")),
                 # More devices are dearer and faster; on one device the rest of the question is what fits.
                 ("train", train, "parallel.dp: [1, 2, 4]", ("rent_usd_per_hour", "iteration_time_s")),
                 ("one_device", train, "train.micro_batch: [1, 2, 4]", ("peak_memory_bytes", "tokens_per_s_per_device")),
                 ("capacity", f"{serve}}}, capacity: {{slo: {{ttft_p99: 1 s}}}}", "parallel.tp: [1, 2]", ("capacity_req_per_s", "price_usd_per_mtok")),
                 ("open", f"{serve}}}", "load.rate: [2 req/s, 20 req/s]", (device_rate, "ttft_p99_s")),
                 ("limited", f"{serve}}}, slo: {{tpot_p95: 50 ms}}", "load.rate: [2 req/s, 20 req/s]", (device_rate, "tpot_p95_s")),
                 ("closed", f"{serve}, arrivals: closed}}", "load.clients: [1, 4]", ("output_per_user_tokens_per_s", device_rate)))
        for name, base, axis, (x, y) in cases:
            (self.home / f"{name}.yaml").write_text(f"base: {{device: h200-sxm, {base}}}\naxes: [{axis}]\n")
            done = llmsweep("run", self.home / f"{name}.yaml", "-o", self.home / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.made(name).data["points"]["first"], {"x": x, "y": y}, name)

    def test_labels_are_words_of_the_columns_own_descriptions(self):
        page = self.made("served")
        points = page.data["points"]
        figures = [column for column in points["columns"] + points["facts"] if column["role"] == "metric"]
        for figure in figures:
            words = re.sub(r" \(.*?\)", "", figure["description"])
            parts = figure["label"].removesuffix(f" ({figure['name']})").split(", ")
            self.assertTrue(figure["label"] == figure["name"] or all(part in words for part in parts), figure)
        self.assertEqual(len({figure["label"] for figure in figures}), len(figures))
        self.assertLess(sum(figure["label"] == figure["name"] for figure in figures), 3)
        labels = {figure["name"]: (figure["label"], figure["unit"], figure["group"]) for figure in figures}
        self.assertEqual(labels["ttft_p99_s"], ("time to first token, p99", "s", "serving"))
        self.assertEqual(labels["memory_used_bytes"], ("all memory in use on the fullest device", "B", "memory"))

    def test_what_a_figure_spans_is_that_of_working_points(self):
        (self.home / "tight.yaml").write_text("""
base: {task: step, device: h100-sxm, model: llama-3.1-8b, step: {phase: decode, context: 4096}}
axes: [step.batch: [1, 8, 64, 4096]]
""")
        self.assertEqual(llmsweep("run", self.home / "tight.yaml", "-o", self.home / "tight").returncode, 0)
        points = pd.read_parquet(self.home / "tight" / "points")
        works = points[points.status == "ok"]
        self.assertGreater(points.memory_used_bytes.max(), works.memory_used_bytes.max())
        for column in self.made("tight").columns.values():
            if column["role"] == "metric":
                self.assertEqual((column["least"], column["most"]), (works[column["name"]].min(), works[column["name"]].max()), column["name"])

    def watched(self, run):
        """A watch of a run of which half is done, once it has written its first page."""
        self.assertEqual(llmsweep("run", self.home / "steps.yaml", "-o", self.home / run, "--shard", "1/2").returncode, 0)
        page = self.home / f"{run}.html"
        watch = subprocess.Popen([BINARY, "report", self.home / run, "--watch", "-o", page], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.kill)
        self.assertIn("follows the run", watch.stdout.readline())
        self.assertEqual(Page(page).data["going_on"], {"done": 9, "positions": 18})
        return watch, page

    def test_a_watch_ends_with_the_run(self):
        watch, page = self.watched("going")
        self.assertEqual(llmsweep("run", self.home / "steps.yaml", "-o", self.home / "going", "--shard", "2/2").returncode, 0)
        self.assertEqual(watch.wait(timeout=60), 0)
        whole = Page(page)
        self.assertEqual((whole.data["points"]["rows"], whole.data.get("going_on")), (18, None))

    def test_a_watch_that_is_stopped_leaves_a_page_that_rests(self):
        watch, page = self.watched("stopped")
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(timeout=60), 0)
        whole = Page(page)
        self.assertEqual((whole.data["points"]["rows"], whole.data.get("going_on")), (9, None))
        # Of a run that is done there is nothing to watch: its page is written once.
        done = llmsweep("report", self.home / "steps", "--watch", "-o", page)
        self.assertEqual((done.returncode, Page(page).html == self.page.html), (0, True))
        self.assertEqual(llmsweep("report", self.home / "nowhere", "--watch", "-o", page).returncode, 2)

    def test_what_a_sample_draws_is_an_axis(self):
        (self.home / "sampled.yaml").write_text("""
base: {task: step, device: h100-sxm, model: llama-3.1-8b, step: {phase: decode}}
axes: [sample: {random: 30, of: {device.memory_bandwidth: [2 TB/s, 8 TB/s], step.batch: [1, 64]}}]
""")
        done = llmsweep("run", self.home / "sampled.yaml", "-o", self.home / "sampled")
        self.assertEqual(done.returncode, 0, done.stderr)
        points = pd.read_parquet(self.home / "sampled" / "points").sort_values("index")
        page = self.made("sampled")
        for name in ("device.memory_bandwidth", "step.batch"):
            axis = page.columns[f"axis.{name}"]
            self.assertEqual((axis["role"], axis["label"], axis["sampled"]), ("axis", name, True))
            np.testing.assert_array_equal(page.blob(axis["numbers"]), points[name].astype(np.float32))
            np.testing.assert_allclose([float(label) for label in page.values(f"axis.{name}")], points[name], rtol=1e-5)
        # The roofline's own bandwidth is there beside the axis of that name.
        np.testing.assert_array_equal(page.values("device.memory_bandwidth"), points["device.memory_bandwidth"].astype(np.float32))

    def test_axes_and_results_are_the_runs(self):
        for name in ("axis.device", "axis.parallel.tp", "axis.step.batch", "status", "reason", "tier"):
            expected = [None if pd.isna(text) else text for text in self.points[name]]
            self.assertEqual(self.page.values(name), expected)
        np.testing.assert_array_equal(self.page.blob(self.page.columns["axis.step.batch"]["numbers"]), self.points["step.batch"])
        self.assertEqual(list(self.page.values("index")), list(self.points["index"]))

    def test_families_add_up_to_the_kernels_table(self):
        kernels = pd.read_parquet(self.home / "steps" / "kernels")
        sums = kernels.groupby(["family", "index"]).seconds.sum()
        for family in self.page.data["kernels"]["families"]:
            expected = sums[family["name"]].reindex(self.points["index"]).fillna(0)
            np.testing.assert_allclose(self.page.blob(family["blob"]), expected, rtol=1e-6)
        rows = self.page.data["kernels"]["rows"]
        self.assertEqual(rows["rows"], len(kernels))
        np.testing.assert_allclose(self.page.blob(rows["seconds"]).sum(), kernels.seconds.sum(), rtol=1e-5)

    def test_latencies_are_the_requests(self):
        page = self.made("served")
        requests = pd.read_parquet(self.home / "served" / "requests")
        requests = requests[requests.measured & (requests.end == "finished")]
        index = page.values("index")
        shape = len(page.data["latency"]["names"]), page.data["latency"]["quantiles"]
        curves = page.blob(page.data["latency"]["curves"]).reshape(-1, *shape)
        points = page.blob(page.data["latency"]["point"])
        self.assertEqual(len(points), 2)
        for point, curve in zip(points, curves):
            mine = requests[requests["index"] == index[point]]
            expected = np.quantile(mine.first_token_s - mine.arrival_s, np.linspace(0, 1, shape[1]))
            np.testing.assert_allclose(curve[0], expected, rtol=1e-5)

    def test_a_timeline_is_all_replicas_together(self):
        page = self.made("served")
        rows = pd.read_parquet(self.home / "served" / "timeline")
        timeline = page.data["timeline"]
        begin = 0
        for point, end in zip(page.blob(timeline["point"]), page.blob(timeline["ends"])):
            mine = rows[rows["index"] == page.values("index")[point]].groupby("time_s")
            expected = [mine.running.sum(), mine.waiting.sum(), mine.kv_use.mean(), mine.output_tokens_per_s.sum()]
            self.assertEqual(mine.ngroups, end - begin)  # short enough to be kept whole
            for curve, values in zip(timeline["curves"], expected):
                np.testing.assert_allclose(page.blob(curve["blob"])[begin:end], values, rtol=1e-5, err_msg=curve["title"])
            begin = end

    def test_nothing_comes_from_outside(self):
        page = self.page.html.replace(CHARTS.read_text(encoding="utf-8"), "")
        self.assertLess(len(page), len(self.page.html))
        # Searched, not asserted: a failed assertion would print the whole page.
        self.assertIsNone(re.search(r"""(?i)(src|href)\s*=\s*["']?\s*(https?:)?//""", page))
        self.assertIsNone(re.search(r"@import|\burl\(|\bfetch\(|XMLHttpRequest|importScripts|\bimport\(", page))
        self.assertTrue("default-src 'none'" in page)

    def test_labels_stay_text(self):
        self.assertIn(HOSTILE, self.page.columns["axis.device"]["names"])
        self.assertFalse("<img src=x" in self.page.html)
        self.assertFalse("<script>stolen" in self.page.html)
        # No script of the page makes HTML out of text.
        for script in (SOURCE / "tools" / "report" / "page").glob("*.js"):
            self.assertNotRegex(script.read_text(), r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script.name)

    def test_the_same_run_gives_the_same_page(self):
        self.assertTrue(self.made("steps").html == self.page.html)

    def test_only_points_asked_for_are_in_the_page(self):
        some = self.made("steps", options=["--where", "status == 'ok' and step.batch > 1"])
        expected = self.points[(self.points.status == "ok") & (self.points["step.batch"] > 1)]
        self.assertEqual(list(some.values("index")), list(expected["index"]))
        few = self.made("steps", options=["--points", 5])
        self.assertEqual(few.data["points"]["rows"], 5)
        self.assertEqual(few.data["points"]["asked_for"], len(self.points))
        self.assertTrue(set(few.values("index")) <= set(self.points["index"]))

    def test_several_runs_share_a_page(self):
        both = self.made("steps", "served")
        self.assertEqual(both.data["points"]["rows"], len(self.points) + 2)
        self.assertEqual(both.values("run"), [str(self.home / "steps")] * len(self.points) + [str(self.home / "served")] * 2)
        # A figure of one task is missing in the other's rows.
        self.assertTrue(np.isnan(both.values("step_time_s")[-2:]).all())

    def test_mistakes_are_told_and_change_nothing(self):
        before = sorted(self.home.rglob("*"))
        target = self.home / "never.html"
        cases = [
            ([self.home / "nowhere"], f"{self.home}/nowhere: error: there is no such folder\n"),
            ([self.home / "steps", "--where", "step.batc > 1"], "--where:1:1: error: there is no column 'step.batc'\n"),
            ([self.home / "steps.yaml"], f"{self.home}/steps.yaml: error: this is not a folder\n"),
        ]
        for arguments, message in cases:
            done = llmsweep("report", *arguments, "-o", target)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(done.stderr.startswith(message), done.stderr)
        self.assertEqual(llmsweep("report", self.home / "steps", "--where", "step.batch > 999", "-o", target).returncode, 4)
        self.assertEqual(llmsweep("report", self.home / "steps", "-o", self.home / "no" / "such" / "x.html").returncode, 1)
        self.assertEqual(sorted(self.home.rglob("*")), before)

    def test_a_missing_chart_library_is_told(self):
        with tempfile.TemporaryDirectory(prefix="llmsweep-installed-") as scratch:
            installed = pathlib.Path(scratch)
            (installed / "bin").mkdir()
            shutil.copy(BINARY, installed / "bin" / "llmsweep")
            shutil.copytree(SOURCE / "tools" / "report" / "page", installed / "share" / "llmsweep" / "report")
            done = subprocess.run([installed / "bin" / "llmsweep", "report", self.home / "steps", "-o", installed / "x.html"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("echarts.min.js: error: this part of the report's page is missing", done.stderr)
            self.assertIn("tools/dev/charts.sh", done.stderr)
            self.assertFalse((installed / "x.html").exists())


if __name__ == "__main__":
    sys.exit(unittest.main())
