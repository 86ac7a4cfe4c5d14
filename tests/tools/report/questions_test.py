"""llmsweep top, pareto and sensitivity: the answers one would work out with a dataframe, and nothing changed on disk."""

import io
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import duckdb
import numpy as np
import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base: {task: step, model: llama-3.1-8b, step: {phase: decode}}
axes:
  - device: [l4, h100-sxm, h200-sxm]
  - parallel.tp: [1, 2, 3, 4]
  - step.batch: [1, 4, 16, 64, 256]
  - step.context: [512, 8192]
"""


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


def listing(folder):
    return sorted((str(file), file.stat().st_mtime_ns) for file in folder.rglob("*"))


class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-questions-")
        cls.home = pathlib.Path(cls.scratch.name)
        (cls.home / "sweep.yaml").write_text(SPEC)
        cls.run_folder = cls.home / "run"
        done = llmsweep("run", cls.home / "sweep.yaml", "-o", cls.run_folder)
        assert done.returncode == 0, done.stderr
        cls.points = pd.read_parquet(cls.run_folder / "points").sort_values("index")
        cls.ok = cls.points[cls.points.status == "ok"]
        assert 0 < len(cls.ok) < len(cls.points)  # tp 3 divides nothing

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def answer(self, verb, *options, code=0):
        done = llmsweep(verb, self.run_folder, *options, "--format", "csv")
        self.assertEqual(done.returncode, code, done.stderr)
        return pd.read_csv(io.StringIO(done.stdout))

    def test_top_is_the_head_of_the_sorted_table(self):
        cheapest = self.answer("top", "--by", "price_usd_per_mtok", "-n", 7)
        expected = self.ok.sort_values(["price_usd_per_mtok", "index"]).head(7)
        self.assertEqual(list(cheapest["index"]), list(expected["index"]))
        np.testing.assert_allclose(cheapest.price_usd_per_mtok, expected.price_usd_per_mtok, rtol=1e-12)
        # Rates are best high unless told otherwise.
        fastest = self.answer("top", "--by", "per_device_tokens_per_s", "-n", 1)
        self.assertEqual(fastest.per_device_tokens_per_s[0], self.ok.per_device_tokens_per_s.max())
        slowest = self.answer("top", "--by", "per_device_tokens_per_s", "-n", 1, "--lowest")
        self.assertEqual(slowest.per_device_tokens_per_s[0], self.ok.per_device_tokens_per_s.min())

    def test_more_finished_requests_are_better_and_more_work_in_a_step_is_not(self):
        (self.home / "busy.yaml").write_text("""
base: {task: serve, model: llama-3.1-8b, device: h100-sxm, load: {rate: 2 req/s, adapters: 8}}
axes:
  - load.requests: [100, 300]
  - load.adapters: [2, 8]
