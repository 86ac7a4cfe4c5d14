"""A picture of a report's page, for a text: the whole window at a panel, or that panel's chart alone.

    python tools/report/picture.py first_sweep.html report_page.png --panel pareto
    python tools/report/picture.py serving_front.html serving_front.png --panel pareto --chart

Needs Chromium and Playwright, which `tools/test --with browser` installs.
"""

import argparse
import pathlib
import shutil

from playwright.sync_api import sync_playwright

if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("page", type=pathlib.Path)
    arguments.add_argument("picture")
    arguments.add_argument("--panel", default="overview", help="the name after #at= of its link")
    arguments.add_argument("--chart", action="store_true", help="its chart alone")
    arguments.add_argument("--width", type=int, default=1200)
    arguments.add_argument("--height", type=int, default=800)
    given = arguments.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": given.width, "height": given.height})
        page.goto(f"{given.page.resolve().as_uri()}#at={given.panel}")
        page.wait_for_selector("html[data-ready]")
        page.wait_for_timeout(1000)  # the chart is painted in the frames that follow
        shown = page.locator(f"#{given.panel} .chart") if given.chart else page
        shown.screenshot(path=given.picture)
        browser.close()
