"""The Python package: the tables of a run in every dataframe, scenarios evaluated in order, and a wheel that carries the program."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["LLMSWEEP_SOURCE_DIR"])
PACKAGE = SOURCE / "tools" / "python"
sys.path.insert(0, str(PACKAGE))

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import numpy  # noqa: E402
import pandas as pd  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

import llmsweep  # noqa: E402
from llmsweep.server import Server, _table as server_table  # noqa: E402

BASE = {"task": "step", "model": "llama-3.1-8b", "step": {"phase": "decode"}}
SPEC = {"base": {**BASE, "device": "h100-sxm"}, "axes": [{"parallel.tp": [1, 2, 3]}, {"step.batch": [1, 16, 256]}]}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="llmsweep-python-")
        cls.home = pathlib.Path(cls.scratch.name)
        cls.run_of_dict = llmsweep.run(SPEC, cls.home / "run", progress=False)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_every_dataframe_holds_the_same_points(self):
        points = llmsweep.open_run(self.home / "run").points
        frame = points.pandas()
        self.assertEqual(len(frame), 9)
        times = frame.set_index("index").step_time_s
        self.assertEqual(points.arrow(["index", "step_time_s"]).num_rows, 9)
        lazily = points.polars().select("index", "step_time_s").collect().to_pandas().set_index("index").step_time_s
        pd.testing.assert_series_equal(lazily, times)
        asked = points.duckdb().filter("status = 'ok'").project('"index", step_time_s').df().set_index("index").step_time_s
        pd.testing.assert_series_equal(asked.sort_index(), times.dropna().sort_index())

    def test_columns_of_one_value_are_those_that_decoding_gives(self):
        file, = (self.home / "run" / "points").glob("*.parquet")
        quick, decoded = server_table(file.read_bytes()), pq.read_table(file)
        self.assertTrue(quick.schema.equals(decoded.schema, check_metadata=True))
        # As text, which tells -0 from 0 and takes NaN for itself.
        self.assertEqual(repr(quick.to_pylist()), repr(decoded.to_pylist()))

    def test_units_and_descriptions_come_from_the_files(self):
        self.assertEqual(self.run_of_dict.points.units["step_time_s"], "s")
        self.assertEqual(self.run_of_dict.kernels.units["seconds"], "s")
        self.assertIn("time of the step", self.run_of_dict.points.descriptions["step_time_s"])

    def test_a_file_and_a_dict_give_the_same_run(self):
        file = self.home / "sweep.yaml"
        file.write_text("base: {task: step, model: llama-3.1-8b, step: {phase: decode}, device: h100-sxm}\n"
                        "axes: [parallel.tp: [1, 2, 3], step.batch: [1, 16, 256]]\n")
        other = llmsweep.run(file, self.home / "other", progress=False)
        self.assertTrue(llmsweep.compare(self.run_of_dict, other, tolerance="0").same)

    def test_answers_are_those_of_the_program(self):
        front = llmsweep.pareto(self.run_of_dict, minimize=["step_time_s"], maximize=["per_device_tokens_per_s"])
        frame = self.run_of_dict.points.pandas()
        self.assertIn(frame.set_index("index").step_time_s.idxmin(), set(front["index"]))
        sums = llmsweep.breakdown(self.run_of_dict).sum(axis=1)
        ok = frame[frame.status == "ok"].set_index("index").step_time_s
        pd.testing.assert_series_equal(sums.sort_index(), ok.sort_index(), check_names=False)
        self.assertEqual(list(llmsweep.breakdown(self.run_of_dict, [0]).index), [0])
        self.assertEqual(llmsweep.plot(self.run_of_dict, "step_time_s", "memory_used_bytes", color="step.batch").get_xlabel(), "step_time_s [s]")

    def test_a_folder_is_as_good_as_a_run_and_one_figure_is_a_list_of_one(self):
        folder = self.run_of_dict.folder
        asked = {"minimize": ["step_time_s"]}
        pd.testing.assert_frame_equal(llmsweep.pareto(str(folder), **asked), llmsweep.pareto(self.run_of_dict, **asked))
        self.assertTrue(llmsweep.compare(folder, self.run_of_dict).same)
        self.assertEqual(list(llmsweep.breakdown(str(folder), [0]).index), [0])
        with self.assertRaisesRegex(llmsweep.LlmsweepError, r"minimize is a list: \['step_time_s'\]"):
            llmsweep.pareto(self.run_of_dict, minimize="step_time_s")
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "not a run folder"):
            llmsweep.compare(folder.parent, self.run_of_dict)

    def test_scenarios_come_back_in_their_order(self):
        frame = self.run_of_dict.points.pandas().set_index(["parallel.tp", "step.batch"])
        scenarios = [{"device": "h100-sxm", "parallel": {"tp": tp}, "step": {"batch": batch}} for batch in (256, 1, 16, 1) for tp in (3, 1, 2)]
        scenarios.insert(5, {"device": "h100-sxm", "step.batch": 16})  # sets other fields: another group
        rows = llmsweep.evaluate(scenarios, BASE).to_pandas()
        self.assertEqual(list(rows["index"]), list(range(13)))
        for scenario, (_, row) in zip(scenarios, rows.iterrows()):
            tp = scenario.get("parallel", {"tp": 1})["tp"]
            batch = scenario["step.batch"] if "step.batch" in scenario else scenario["step"]["batch"]
            expected = frame.loc[tp, batch]
            self.assertEqual((row.key, row.status), (expected.key, expected.status))
            self.assertTrue(row.step_time_s == expected.step_time_s or expected.status != "ok")

    def test_one_scenario_and_equal_ones(self):
        one = llmsweep.evaluate([{"device": "h100-sxm"}], BASE, columns=["status", "step_time_s"])
        three = llmsweep.evaluate([{"device": "h100-sxm"}] * 3, BASE, columns=["status", "step_time_s"])
        self.assertEqual(three.column("step_time_s").to_pylist(), one.column("step_time_s").to_pylist() * 3)
        self.assertEqual(llmsweep.evaluate([]).num_rows, 0)

    def test_maps_that_are_values_stay_whole(self):
        base = {"task": "request", "device": "h200-sxm", "model": "llama-3.1-8b"}
        # {} is a role like the main deployment, which is not the same as none.
        alike, none = llmsweep.evaluate([{"prefill": {}}, {"prefill": "none"}], base, columns=["prefill.present", "ttft_s"]).to_pylist()
        self.assertEqual((alike["prefill.present"], none["prefill.present"]), (True, False))
        self.assertGreater(alike["ttft_s"], none["ttft_s"])
        config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                  "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192}
        (self.home / "config.json").write_text(json.dumps(config))
        rows = llmsweep.evaluate([{"model": {"hf_config": str(self.home / "config.json")}}, {}], base, columns=["parameters"])
        self.assertEqual(*rows["parameters"].to_pylist())

    def test_a_file_that_has_changed_is_read_again(self):
        device, trace = self.home / "mine.yaml", self.home / "mine.csv"
        served = {"task": "serve", "device": "h100-sxm", "model": "llama-3.1-8b", "load": {"arrivals": "trace", "trace": str(trace)}}
        for bandwidth, requests in ((2e12, 3), (4e12, 5), (3e12, 4)):
            device.write_text(f"from: h100-sxm\nmemory_bandwidth: {bandwidth / 1e12} TB/s\n")
            trace.write_text("arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{i},9,9\n" for i in range(requests)))
            for scenario, base in (({}, {**BASE, "device": str(device)}), ({"device": str(device)}, BASE)):
                row, = llmsweep.evaluate([scenario], base, columns=["device.memory_bandwidth"]).to_pylist()
                self.assertEqual(row["device.memory_bandwidth"], bandwidth)
            row, = llmsweep.evaluate([{}], served, columns=["requests_finished"]).to_pylist()
            self.assertEqual(row["requests_finished"], requests)

    def test_paths_in_a_dict_are_relative_to_the_working_directory(self):
        here = self.home / "here"
        (here / "specs" / "devices").mkdir(parents=True)
        (here / "specs" / "devices" / "mine.yaml").write_text("from: h100-sxm\nmemory_bandwidth: 2 TB/s\n")
        (here / "requests.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,9,9\n1,9,9\n")
        base = {"task": "serve", "device": "mine", "model": "llama-3.1-8b", "load": {"arrivals": "trace", "trace": "requests.csv"}}
        before = os.getcwd()
        os.chdir(here)
        try:
            run = llmsweep.run({"base": base}, self.home / "relative", progress=False)
            row, = llmsweep.evaluate([{}], base, columns=["key", "requests_finished"]).to_pylist()
            self.assertEqual(sorted(os.listdir()), ["requests.csv", "specs"])
        finally:
            os.chdir(before)
        self.assertEqual(row["requests_finished"], 2)
        self.assertEqual(run.points.arrow(["key"])["key"].to_pylist(), [row["key"]])

    def test_whether_a_scenario_is_accepted_does_not_depend_on_its_neighbours(self):
        base = {"task": "train", "device": "h100-sxm", "model": "llama-3.1-8b", "cluster": "dgx-h100"}
        # A schedule counts only where there is a pipeline.
        scenarios = [{"parallel.dp": 8 // pp, "parallel.pp": pp, "train.schedule": "gpipe"} for pp in (1, 2)]
        together = llmsweep.evaluate(scenarios, base, columns=["key", "iteration_time_s"])
        alone = [llmsweep.evaluate([scenario], base, columns=["key", "iteration_time_s"]) for scenario in scenarios]
        for name in ("key", "iteration_time_s"):
            self.assertEqual(together[name].to_pylist(), [row[name][0].as_py() for row in alone])

    def test_a_run_that_fails_says_why_with_its_progress_shown_too(self):
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "did you mean 'step'"):
            llmsweep.run({"base": {**BASE, "task": "stp"}}, self.home / "wrong", progress=True)

    def test_a_column_that_is_not_there_is_a_mistake_with_what_was_meant(self):
        points = self.run_of_dict.points
        for ask in (points.pandas, points.arrow):
            with self.assertRaisesRegex(llmsweep.LlmsweepError, "there is no column 'step_times_s'\n  hint: did you mean 'step_time_s'"):
                ask(["index", "step_times_s"])

    def test_numbers_of_numpy_are_numbers(self):
        scenarios = [{"device": "h100-sxm", "step.batch": batch} for batch in (4, 8)]
        arrays = [{"device": "h100-sxm", "step.batch": batch} for batch in numpy.array([4, 8])]
        keys = llmsweep.evaluate(scenarios, BASE)["key"]
        self.assertEqual(keys, llmsweep.evaluate(arrays, BASE)["key"])
        self.assertEqual(keys, llmsweep.evaluate(iter(arrays), BASE)["key"])
        run = llmsweep.run({"base": {**BASE, "device": "h100-sxm"}, "axes": [{"step.batch": numpy.array([4, 8])}]}, self.home / "numpy")
        self.assertEqual(run.points.arrow(["key"])["key"].to_pylist(), keys.to_pylist())

    def test_scenarios_that_cannot_be_read_are_named(self):
        scenarios = [{"device": "h100-sxm", "step.batch": 1}] * 5
        scenarios += [{"step.batch": 1, "device": "h100-smx"}, {"device": "l4", "step": {"batch": "many"}}]
        for wrong, place, words in ((scenarios[:6], 5, "did you mean 'h100-sxm'?"), (scenarios[:5] + scenarios[6:], 5, "'many'")):
            with self.assertRaises(llmsweep.MistakenScenarios) as caught:
                llmsweep.evaluate(wrong, BASE)
            self.assertEqual(caught.exception.scenarios, [place])
            self.assertIn(f"scenario {place}: error: ", str(caught.exception))
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(llmsweep.MistakenScenarios) as caught:
            llmsweep.evaluate([{"step.batch": 1}, {"step.batch": -1}, {"nope": 1}, {"device": "x"}], {**BASE, "device": "h100-sxm"})
        self.assertEqual(caught.exception.scenarios, [1, 2, 3])
        for wrong in (scenarios[0], "device"):
            with self.assertRaisesRegex(llmsweep.LlmsweepError, "scenarios are a list"):
                llmsweep.evaluate(wrong, BASE)
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "columns are a list"):
            llmsweep.evaluate(scenarios[:1], BASE, columns="status")
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "did you mean 'step_time_s'"):
            llmsweep.evaluate(scenarios[:1], BASE, columns=["step_time"])
        with self.assertRaisesRegex(llmsweep.MistakenScenarios, "scenario 5: error: step.batch is not a finite number"):
            llmsweep.evaluate(scenarios[:5] + [{"device": "l4", "step.batch": float("nan")}], BASE)
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "says 'step.batch' twice: 1 and 2"):
            llmsweep.evaluate([{"device": "l4", "step.batch": 1, "step": {"batch": 2}}], BASE)
        with self.assertRaisesRegex(llmsweep.LlmsweepError, "did you mean 'model'"):
            llmsweep.evaluate(scenarios[:1], {"modell": "llama-3.1-8b"})
        self.assertEqual(llmsweep.evaluate(scenarios[:1], BASE)["status"].to_pylist(), ["ok"])

    def test_a_child_that_dies_is_an_error_and_the_next_call_has_another(self):
        script = self.home / "dies"
        script.write_text("#!/bin/sh\nread line\necho 'no more' >&2\nexit 7\n")
        script.chmod(0o755)
        child = Server()
        binary = os.environ["LLMSWEEP_BINARY"]
        try:
            os.environ["LLMSWEEP_BINARY"] = str(script)
            for _ in range(2):
                with self.assertRaisesRegex(llmsweep.LlmsweepError, "ended with 7.*\n.*no more") as caught:
                    child.ask(BASE, {"device": ["l4"]}, None)
                self.assertEqual(caught.exception.exit_code, 7)
        finally:
            os.environ["LLMSWEEP_BINARY"] = binary
        self.assertEqual(child.ask(BASE, {"device": ["l4"]}, None).num_rows, 1)
        child._child.kill()
        child._child.wait()
        self.assertEqual(child.ask(BASE, {"device": ["l4", "l4"]}, None).num_rows, 2)
        child.close()
        self.assertEqual(child.ask(BASE, {"device": ["l4"]}, ["status"]).column_names, ["status"])
        child.close()

    def test_a_request_is_a_line_and_damage_is_an_answer(self):
        lines = ['{"base": {"device": "l4", "model": "llama-3.1-8b"}, "columns": ["status"]}', "no json", '{"set": {"step.batch": 4}}',
                 '{"set": {"device": ["l4"], "step.batch": [1, 2]}}', '{"bas": {}}', "", '{"base": {"device": "l4"}}', "[" * 100000]
        done = subprocess.run([os.environ["LLMSWEEP_BINARY"], "evaluate", "-j", "1"], input="\n".join(lines).encode(), capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        header, _, rest = done.stdout.partition(b"\n")
        size = json.loads(header)["bytes"]
        self.assertEqual(rest[:4], b"PAR1")
        errors = [json.loads(line)["error"] for line in rest[size:].splitlines()]
        self.assertEqual(len(errors), 6)
        for error, words in zip(errors, ("not a JSON object", "not a list", "has 2 values, others have 1", "'bas'", "names no model", "JSON")):
            self.assertIn(words, error)

    def test_specs_of_the_library_can_be_changed(self):
        rows = llmsweep.evaluate([{"device": {"from": "h100-sxm", "memory_bandwidth": f"{tb} TB/s"}} for tb in (2, 4)], BASE).to_pandas()
        self.assertGreater(rows.step_time_s[0], rows.step_time_s[1])
        by_path = llmsweep.evaluate([{"device.memory_bandwidth": f"{tb} TB/s"} for tb in (2, 4)], {**BASE, "device": "h100-sxm"}).to_pandas()
        self.assertEqual(list(by_path.step_time_s), list(rows.step_time_s))

    def test_mistakes_are_the_programs_own_words(self):
        with self.assertRaises(llmsweep.LlmsweepError) as caught:
            llmsweep.run({"base": {"modell": "x"}}, self.home / "broken", progress=False)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("did you mean 'model'?", str(caught.exception))
        with self.assertRaises(llmsweep.LlmsweepError):
            llmsweep.open_run(self.home / "nowhere")
        with self.assertRaises(llmsweep.LlmsweepError):
            self.run_of_dict.requests.pandas()

    def test_a_point_of_a_finished_run_has_requests_after_all(self):
        spec = {"base": {"task": "serve", "model": "llama-3.1-8b", "device": "h100-sxm", "load": {"from": "chat", "requests": 60}}}
        served = llmsweep.run(spec, self.home / "served", progress=False)
        replayed = llmsweep.replay(served, 0, every=1.0)
        row = served.points.pandas().iloc[0]
        frame = replayed.requests.to_pandas()
        measured = frame[frame.measured]
        self.assertEqual(len(frame), row.requests_finished)
        self.assertAlmostEqual((measured.first_token_s - measured.arrival_s).mean(), row.ttft_s, places=9)
        self.assertGreater(replayed.timeline.num_rows, 0)
        with self.assertRaises(llmsweep.LlmsweepError):
            llmsweep.replay(self.run_of_dict, 0)

    def test_an_environment_pays_for_better_designs(self):
        environment = llmsweep.DesignEnvironment(
            BASE, {"device": ["l4", "h100-sxm"], "step.batch": [1, 64]}, reward=lambda row: row["per_device_tokens_per_s"])
        environment.reset()
        self.assertEqual(environment.shape, (2, 2))
        slow = environment.step((0, 0))
        fast = environment.step((1, 1))
        self.assertGreater(fast.reward, slow.reward)
        self.assertEqual(fast.info["step.batch"], 64)
        together = environment.step_batch([(0, 0), (1, 1)])
        self.assertEqual([step.reward for step in together], [slow.reward, fast.reward])

    def test_sql_asks_the_tables(self):
        binary = os.environ["LLMSWEEP_BINARY"]
        environment = {**os.environ, "LLMSWEEP_PYTHON": sys.executable}
        file = self.home / "answer.csv"
        query = "select index, sum(seconds) as s from points join kernels using (index, key) where status = 'ok' group by index order by index"
        done = subprocess.run([binary, "sql", self.home / "run", query, "-o", file], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        frame = self.run_of_dict.points.pandas()
        ok = frame[frame.status == "ok"].sort_values("index")
        self.assertTrue(((pd.read_csv(file).s - ok.step_time_s.values).abs() < 1e-12).all())
        wrong = subprocess.run([binary, "sql", self.home / "run", "select nothing from points"], capture_output=True, text=True, env=environment)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("nothing", wrong.stderr)
        # DuckDB takes brackets and stars of a path for patterns: this one would match another run.
        llmsweep.run({"base": {**BASE, "device": "l4"}}, self.home / "a1", progress=False)
        llmsweep.run({"base": {**BASE, "device": "h100-sxm"}}, self.home / "a[1]", progress=False)
        asked = subprocess.run([binary, "sql", self.home / "a[1]", "select device from points", "-o", file], capture_output=True, text=True,
                               env=environment)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertEqual(list(pd.read_csv(file).device), ["h100-sxm"])
        for name in ("answer.json", "answer.md", "answer"):
            asked = subprocess.run([binary, "sql", self.home / "run", "select 1", "-o", self.home / name], capture_output=True, text=True,
                                   env=environment)
            self.assertEqual(asked.returncode, 2)
            self.assertIn("name it .csv, .csv.gz or .parquet", asked.stderr)
            self.assertFalse((self.home / name).exists())

    def test_the_wheel_installs_and_carries_the_program(self):
        build = pathlib.Path(os.environ["LLMSWEEP_BINARY"]).parent
        if not (build / "cmake_install.cmake").exists():
            self.skipTest("the program was not built in a CMake folder")
        there = self.home / "site"
        environment = {**os.environ, "LLMSWEEP_BUILD": str(build)}
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
             "--target", there, PACKAGE], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        alone = {name: value for name, value in os.environ.items() if name != "LLMSWEEP_BINARY"}
        script = ("import llmsweep; assert llmsweep.__file__.startswith(__import__('sys').argv[1]); print(llmsweep.program());"
                  "print(llmsweep.evaluate([{'device': 'h100-sxm', 'model': 'llama-3.1-8b'}])['status'])")
        ran = subprocess.run([sys.executable, "-c", script, there], capture_output=True, text=True, cwd=self.home,
                             env={**alone, "PYTHONPATH": str(there)})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(str(there / "llmsweep" / "program" / "bin" / "llmsweep"), ran.stdout)
        self.assertIn("ok", ran.stdout)

    def test_the_co_design_example_draws_its_figures(self):
        done = subprocess.run([sys.executable, PACKAGE / "example_codesign.py", self.home], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("front", "worth", "why"):
            self.assertGreater((self.home / f"codesign_{name}.png").stat().st_size, 5000)
        # The README says that bandwidth is worth most, whatever the promise.
        for line in done.stdout.splitlines()[1:]:
            promise, h100, bandwidth, *others = map(float, line.split())
            self.assertGreaterEqual(bandwidth, max(others), promise)

    def test_optuna_finds_the_cheapest_design(self):
        try:
            import optuna
        except ImportError:
            self.skipTest("there is no Optuna: tools/test --with python installs it")
        sys.path.insert(0, str(PACKAGE))
        import example_optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        best = example_optuna.search(optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1)))
        everything = [{"device": d, "parallel.tp": tp, "step.batch": b} for d in ("a100-80gb-sxm", "h100-sxm", "h200-sxm")
                      for tp in (2, 4, 8) for b in range(1, 257)]
        rows = llmsweep.evaluate(everything, example_optuna.BASE).to_pylist()
        cheapest = min(example_optuna.price(row) for row in rows)
        self.assertLess(best.value, 1.1 * cheapest)

    def test_scipy_finds_the_cheapest_batch(self):
        try:
            from scipy.optimize import differential_evolution
        except ImportError:
            self.skipTest("there is no SciPy: tools/test --with python installs it")
        base = {**BASE, "device": "h100-sxm"}

        def price(batches):
            """Of a whole generation at once, as the README shows it."""
            rows = llmsweep.evaluate([{"step.batch": int(batch)} for batch in batches.flat], base, columns=["status", "step_time_s", "price_usd_per_mtok"])
            return numpy.array([row["price_usd_per_mtok"] if row["status"] == "ok" and row["step_time_s"] < 0.01 else 1e9 for row in rows.to_pylist()])

        found = differential_evolution(price, [(1, 512)], integrality=[True], vectorized=True, updating="deferred", polish=False, maxiter=12, popsize=8, seed=1)
        cheapest = price(numpy.arange(1, 513)).min()
        self.assertLess(found.fun, 1.02 * cheapest)


if __name__ == "__main__":
    unittest.main()