""")
        done = llmsweep("run", self.home / "busy.yaml", "-o", self.home / "busy")
        self.assertEqual(done.returncode, 0, done.stderr)
        points = pd.read_parquet(self.home / "busy" / "points")
        for metric, best in (("requests_finished", points.requests_finished.max()), ("adapters_per_step", points.adapters_per_step.min())):
            self.assertGreater(points[metric].nunique(), 1)
            found = llmsweep("top", self.home / "busy", "--by", metric, "-n", 1, "--format", "csv")
            self.assertEqual(pd.read_csv(io.StringIO(found.stdout))[metric][0], best)

    def test_top_of_each_group_is_its_best(self):
        answer = self.answer("top", "--by", "step_time_s", "--group-by", "step.batch", "--show", "tier")
        best = self.ok.loc[self.ok.groupby("step.batch").step_time_s.idxmin()].sort_values("step_time_s")
        self.assertEqual(list(answer["index"]), list(best["index"]))
        self.assertEqual(list(answer["tier"]), list(best["tier"]))
        np.testing.assert_allclose(answer.behind_percent, 100 * (best.step_time_s / best.step_time_s.iloc[0] - 1), atol=0.006)

    def test_a_front_is_what_nothing_beats(self):
        metrics = [("min", "price_usd_per_mtok"), ("max", "per_device_tokens_per_s"), ("min", "step_time_s"), ("max", "max_batch")]
        for count in (1, 2, 3, 4):
            chosen = metrics[:count]
            options = [word for kind, name in chosen for word in (f"--{kind}", name)]
            figures = np.array([[row[name] * (1 if kind == "min" else -1) for kind, name in chosen] for _, row in self.ok.iterrows()])
            beaten = [bool(((figures <= mine).all(axis=1) & (figures < mine).any(axis=1)).any()) for mine in figures]
            expected = set(self.ok["index"][~np.array(beaten)])
            self.assertEqual(set(self.answer("pareto", *options)["index"]), expected, options)

    def test_every_group_has_a_front_of_its_own(self):
        answer = self.answer("pareto", "--min", "price_usd_per_mtok", "--min", "step_time_s", "--group-by", "device")
        for device, group in self.ok.groupby("device"):
            alone = self.answer("pareto", "--min", "price_usd_per_mtok", "--min", "step_time_s", "--where", f"device == '{device}'")
            self.assertEqual(list(answer[answer.device == device]["index"]), list(alone["index"]))
            self.assertLessEqual(len(alone), len(group))

    def test_a_text_that_no_point_has_is_told(self):
        known = "known values: l4, h100-sxm, h200-sxm"
        for where, note in (
            ("device == 'h100-smx'", "--where:1:11: no point has 'h100-smx' as device; did you mean 'h100-sxm'?"),
            ("step.batch < 9 and 'h20-sxm' == device", "--where:1:20: no point has 'h20-sxm' as device; did you mean 'h200-sxm'?"),
            ("device == 'mi300x'", f"--where:1:11: no point has 'mi300x' as device; {known}"),
            # Leaving out what is not there is no mistake, unless it was meant for something that is.
            ("device != 'h100-smx'", "--where:1:11: no point has 'h100-smx' as device; did you mean 'h100-sxm'?"),
            ("device != 'mi300x'", ""),
            ("device == 'l4'", ""),
        ):
            for verb in (["top", "--by", "step_time_s"], ["report", "-o", self.home / "page.html"]):
                done = llmsweep(verb[0], self.run_folder, *verb[1:], "--where", where)
                notes = [line for line in done.stderr.splitlines() if line.startswith("note: --where")]
                self.assertEqual(notes, [f"note: {note}"] if note else [], where)
                self.assertEqual(done.returncode, 4 if "==" in where and note else 0, where)

    def test_an_expression_holds_where_sql_says_so(self):
        same = {
            "step.batch >= 16": '"step.batch" >= 16',
            "device == 'h100-sxm' and step_time_s < 10 ms": "device = 'h100-sxm' and step_time_s < 0.01",
            "device != 'l4' && (parallel.tp == 2 || parallel.tp == 4)": "device <> 'l4' and \"parallel.tp\" in (2, 4)",
            "not device == 'l4' and step.batch*step.context <= 100_000": "device <> 'l4' and \"step.batch\" * \"step.context\" <= 100000",
            "weights_bytes / 1e9 + 2^3 - 1 > 11": "weights_bytes / 1e9 + 7 > 11",
            "device.memory_capacity >= 80 GB": '"device.memory_capacity" >= 80e9',
            "rent_usd_per_hour < 10 USD/h": "rent_usd_per_hour < 10",
            # Sums and multiples of quantities and figures, in whichever unit a figure is.
            "rent_usd_per_hour < 5 USD/h + 5 USD/h": "rent_usd_per_hour < 10",
            "rent_usd_per_hour < 2 * 5 USD/h": "rent_usd_per_hour < 10",
            "rent_usd_per_hour - 1 USD/h < 9 USD/h": "rent_usd_per_hour < 10",
            "-rent_usd_per_hour > -10 USD/h": "rent_usd_per_hour < 10",
            "rent_usd_per_hour / 10 USD/h < 1": "rent_usd_per_hour < 10",
            "rent_usd_per_hour < devices * 3 USD/h": "rent_usd_per_hour < devices * 3",
            "rent_usd_per_hour > 1.5 * device.rent": '"parallel.tp" > 1.5',
            "device.rent * 2 < 5 USD/h": '"device.rent" * 2 < 5 / 3600.0',
            "step_time_s + 1 ms < 11 ms": "step_time_s < 0.01",
            "1 / 20 ms < 1 / step_time_s": "step_time_s < 0.02",
            "device.memory_bandwidth * 1 ms > 3e9": '"device.memory_bandwidth" > 3e12',
            # As in `require`: 6, 9, 12, ... are 3 times something, whatever their sign.
            "-step.batch % 3 == 2": '"step.batch" % 3 = 1',
            "step.batch % 16 == 0 or extrapolated": '"step.batch" % 16 = 0 or extrapolated',
            "-step.batch < -60": '"step.batch" > 60',
            "not step.batch > 16": '"step.batch" <= 16',
            "!step.batch > 16": '"step.batch" <= 16',
            "extrapolated == true": "extrapolated",
            "extrapolated != true or false": "not extrapolated",
            f"key == '{self.ok.key.iloc[3]}'": f"key = '{self.ok.key.iloc[3]}'",
            "ttft_s > 0": "false",  # a step has none: a null passes nothing
        }
        points = self.ok  # noqa: F841  (DuckDB finds it by its name)
        for ours, sql in same.items():
            expected = duckdb.sql(f'select "index" from points where {sql}').df()["index"]
            found = llmsweep("top", self.run_folder, "--by", "step_time_s", "-n", 1000, "--where", ours, "--format", "csv")
            self.assertEqual(found.returncode, 0 if len(expected) else 4, found.stderr)
            indices = pd.read_csv(io.StringIO(found.stdout))["index"] if found.stdout else []
            self.assertEqual(set(indices), set(expected), ours)

    def test_sensitivity_is_what_the_table_says(self):
        answer = self.answer("sensitivity", "--of", "step_time_s", "--where", "device != 'l4'").set_index("axis")
        rows = self.ok[self.ok.device != "l4"].assign(log=lambda d: np.log(d.step_time_s))
        axes = ["device", "parallel.tp", "step.batch", "step.context"]
        for axis in axes:
            whole = ((rows.log - rows.log.mean()) ** 2).sum()
            between = ((rows.groupby(axis).log.transform("mean") - rows.log.mean()) ** 2).sum()
            self.assertAlmostEqual(answer.explained_percent[axis], 100 * between / whole, delta=0.01)
            sets = rows.groupby([other for other in axes if other != axis]).log
            pairs = sets.filter(lambda group: len(group) > 1)
            sets = rows.loc[pairs.index].groupby([other for other in axes if other != axis]).log
            self.assertEqual(answer.sets[axis], len(sets))
            self.assertAlmostEqual(answer.ratio[axis], math.exp((sets.max() - sets.min()).mean()), delta=0.001)
        self.assertEqual(sorted(answer.explained_percent, reverse=True), list(answer.explained_percent))
        # Weights are read once a step and shared by the devices: time falls nearly as 1/tp.
        self.assertLess(answer.elasticity["parallel.tp"], -0.5)
        self.assertTrue(math.isnan(answer.elasticity["device"]))
        self.assertEqual(answer.best["device"], "h200-sxm")
        # What moves nothing has no best value.
        self.assertTrue(self.answer("sensitivity", "--of", "parameters").best.isna().all())

    def test_what_a_name_brings_moves_with_it(self):
        spec = self.home / "brought.yaml"
        spec.write_text("base: {task: step, device: h100-sxm}\n"
                        "axes: [{model: [llama-3.1-8b, qwen3-8b, gpt-oss-20b]}, {step.batch: [1, 16]}]\n")
        folder = self.home / "brought"
        self.assertEqual(llmsweep("run", spec, "-o", folder).returncode, 0)
        done = llmsweep("sensitivity", folder, "--of", "step_time_s", "--format", "csv")
        answer = pd.read_csv(io.StringIO(done.stdout)).set_index("axis")
        self.assertEqual(sorted(answer.index), ["model", "step.batch"])
        rows = pd.read_parquet(folder / "points")
        times = rows.pivot_table(index="axis.step.batch", columns="axis.model", values="step_time_s")
        spread = np.log(times.max(axis=1)) - np.log(times.min(axis=1))
        self.assertAlmostEqual(answer.ratio["model"], math.exp(spread.mean()), delta=0.001)
        self.assertEqual(answer.best["model"], times.mean().idxmin())

    def test_any_column_can_be_shown(self):
        shown = self.answer("top", "--by", "step_time_s", "-n", 1000, "--show", ",".join(["key", "status", "extrapolated", "max_batch"]))
        expected = self.ok.set_index("index").loc[list(shown["index"])]
        for column in ("key", "status", "extrapolated", "max_batch"):
            self.assertEqual(list(shown[column]), list(expected[column]), column)

    def test_how_many_is_a_number_above_zero(self):
        for count in ("0", "-3", "x"):
            done = llmsweep("top", self.run_folder, "--by", "step_time_s", "-n", count)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(done.stderr.splitlines()[0], f"--count: '{count}' is not a number above 0")

    def test_every_format_holds_the_same_table(self):
        asked = ["pareto", self.run_folder, "--min", "price_usd_per_mtok", "--min", "step_time_s"]
        tables = {}
        for end in ("csv", "csv.gz", "parquet"):
            file = self.home / f"front.{end}"
            self.assertEqual(llmsweep(*asked, "-o", file).returncode, 0)
            tables[end] = pd.read_parquet(file) if end == "parquet" else pd.read_csv(file)
            pd.testing.assert_frame_equal(tables[end], tables["csv"], check_dtype=False)
        markdown = llmsweep(*asked, "--format", "markdown").stdout.splitlines()
        self.assertEqual(len(markdown), len(tables["csv"]) + 2)
        self.assertTrue(all(line.count("|") == len(tables["csv"].columns) + 1 for line in markdown))

    def test_units_of_an_expression_are_those_of_a_sweep(self):
        fast = self.ok[self.ok.step_time_s < 8e-3]
        room = self.ok[self.ok.memory_used_bytes < 40e9 / self.ok["parallel.tp"]]
        self.assertTrue(0 < len(fast) < len(self.ok) and 0 < len(room) < len(self.ok))
        for where, rows in (("step_time_s < 8000 us", fast), ("step_time_s < 8000 µs", fast), ("step_time_s < 8e3 μs", fast),
                            ("memory_used_bytes < 40 GB/parallel.tp", room), ("memory_used_bytes * parallel.tp < 40 GB", room)):
            answer = self.answer("top", "--by", "step_time_s", "-n", 1000, "--where", where)
            self.assertEqual(sorted(answer["index"]), sorted(rows["index"]), where)
        for where in ("step_time_s < 8 usec", "step_time_s < 8 µ", "1 < step.batch < 9"):
            done = llmsweep("top", self.run_folder, "--by", "step_time_s", "--where", where)
            self.assertEqual(done.returncode, 2, where)
            self.assertIn("hint: ", done.stderr, where)

    def test_a_label_in_the_place_of_a_name_is_told(self):
        (self.home / "labels.yaml").write_text("""
