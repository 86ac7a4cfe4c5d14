"""llmsweep suite: a folder of scenarios, each held to what it expects; and the scorecard."""

import io
import os
import pathlib
import subprocess
import tempfile
import unittest

import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SCENARIO = """
base: {task: step, model: llama-3.1-8b, device: h100-sxm, step: {phase: decode}}
axes: [step.batch: [1, 64]]
"""


def llmsweep(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True)


class Suite(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-suite-")
        self.home = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def run_suite(self, **scenarios):
        for name, expect in scenarios.items():
            (self.home / f"{name}.yaml").write_text(SCENARIO + "expect:\n" + "".join(f"  - {one}\n" for one in expect) if expect else SCENARIO)
        done = llmsweep("suite", self.home, "--format", "csv")
        return done, pd.read_csv(io.StringIO(done.stdout)).set_index("scenario") if done.stdout else None

    def test_what_holds_is_supported_and_what_does_not_says_why(self):
        done, table = self.run_suite(
            holds=["{of: step_time_s, above: 1e-3}", "{of: step_time_s, at: 1, over: 0, within: [1, 64], why: a batch shares the weights}"],
            fails=["{of: step_time_s, above: 1e-3}", "{of: step_time_s, at: 1, over: 0, below: 1}"], silent=[])
        self.assertEqual(done.returncode, 1)
        self.assertEqual((table.support["holds"], table.checks["holds"], table.points["holds"]), ("supported", "2/2", "2/2"))
        self.assertEqual((table.support["fails"], table.checks["fails"]), ("partly", "1/2"))
        self.assertIn("expected step_time_s[1] / step_time_s[0] below 1, found", table.trouble["fails"])
        self.assertEqual(table.support["silent"], "partly")
        self.assertIn("nothing is expected", table.trouble["silent"])
        self.assertIn("3 scenarios: 1 supported, 2 partly, 0 not", done.stderr)

    def test_figures_that_are_not_there_do_not_hold(self):
        done, table = self.run_suite(null=["{of: ttft_s, above: 0}"], unknown=["{of: step_time, above: 0}"], nowhere=["{of: step_time_s, at: 7, above: 0}"])
        self.assertEqual(list(table.support), ["partly"] * 3)
        self.assertIn("did you mean 'step_time_s'", table.trouble["unknown"])

    def test_expectations_change_nothing_about_the_points(self):
        plain, expecting = self.home / "plain.yaml", self.home / "expecting.yaml"
        plain.write_text(SCENARIO)
        expecting.write_text(SCENARIO + "expect: [{of: step_time_s, above: 0}]\n")
        self.assertEqual(llmsweep("run", plain, "-o", self.home / "run").returncode, 0)
        again = llmsweep("run", expecting, "-o", self.home / "run")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("2 already done", again.stdout)

    def test_mistakes_in_expectations_are_located(self):
        for line, words in (("{of: step_time_s}", "within which ends"), ("{of: step_time_s, withn: [1, 2]}", "did you mean 'within'?"),
                            ("{of: step_time_s, within: [2, 1]}", "ends before it starts"), ("{of: step_time_s, over: 1, above: 0}", "'over' without 'at'"),
                            ("{of: step_time_s, above: much}", "not a number"), ("{above: 1}", "of which column")):
            (self.home / "wrong.yaml").write_text(SCENARIO + f"expect:\n  - {line}\n")
            done = llmsweep("check", self.home / "wrong.yaml")
            self.assertEqual(done.returncode, 2, line)
            self.assertIn("wrong.yaml:5:", done.stderr)
            self.assertIn(words, done.stderr)

    def test_the_projects_own_scenarios_hold(self):
        done = llmsweep("suite", "--format", "csv")
        table = pd.read_csv(io.StringIO(done.stdout)).set_index("scenario")
        self.assertEqual(len(table), 40)
        found = table.support[table.support != "supported"].to_dict()
        self.assertEqual(found, {}, table.loc[list(found), "trouble"].to_dict())

    def test_every_scenario_of_the_list_has_a_line(self):
        source = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
        listed = (source / "tools" / "suite" / "suite_scenarios.h").read_text().count("    {\"")
        self.assertEqual(listed, 40)

    def test_a_scorecard_has_five_lines_with_figures(self):
        done = llmsweep("suite", "--only", "X1", "--scorecard", "--format", "csv")
        table = pd.read_csv(io.StringIO(done.stdout))
        self.assertEqual(list(table.score), ["fidelity", "composition", "generalisation", "deployment", "extensibility"])
        self.assertTrue(table.figures.str.contains(r"\d").all())

    def test_what_is_no_suite(self):
        self.assertEqual(llmsweep("suite", self.home / "nowhere").returncode, 2)
        self.assertEqual(llmsweep("suite", self.home).returncode, 2)
        self.assertEqual(llmsweep("suite", "--only", "Z9").returncode, 2)


if __name__ == "__main__":
    unittest.main()
