"""The report's page in a real browser: it loads, filters, keeps its view in the address, and takes labels for text.

Skipped where there is no Chromium or nothing to drive it; `tools/test --with browser` installs both.
"""

import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import pandas as pd

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

BINARY = os.environ["LLMSWEEP_BINARY"]
SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
CHARTS = SOURCE / ".deps" / "charts" / "echarts.min.js"
CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=window.stolen=1>"
SPEC = f"""
base: {{task: step, device: h100-sxm, model: llama-3.1-8b, step: {{phase: decode}}}}
axes:
  - device: [l4, h100-sxm, {{value: h200-sxm, label: "{HOSTILE}"}}]
  - parallel.tp: [1, 2, 3, 4]
  - step.batch: [1, 16, 64, 256]
"""
SERVED = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  load: {requests: 200, lengths: {distribution: lognormal, prompt: 300, output: 60}}
  output: {requests: true, timeline: 1 s}
axes:
  - load.rate: [2 req/s, 20 req/s]
"""
TOGETHER = """
base: {task: serve, device: h100-sxm, model: llama-3.1-8b, load: {requests: 50, lengths: {distribution: lognormal, prompt: 300, output: 60}}}
axes:
  - zip: {load.rate: [2 req/s, 20 req/s, 30 req/s], load.lengths.output: [60, 50, 40]}
  - serving: [vllm-v1, sglang]