base: {task: step, device: l4, model: phi-2}
axes: [host: [{value: vllm-v1, label: graphs}, {value: eager-pytorch, label: größer}], step.batch: [1, 2]]
""")
        run = self.home / "labels"
        self.assertEqual(llmsweep("run", self.home / "labels.yaml", "-o", run).returncode, 0)
        for comparison in ("==", "!="):
            done = llmsweep("top", run, "--by", "step_time_s", "--where", f"host {comparison} 'graphs'")
            self.assertIn("no point has 'graphs' as host; it is a label of the axis: write axis.host\n", done.stderr)
        done = llmsweep("top", run, "--by", "step_time_s", "--where", "axis.host == 'graphs'")
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (0, "4 points, 4 ok, 2 of them asked for"))
        self.assertNotIn("no point has", done.stderr)
        # Columns stand below one another whatever letters a label has.
        for text in ("text", "markdown"):
            lines = llmsweep("top", run, "--by", "step_time_s", "--format", text).stdout.splitlines()
            start = lines[0].index("step.batch") if text == "text" else lines[0].index("|", lines[0].index("host"))
            for line in lines:
                self.assertIn(line[start - 1], " |-", lines)
                self.assertTrue(text == "text" or line[start] == "|", lines)

    def test_mistakes_are_told_and_change_nothing(self):
        before = listing(self.home)
        run = str(self.run_folder)
        cases = [
            (["top", run, "--by", "step_tim_s"], f"{run}: error: there is no column 'step_tim_s'\n  hint: did you mean 'step_time_s'?\n"),
            (["top", run, "--by", "bound"], f"{run}: error: column 'bound' holds texts, not numbers\n  hint: group by it, or compare it in --where\n"),
            (["pareto", run, "--min", "step_time_s", "--where", "step_time_s < 3 GB"],
             "--where:1:15: error: this unit does not measure what the column is in: s\n  hint: write a number in s\n"),
            (["top", run, "--by", "step_time_s", "--where", "rent_usd_per_hour * 3 h > 5"],
             "--where:1:21: error: a number with a unit is neither multiplied with nor divided by what is in USD/h\n"
             "  hint: write a plain number\n"),
            (["top", run, "--by", "step_time_s", "--where", "step.batch + 3 ms > 5"],
             "--where:1:14: error: this number has a unit, and what it is compared with has none\n  hint: write a plain number\n"),
            (["top", run, "--by", "step_time_s", "--where", "step.batch > 4 and (step.batch < 9"],
             "--where:1:35: error: a bracket is not closed\n  hint: write ')'\n"),
            (["top", run, "--by", "step_time_s", "--where", "device = 'l4'"], "--where:1:8: error: '=' compares nothing\n  hint: write '=='\n"),
            (["top", run, "--by", "step_time_s", "--where", "device"],
             "--where:1:1: error: a text is not true or false, nor a number\n  hint: compare it, as in device == 'h100-sxm'\n"),
            (["top", run, "--by", "step_time_s", "--where", "device == h100-sxm"],
             "--where:1:11: error: there is no column 'h100'\n  hint: names are quoted: device == 'h100-sxm'\n"),
            (["sensitivity", str(self.home / "nowhere"), "--of", "step_time_s"],
             f"{self.home}/nowhere: error: there is no such folder\n  hint: a run folder is what 'llmsweep run SPEC -o DIR' writes\n"),
            (["top", run, "--by", "step_time_s", "-o", str(self.home / "x.pdf")],
             f"{self.home}/x.pdf: error: the end of the name does not say which kind of file to write\n"
             "  hint: name it .txt, .md, .csv, .csv.gz or .parquet\n"),
        ]
        for command, message in cases:
            done = llmsweep(*command)
            self.assertEqual((done.returncode, done.stderr, done.stdout), (2, message, ""), command)
        for brackets in ("(" * 20_000, "not " * 20_000, "-" * 20_000):
            deep = llmsweep("top", run, "--by", "step_time_s", f"--where={brackets}")
            self.assertEqual(deep.returncode, 2)
            self.assertIn("too many brackets", deep.stderr)
        self.assertEqual(listing(self.home), before)

    def test_rows_that_look_better_than_they_are_are_told_of(self):
        run = self.home / "misleading"
        (self.home / "misleading.yaml").write_text("""
