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
PANELS = ["overview", "pareto", "best", "heat", "breakdown", "sensitivity", "roofline", "mix", "efficiency"]


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


@unittest.skipUnless(sync_playwright and CHROMIUM and CHARTS.exists(),
                     "no Chromium, nothing to drive it, or no chart library: tools/test --with browser installs them")
class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-browser-")
        cls.home = pathlib.Path(cls.scratch.name)
        for name, spec in (("steps", SPEC), ("served", SERVED), ("together", TOGETHER), ("alone", SERVED.split("axes:")[0])):
            (cls.home / f"{name}.yaml").write_text(spec)
            assert llmsweep("run", cls.home / f"{name}.yaml", "-o", cls.home / name).returncode == 0
            assert llmsweep("report", cls.home / name, "-o", cls.home / f"{name}.html").returncode == 0
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
        self.assertEqual(charts, ["pareto", "heat", "breakdown", "sensitivity", "roofline", "mix", "efficiency"])
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
        self.after_update(lambda: self.page.select_option("#filters .control select", "step_time_s"))
        self.page.wait_for_selector("#limits input[type=range]")
        everything = self.shown()
        self.page.focus("#limits input[type=range]")
        self.after_update(lambda: self.page.keyboard.press("Home"))
        self.assertLess(self.shown(), everything)
        self.assertGreaterEqual(self.shown(), 1)

    def test_a_link_keeps_the_view(self):
        self.open()
        self.after_update(lambda: self.page.locator(".tick", has_text="l4").locator("input").uncheck())
        self.after_update(lambda: self.page.select_option("#pareto .control select >> nth=0", "price_usd_per_mtok"))
        link = self.page.evaluate("view.link('heat')")
        count = self.shown()
        points = self.panel_rows("pareto")
        self.page.goto("about:blank")
        self.page.goto(link)
        self.page.wait_for_selector("html[data-ready]")
        self.assertEqual(self.shown(), count)
        self.assertEqual(self.panel_rows("pareto"), points)
        self.assertEqual(self.page.input_value("#pareto .control select >> nth=0"), "price_usd_per_mtok")

    def test_a_link_to_what_is_not_there_does_no_harm(self):
        self.open(fragment="#x=nothing&y=device&colour=%3Cb%3E&pins=9999.-1.x&m.none=1~&f.axis.device=99.x&heat=toString&hrule=__proto__&latency=9&at=nowhere")
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
        self.assertEqual(self.page.evaluate("[pareto.x(), pareto.y()]"), ["output_per_user_tokens_per_s", "output_per_device_tokens_per_s"])
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