replicates: 3
"""
# The largest batches do not fit; their rows say how much memory they would take.
TIGHT = """
base: {task: step, device: h100-sxm, model: llama-3.1-8b, step: {phase: decode, context: 4096}}
axes: [step.batch: [1, 8, 16, 32, 64, 128, 1024, 4096]]
"""
PANELS = ["overview", "pareto", "best", "compare", "parallel", "slice", "heat", "breakdown", "sensitivity", "roofline", "mix", "efficiency"]


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


@unittest.skipUnless(sync_playwright and CHROMIUM and CHARTS.exists(),
                     "no Chromium, nothing to drive it, or no chart library: tools/test --with browser installs them")
class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-browser-")
        cls.home = pathlib.Path(cls.scratch.name)
        for name, spec in (("steps", SPEC), ("served", SERVED), ("together", TOGETHER), ("tight", TIGHT), ("alone", SERVED.split("axes:")[0])):
            (cls.home / f"{name}.yaml").write_text(spec)
            assert llmsweep("run", cls.home / f"{name}.yaml", "-o", cls.home / name).returncode == 0
            assert llmsweep("report", cls.home / name, "-o", cls.home / f"{name}.html").returncode == 0
        cls.points = pd.read_parquet(cls.home / "steps" / "points")
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.scratch.cleanup()

    def setUp(self):
        self.context = self.browser.new_context(viewport={"width": 1300, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)  # a busy machine is slow, and that is no mistake
        self.complaints = []
        self.page.on("console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.asked = []
        self.page.on("request", lambda request: self.asked.append(request.url))

    def tearDown(self):
        self.context.close()
        self.assertEqual(self.complaints, [])
        self.assertEqual([url for url in self.asked if not url.startswith(("file:", "blob:", "data:"))], [])

    def open(self, name="steps", fragment=""):
        self.page.goto(f"file://{self.home}/{name}.html{fragment}")
        self.page.wait_for_selector("html[data-ready]")

    def updates(self):
        return int(self.page.evaluate("document.documentElement.dataset.updated ?? 0"))

    def after_update(self, action):
        before = self.updates()
        action()
        self.page.wait_for_function("(before) => Number(document.documentElement.dataset.updated ?? 0) > before", arg=before)

    def shown(self):
        return int(re.match(r"[\d,]+", self.page.inner_text("#count"))[0].replace(",", ""))

    def choose(self, where, control, words):
        """A figure, as a reader chooses it: open the list, search, take the first."""
        self.page.locator(where).get_by_role("button", name=re.compile(f"^{control}: ")).click()
        self.page.keyboard.type(words)
        self.page.keyboard.press("Enter")

    def panel_rows(self, panel):
        """What the panel's data say, drawn or not."""
        return self.page.evaluate("""async (id) => {
          const panel = panels.find((each) => each.id === id);
          await drawPanel(panel);
          return panel.data.rows();
        }""", panel)

    def test_every_panel_is_drawn(self):
        self.open()
        for panel in PANELS:
            self.page.locator(f"#{panel}").scroll_into_view_if_needed()
            self.page.wait_for_function("(id) => panels.find((each) => each.id === id).data !== null", arg=panel)
        charts = self.page.evaluate("panels.filter((panel) => panel.chart).map((panel) => panel.id)")
        self.assertEqual(charts, ["pareto", "parallel", "slice", "heat", "breakdown", "sensitivity", "roofline", "mix", "efficiency"])
        for panel in PANELS:
            self.assertGreater(len(self.panel_rows(panel)), 0, panel)

    def test_ticks_and_limits_hide_points(self):
        self.open()
        everything = self.shown()
        self.after_update(lambda: self.page.locator(".tick", has_text="l4").locator("input").uncheck())
        without = self.shown()
        self.assertLess(without, everything)
        self.after_update(lambda: self.page.evaluate("view.set('m.step_time_s', '~0.005')"))
        self.assertLess(self.shown(), without)
        times = self.page.evaluate("(async () => { const times = await values('step_time_s'); return filters.rows.map((row) => times[row]); })()")
        self.assertTrue(all(time <= 0.005 for time in times))
        self.after_update(lambda: self.page.click("#reset"))
        self.assertEqual(self.shown(), everything)

    def test_a_slider_and_the_keyboard_do_the_same(self):
        self.open()
        self.after_update(lambda: self.choose("#filters", "Limit a figure", "step_time_s"))
        self.page.wait_for_selector("#limits input[type=range]")
        everything = self.shown()
        self.page.focus("#limits input[type=range]")
        self.after_update(lambda: self.page.keyboard.press("Home"))
        self.assertLess(self.shown(), everything)
        self.assertGreaterEqual(self.shown(), 1)

    def test_a_limit_spans_what_works_and_is_told_with_its_unit(self):
        self.open("tight")
        everything = self.shown()
        self.after_update(lambda: self.choose("#filters", "Limit a figure", "memory_used_bytes"))
        self.assertEqual(self.shown(), everything, "a new limit hides nothing")
        points = pd.read_parquet(self.home / "tight" / "points")
        used = points[points.status == "ok"].memory_used_bytes
        self.assertGreater(points.memory_used_bytes.max(), used.max(), "a point that does not fit would need more")
        field = self.page.locator("#limits").get_by_label("all memory in use on the fullest device at most", exact=True)
        self.assertEqual(field.input_value(), f"{used.max() / 1e9:.4g} GB")
        for written, limit in (("40 GB", 40e9), ("20 GiB", 20 * 2**30), ("3e10", 3e10)):
            field.fill(written)
            self.after_update(lambda: field.press("Enter"))
            self.assertEqual(self.shown(), (used <= limit).sum(), written)
        field.fill("forty")
        field.press("Enter")
        self.assertEqual((field.get_attribute("aria-invalid"), self.shown()), ("true", (used <= 3e10).sum()))
        self.page.evaluate("view.set('m.memory_used_bytes', '')")
        self.after_update(lambda: self.page.evaluate("view.set('m.memory_used_bytes', `~${columns.get('memory_used_bytes').most}`)"))
        self.assertEqual(self.shown(), everything, "a limit at the end of the range shuts no point out")

    def test_figures_are_chosen_by_their_words_or_their_column(self):
        self.open("served")
        self.page.locator("#pareto").get_by_role("button", name=re.compile("^Up: ")).click()
        shown = self.page.locator("#picker [role=option]")
        everything = shown.count()
        groups = self.page.locator("#picker .group").all_inner_texts()
        self.assertGreater(everything, 40)
        self.assertTrue({"time", "rates", "serving"} <= set(groups) and len(groups) == len(set(groups)), groups)
        self.page.keyboard.type("arrival last 95")
        self.assertEqual(shown.all_inner_texts(), ["time from arrival to the last token, p95 [s]\ne2e_p95_s"])
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type("tpot_p99_s")
        self.after_update(lambda: self.page.keyboard.press("Enter"))
        button = self.page.locator("#pareto button.choice >> nth=1")
        self.assertEqual(button.inner_text(), "time per output token after the first, p99 [s]")
        self.assertIn("tpot_p99_s", button.get_attribute("title"))
        self.assertFalse(self.page.locator("#picker").is_visible())

    def test_nothing_moves_after_a_click(self):
        self.open()
        tops = """() => [...document.querySelectorAll('.panel')].map((panel) => [panel.id, panel.getBoundingClientRect()])
          .filter(([id, {top, bottom}]) => bottom > 0 && top < innerHeight).map(([id, {top}]) => [id, Math.round(top)])"""
        for panel, button in (("best", "compare"), ("best", "compared"), ("breakdown", "compare"), ("breakdown", "compared"), ("compare", "compare"),
                              ("compare", "Forget the chosen points")):
            self.page.evaluate("(id) => document.getElementById(id).scrollIntoView()", panel)
            self.page.wait_for_function("(id) => !panels.some(({id: each, visible, dirty}) => visible && dirty)", arg=panel)
            self.page.wait_for_timeout(300)
            which = self.page.locator(f"#{panel}").get_by_role("button", name=button, exact=True).first
            which.scroll_into_view_if_needed()
            self.page.wait_for_timeout(300)
            before = self.page.evaluate(tops)
            self.after_update(which.click)
            self.page.wait_for_timeout(300)
            self.assertEqual(self.page.evaluate(tops), before, (panel, button))

    def test_a_link_to_a_panel_ends_at_it(self):
        self.open()
        for title, panel in (("Sensitivity", "sensitivity"), ("Slice", "slice"), ("Roofline", "roofline"), ("Side by side", "compare")):
            self.page.get_by_role("link", name=title, exact=True).click()
            self.page.wait_for_timeout(1500)  # panels above it are drawn, and have other heights than before
            top = self.page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", panel)
            self.assertAlmostEqual(top, 76, delta=3, msg=panel)

    def test_a_click_keeps_what_is_zoomed_to(self):
        self.open()
        ends = "panels.find(({id}) => id === 'pareto').chart.getOption().dataZoom.map(({start, end}) => [start, end])"
        self.page.evaluate("""panels.find(({id}) => id === 'pareto').chart.dispatchAction(
          {type: 'dataZoom', batch: [{dataZoomId: 'across', start: 20, end: 60}, {dataZoomId: 'up', start: 10, end: 90}]})""")
        self.after_update(lambda: self.page.evaluate("view.toggle_pin(filters.rows[0])"))
        self.assertEqual(self.page.evaluate(ends), [[20, 60], [10, 90]])
        self.after_update(lambda: self.choose("#pareto", "Up", "weights_bytes"))
        self.assertEqual(self.page.evaluate(ends), [[0, 100], [0, 100]])

    def brush(self, name, low, high):
        """Drags along an axis of the parallel coordinates, from one value (or place in the list) to another."""
        ends = self.page.evaluate("""([name, low, high]) => {
          const {chart, holder} = panels.find(({id}) => id === 'parallel');
          const {left, top} = holder.getBoundingClientRect();
          const dim = 'dim' + parallelDimensions.findIndex(({column}) => column.name === name);
          const system = chart.getModel().getComponent('parallel').coordinateSystem;
          return [low, high].map((value) => system.dataToPoint(value, dim)).map(([x, y]) => [x + left, y + top]);
        }""", [name, low, high])
        self.page.mouse.move(*ends[0])
        self.page.mouse.down()
        self.page.mouse.move(ends[1][0], (ends[0][1] + ends[1][1]) / 2)
        self.page.mouse.move(*ends[1])
        self.page.mouse.up()

    def test_brushes_are_filters_and_filters_are_brushes(self):
        self.open()
        self.page.locator("#parallel").scroll_into_view_if_needed()
        self.page.wait_for_function("() => panels.find(({id}) => id === 'parallel').chart !== null")
        self.after_update(lambda: self.choose("#parallel", "Add a figure", "weights_bytes"))
        self.page.evaluate("document.getElementById('parallel').scrollIntoView()")
        self.page.wait_for_timeout(500)
        working = self.points[self.points.status == "ok"]
        low, high = working.weights_bytes.min(), working.weights_bytes.max()
        some = working[(working.weights_bytes > low * 1.2) & (working.weights_bytes < high * 0.8)]
        self.assertTrue(0 < len(some) < len(working))
        self.after_update(lambda: self.brush("weights_bytes", low * 1.2, high * 0.8))
        self.assertEqual(self.shown(), len(some))
        self.assertEqual(self.page.locator("#limits .limit").count(), 1)
        self.after_update(lambda: self.brush("axis.step.batch", 0.6, 2.4))
        kept = some[some["step.batch"].isin([16, 64])]
        self.assertEqual(self.shown(), len(kept))
        ticks = self.page.locator("details.filter", has_text="step.batch").locator("input[type=checkbox]")
        self.assertEqual([tick.is_checked() for tick in ticks.all()], [False, True, True, False])
        # The other way round: a tick that is taken away shows on the axis.
        self.after_update(ticks.nth(1).uncheck)
        self.page.wait_for_timeout(300)
        marked = self.page.evaluate("""panels.find(({id}) => id === 'parallel').chart.getModel().queryComponents({mainType: 'parallelAxis'})
          .find(({id}) => id === 'axis.step.batch').activeIntervals""")
        self.assertEqual(marked, [[1.6, 2.4]])

    def test_points_of_a_slice_differ_along_its_axis_alone(self):
        self.open()
        self.page.evaluate("view.set('along', 'axis.step.batch')")
        names = self.page.evaluate("async () => { const panel = panels.find(({id}) => id === 'slice'); await drawPanel(panel); return panel.data.keys; }")
        rows = [dict(zip(names, row)) for row in self.panel_rows("slice")]
        self.assertEqual([row["step.batch"] for row in rows], ["1", "16", "64", "256"])
        self.assertEqual({(row["device"], row["parallel.tp"]) for row in rows}, {(rows[0]["device"], rows[0]["parallel.tp"])})
        best = max(rows, key=lambda row: row[names[-1]])
        working = self.points[self.points.status == "ok"]
        self.assertAlmostEqual(best[names[-1]], working[names[-1]].max(), delta=1e-5 * best[names[-1]], msg="it goes through the best point")
        name = self.page.locator("span", has_text=re.compile(r"^parallel\.tp$"))
        control = self.page.locator("#slice label.control").filter(has=name).locator("select")
        self.after_update(lambda: control.select_option(label="2"))
        self.assertEqual({row[names.index("parallel.tp")] for row in self.panel_rows("slice")}, {"2"})
        # Members of a zip move together: none is held while the other goes on.
        self.open("together", "#along=axis.load.rate")
        self.assertEqual(len(self.panel_rows("slice")), 3)

    def test_chosen_designs_stand_side_by_side(self):
        self.open()
        working = self.points[self.points.status == "ok"]
        chosen = [int(working["index"].iloc[at]) for at in (0, len(working) // 2, len(working) - 1)]
        self.after_update(lambda: self.page.evaluate("(pins) => view.set('pins', pins.join('.'))", chosen))
        rows = {row[0]: row[1:] for row in self.panel_rows("compare")}
        expected = self.points.set_index("index").loc[chosen]
        for label, column in (("time of the step [s]", "step_time_s"), ("rent of all devices in use [USD/h]", "rent_usd_per_hour")):
            for shown, value in zip(rows[label], expected[column], strict=True):
                self.assertAlmostEqual(shown, value, delta=1e-6 * value)
        self.page.locator("#compare").scroll_into_view_if_needed()
        line = self.page.locator("#compare tr", has_text="time of the step").first
        line.wait_for()
        best = line.locator(".leading")
        self.assertEqual(best.count(), (expected.step_time_s == expected.step_time_s.min()).sum())
        self.assertIn("ms", best.first.inner_text())

    def test_a_page_of_a_run_that_goes_on_follows_it_and_keeps_its_view(self):
        run, page = self.home / "going", self.home / "going.html"
        half = [self.home / "steps.yaml", "-o", run, "--shard"]
        self.assertEqual(llmsweep("run", *half, "1/2").returncode, 0)
        watch = subprocess.Popen([BINARY, "report", run, "--watch", "-o", page], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.kill)
        self.addCleanup(watch.stdout.close)
        self.assertIn("open it in a browser", watch.stdout.readline())
        self.open("going")
        self.assertIn("of 48 done", self.page.inner_text("#live"))
        before = self.page.evaluate("rowCount")
        self.after_update(lambda: self.page.locator(".tick", has_text="l4").locator("input").uncheck())
        self.after_update(lambda: self.page.evaluate("view.toggle_pin(filters.rows.at(-1))"))
        pinned = self.page.evaluate("(async () => (await values('index'))[view.pins()[0]])()")
        self.page.evaluate("document.getElementById('heat').scrollIntoView()")
        self.page.wait_for_timeout(500)
        top = self.page.evaluate("document.getElementById('heat').getBoundingClientRect().top")
        self.assertEqual(llmsweep("run", *half, "2/2").returncode, 0)
        self.assertEqual(watch.wait(timeout=60), 0)
        self.page.wait_for_function("() => document.documentElement.dataset.ready && data.going_on === undefined")
        self.assertEqual((before, self.page.evaluate("rowCount")), (24, 48))
        self.assertEqual(self.page.evaluate("(async () => (await values('index'))[view.pins()[0]])()"), pinned)
        self.assertFalse(self.page.locator(".tick", has_text="l4").locator("input").is_checked())
        self.assertAlmostEqual(self.page.evaluate("document.getElementById('heat').getBoundingClientRect().top"), top, delta=2)
        # A page of a run that is done stays as it is.
        self.assertEqual(self.page.locator("#live").count(), 0)
        self.page.evaluate("window.same = true")
        self.page.wait_for_timeout(6000)
        self.assertTrue(self.page.evaluate("window.same"))

    def test_a_link_keeps_the_view(self):
        self.open()
        self.after_update(lambda: self.page.locator(".tick", has_text="l4").locator("input").uncheck())
        self.after_update(lambda: self.choose("#pareto", "Across", "price_usd_per_mtok"))
        link = self.page.evaluate("view.link('heat')")
        count = self.shown()
        points = self.panel_rows("pareto")
        self.page.goto("about:blank")
        self.page.goto(link)
        self.page.wait_for_selector("html[data-ready]")
        self.assertEqual(self.shown(), count)
        self.assertEqual(self.panel_rows("pareto"), points)
        self.assertEqual(self.page.get_attribute("#pareto button.choice >> nth=0", "data-value"), "price_usd_per_mtok")

    def test_a_link_to_what_is_not_there_does_no_harm(self):
        self.open(fragment="#x=nothing&y=device&colour=%3Cb%3E&pins=9999.-1.x&m.none=1~&f.axis.device=only+99+%25&s.axis.device=none&figures=none.x&zoom=1~x&heat=toString&hrule=__proto__&latency=9&at=nowhere")
        self.assertEqual(self.shown(), 0)  # no such value of an axis
        self.after_update(lambda: self.page.click("#reset"))
        self.assertGreater(self.shown(), 0)

    def test_labels_stay_text(self):
        self.open()
        for panel in PANELS:
            self.page.locator(f"#{panel}").scroll_into_view_if_needed()
        self.page.locator("#best").get_by_role("button", name="compare").first.click()
        self.page.locator("#pareto details.data summary").click()
        self.assertIn(HOSTILE, self.page.inner_text("#filters"))
        # A tooltip is where a chart library would make HTML of text.
        self.page.evaluate("panels.find((panel) => panel.id === 'pareto').chart.dispatchAction({type: 'showTip', seriesIndex: 4, dataIndex: 0})")
        self.page.wait_for_selector(".tip")
        self.assertEqual(self.page.locator("img").count(), 0)
        self.assertIsNone(self.page.evaluate("window.stolen ?? null"))

    def same_effects_of_axes_that_move_together(self):
        """An engine brings its host, members of a zip are not told apart, a replicate is no choice, and a figure that is the same everywhere has no spread."""
        self.open("together")
        for metric in ("ttft_s", "output_tokens_per_s"):
            shown = self.page.evaluate("""async (metric) => (await axisEffects([...Array(18).keys()], metric)).map(
              (effect) => [effect.axis.label, effect.values, 100 * effect.share, effect.ratio, effect.best, effect.sets, effect.elasticity])""", metric)
            told = llmsweep("sensitivity", self.home / "together", "--of", metric, "--format", "csv").stdout.splitlines()
            self.assertEqual({row[0] for row in shown}, {"load.rate", "load.lengths.output", "serving", "replicate"})
            self.assertEqual(len(told), 5)
            shown = {row[0]: row[1:] for row in shown}
            for line in told[1:]:
                axis, count, explained, ratio, elasticity, best, sets = line.split(",")
                self.assertEqual((shown[axis][0], shown[axis][3], shown[axis][4]), (int(count), best, int(sets)), (metric, axis))
                self.assertAlmostEqual(shown[axis][1], float(explained), delta=0.02)
                if ratio:
                    self.assertAlmostEqual(shown[axis][2], float(ratio), delta=0.002 * float(ratio))
                self.assertEqual((elasticity, math.isnan(shown[axis][5])), ("", True), (metric, axis))
        self.open()
        alike = self.page.evaluate("""async () => {
          const ranks = await values('axis.parallel.tp');
          const rows = filters.rows.filter((row) => nameOf(columns.get('axis.parallel.tp'), ranks[row]) === '1');
          return (await axisEffects(rows, 'weights_bytes')).map((effect) => [effect.axis.label, effect.share, effect.ratio, effect.best]);
        }""")
        self.assertEqual(sorted(alike), [["device", 0, 1, ""], ["step.batch", 0, 1, ""]])

    def test_the_page_and_the_terminal_agree(self):
        self.open()
        effects = {row[0]: row for row in self.panel_rows("sensitivity")}
        metric = self.page.evaluate("sensitivityOf()")
        told = llmsweep("sensitivity", self.home / "steps", "--of", metric, "--format", "csv").stdout.splitlines()
        for line in told[1:]:
            axis, count, explained, ratio, elasticity, *_ = line.split(",")
            self.assertEqual(effects[axis][1], int(count))
            self.assertAlmostEqual(effects[axis][2], float(explained), delta=0.02)
            self.assertAlmostEqual(effects[axis][3], float(ratio), delta=0.002 * float(ratio))
            if elasticity:
                self.assertAlmostEqual(effects[axis][4], float(elasticity), delta=0.002)
        self.same_effects_of_axes_that_move_together()
        self.open()
        x, y = self.page.evaluate("[pareto.x(), pareto.y()]")
        kinds = [("--max" if self.page.evaluate(f"betterSign('{name}')") > 0 else "--min", name) for name in (x, y)]
        front = llmsweep("pareto", self.home / "steps", *sum(kinds, ()), "--group-by", "device", "--format", "csv").stdout.splitlines()
        self.assertEqual(sorted(row[0] for row in self.panel_rows("pareto")), sorted(int(line.split(",")[0]) for line in front[1:]))

    def test_latencies_of_a_served_load(self):
        self.open("served")
        self.assertEqual(self.page.evaluate("[pareto.x(), pareto.y()]"), ["output_per_device_tokens_per_s", "ttft_p99_s"])
        rows = self.panel_rows("latency")
        self.assertEqual(len(rows), 2)
        for _, *percentiles in rows:
            self.assertEqual(percentiles, sorted(percentiles))
        self.assertGreater(len(self.panel_rows("timeline")), 10)

    def test_a_run_of_one_point_has_its_time_and_its_kernels(self):
        self.open("alone")
        self.assertEqual(len(self.panel_rows("breakdown")), 1)
        for panel in ("roofline", "mix", "efficiency", "latency", "timeline"):
            self.assertGreater(len(self.panel_rows(panel)), 0, panel)
        text = self.page.inner_text("#breakdown")
        self.assertIn("of the one point.", text)
        self.assertNotIn("undefined", text)
        for panel in ("pareto", "best"):
            self.assertIn("No figure varies", self.page.inner_text(f"#{panel}"))

    def test_narrow_dark_and_printed(self):
        self.open(fragment="#theme=dark")
        back = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        self.after_update(lambda: self.page.select_option("#theme", "light"))
        self.assertNotEqual(self.page.evaluate("getComputedStyle(document.body).backgroundColor"), back)
        self.page.set_viewport_size({"width": 390, "height": 800})
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 390)
        self.page.emulate_media(media="print")
        self.assertFalse(self.page.locator("#filters").is_visible())

    def test_every_control_has_a_name(self):
        self.open()
        nameless = self.page.evaluate("""[...document.querySelectorAll('select, input, button')].filter((control) =>
          !(control.labels?.length || control.getAttribute('aria-label') || control.textContent.trim())).map((control) => control.outerHTML)""")
        self.assertEqual(nameless, [])
        unnamed = self.page.evaluate("[...document.querySelectorAll('[role=img]')].filter((chart) => !chart.getAttribute('aria-labelledby')).length")
        self.assertEqual(unnamed, 0)


if __name__ == "__main__":
    unittest.main()