base: {task: serve, model: llama-3.1-8b, load: {requests: 2000, rate: 1 req/s}}
axes:
  - device: [h100-sxm, tpu-v5p]
  - load.rate: [1 req/s, 500 req/s]
""")
        self.assertEqual(llmsweep("run", self.home / "misleading.yaml", "-o", run).returncode, 0)
        full = "2 of 4 points finish less than arrives"
        bound = "2 of 4 points rest on physics alone"
        for verb in (["top", "--by"], ["pareto", "--min"], ["sensitivity", "--of"]):
            told = llmsweep(verb[0], run, verb[1], "price_usd_per_mtok").stderr
            self.assertIn(full, told)
            self.assertIn(bound, told)
        # What they say leaves the rows out does, and where all are alike they say what to do instead.
        rest = llmsweep("top", run, "--by", "ttft_s", "--where", "saturation != 'overloaded' and tier != 'roofline'")
        self.assertIn("4 points, 4 ok, 1 of them asked for\n", rest.stderr)
        self.assertNotRegex(rest.stderr, "finish less|rest on physics")
        alike = llmsweep("top", run, "--by", "ttft_s", "--where", "tier == 'roofline'").stderr
        self.assertIn("2 of 2 points rest on physics alone", alike)
        self.assertNotRegex(alike, "physics alone.*--where")

    def test_rows_that_answer_only_short_requests_are_told_of(self):
        run = self.home / "too_long"
        (self.home / "too_long.yaml").write_text("""
base: {task: serve, device: h100-sxm, model: phi-2, load: {requests: 200, lengths: {distribution: lognormal, output: 10}}}
axes:
  - load.lengths.prompt: [50, 2000]
""")
        self.assertEqual(llmsweep("run", self.home / "too_long.yaml", "-o", run).returncode, 0)
        self.assertIn("1 of 2 points refuse more than 1% of the requests", llmsweep("top", run, "--by", "ttft_s").stderr)
        rest = llmsweep("top", run, "--by", "ttft_s", "--where", "refused_share == 0")
        self.assertIn("2 points, 2 ok, 1 of them asked for\n", rest.stderr)
        self.assertNotIn("refuse more", rest.stderr)

    def test_rows_that_saw_first_turns_are_told_of(self):
        run = self.home / "first_turns"
        (self.home / "first_turns.yaml").write_text("""
base: {task: serve, device: h100-sxm, model: llama-3.1-8b, load: {turns: 6, lengths: {prompt: 1500, output: 300}}}
axes:
  - load.rate: [0.1 req/s, 500 req/s]
""")
        self.assertEqual(llmsweep("run", self.home / "first_turns.yaml", "-o", run).returncode, 0)
        told = llmsweep("top", run, "--by", "throughput_req_per_s").stderr
        self.assertIn("1 of 2 points are over before their sessions are", told)
        rest = llmsweep("top", run, "--by", "ttft_s", "--where", "later_turns_seen >= 0.9")
        self.assertIn("2 points, 2 ok, 1 of them asked for\n", rest.stderr)
        self.assertNotIn("are over before", rest.stderr)

    def test_capacities_of_runs_that_were_too_short_are_told_of(self):
        spec, run = self.home / "short.yaml", self.home / "short"
        spec.write_text("""
base: {task: serve, device: h100-sxm, model: llama-3.1-8b, serving: vllm-v1, load: chat, capacity: {slo: {tpot_p95: 30 ms}}}
axes: [{load.requests: [200, auto]}]
""")
        self.assertEqual(llmsweep("run", spec, "-o", run).returncode, 0)
        asked = llmsweep("top", run, "--by", "capacity_req_per_s")
        self.assertIn("1 of 2 points have a capacity that their runs were too short to decide", asked.stderr)
        asked = llmsweep("top", run, "--by", "capacity_req_per_s", "--where", "capacity_decided != 0")
        self.assertNotIn("too short to decide", asked.stderr)

    def test_a_part_cut_short_is_named(self):
        broken = self.home / "broken"
        shutil.copytree(self.run_folder, broken)
        part = next((broken / "points").glob("*.parquet"))
        part.write_bytes(part.read_bytes()[:-100])
        done = llmsweep("top", broken, "--by", "step_time_s")
        shutil.rmtree(broken)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"points/{part.name}", done.stderr)

    def test_rows_of_several_runs_say_which_they_are_of(self):
        other = self.home / "other"
        shutil.copytree(self.run_folder, other)
        answer = llmsweep("top", self.run_folder, other, "--by", "step_time_s", "-n", 2, "--format", "csv")
        shutil.rmtree(other)
        rows = pd.read_csv(io.StringIO(answer.stdout))
        self.assertEqual(list(rows["run"]), [str(self.run_folder), str(other)])
        self.assertEqual(rows["index"][0], rows["index"][1])

    def test_what_only_one_run_varies_the_others_have_as_well(self):
        fixed = self.home / "fixed"
        (self.home / "fixed.yaml").write_text("""
base: {task: step, model: llama-3.1-8b, device: l4, step: {phase: decode}}
axes: [device.memory_bandwidth: [250 GB/s, 0.5 TB/s]]
""")
        self.assertEqual(llmsweep("run", self.home / "fixed.yaml", "-o", fixed).returncode, 0)
        for folders in ((self.run_folder, fixed), (fixed, self.run_folder)):
            answer = llmsweep("top", *folders, "--by", "step_time_s", "-n", 500, "--format", "csv")
            rows = pd.read_csv(io.StringIO(answer.stdout)).set_index(["run", "index"])
            here = rows.loc[str(fixed)]
            self.assertEqual(list(here["device"]), ["l4", "l4"])
            self.assertEqual(list(here["step.batch"]), [1, 1])
            self.assertEqual(list(here["device.memory_bandwidth"]), ["0.5 TB/s", "250 GB/s"])
            there = rows.loc[str(self.run_folder)]
            self.assertEqual(there.groupby("device")["device.memory_bandwidth"].nunique().to_list(), [1, 1, 1])
            answer = llmsweep("top", *folders, "--by", "step_time_s", "--group-by", "device", "--format", "csv")
            self.assertEqual(sorted(pd.read_csv(io.StringIO(answer.stdout))["device"]), ["h100-sxm", "h200-sxm", "l4"])
        shutil.rmtree(fixed)


if __name__ == "__main__":
    unittest.main()
