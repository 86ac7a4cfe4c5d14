"""llmsweep import sglang, genai-perf: what other load generators measured becomes a run to compare with, as vLLM's does."""

import json
import pathlib
import tempfile
import unittest

import numpy as np
import pandas as pd

from import_test import SPEC, llmsweep, vllm_result


def sglang_result(**more):
    """In the form that 'python -m sglang.bench_serving --output-file' writes, a line."""
    draw = vllm_result()
    kept = ("backend", "request_rate", "duration", "completed", "total_input_tokens", "total_output_tokens", "request_throughput", "output_throughput",
            "mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms")
    return {**{name: draw[name] for name in kept}, "dataset_name": "random", "max_concurrency": None, "input_throughput": 200.0,
            "mean_e2e_latency_ms": 700.0, "median_e2e_latency_ms": 650.0, "std_e2e_latency_ms": 90.0, "p99_e2e_latency_ms": 900.0, "mean_tpot_ms": 15.0,
            "median_tpot_ms": 14.0, "p99_tpot_ms": 22.0, "mean_itl_ms": 15.5, "median_itl_ms": 14.5, "p95_itl_ms": 19.0, "p99_itl_ms": 21.0,
            "concurrency": 1.4, "accept_length": None, **more}


def genai_perf_result(unit="ms", scale=1.0):
    """In the form of profile_export_genai_perf.json and of AIPerf's."""
    def times(*values):
        return {"unit": unit, **dict(zip(("avg", "p50", "p90", "p95", "p99"), (value * scale for value in values))), "min": 0, "max": 1e9, "std": 1}
    return {"request_throughput": {"unit": "requests/sec", "avg": 2.0}, "request_latency": times(700, 650, 800, 850, 900),
            "time_to_first_token": times(200, 180, 300, 350, 400), "inter_token_latency": times(15, 14, 18, 19, 22),
            "output_token_throughput": {"unit": "tokens/sec", "avg": 40.0}, "output_sequence_length": {"unit": "tokens", "avg": 20.0},
            "request_count": {"unit": "count", "avg": 40}, "input_config": {"model": ["m"]}}


class OtherLoads(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="llmsweep-import-")
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name)
        (self.home / "served.yaml").write_text(SPEC)

    def imported(self, tool, text, code=0):
        (self.home / "result.json").write_text(text)
        folder = self.home / f"measured-{len(list(self.home.iterdir()))}"
        done = llmsweep("import", tool, self.home / "served.yaml", self.home / "result.json", "-o", folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return pd.read_parquet(folder / "points").iloc[0] if code == 0 else done.stderr

    def test_what_sglang_sums_up(self):
        row = self.imported("sglang", json.dumps(sglang_result()) + "\n")
        self.assertEqual((row.tier, round(row.e2e_s, 12), row.e2e_p50_s, row.e2e_p99_s), ("measured", 0.7, 0.65, 0.9))
        self.assertEqual((row.tpot_s, row.tpot_p99_s, row.itl_s, row.itl_p95_s), (0.015, 0.022, 0.0155, 0.019))
        self.assertTrue(np.isnan(row.e2e_p90_s))
        self.assertAlmostEqual(row.total_tokens_per_s, row.output_tokens_per_s + 200)

    def test_single_requests_of_sglang(self):
        details = vllm_result()
        row = self.imported("sglang", json.dumps(sglang_result(**{name: details[name] for name in ("input_lens", "output_lens", "ttfts", "itls", "errors")})))
        self.assertAlmostEqual(row.ttft_s, float(np.mean(details["ttfts"])))
        self.assertAlmostEqual(row.e2e_p90_s, float(np.percentile([t + sum(gaps) for t, gaps in zip(details["ttfts"], details["itls"])], 90)))

    def test_a_file_that_sglang_added_to_is_refused_with_the_way_out(self):
        line = json.dumps(sglang_result()) + "\n"
        self.assertEqual(self.imported("sglang", line * 3, code=2),
                         f"{self.home}/result.json:2:1: error: the file has 3 results, one a line\n"
                         "  hint: give each its own file, as in 'sed -n 2p FILE > second.jsonl'\n")
        self.assertIn("this is not a result of 'sglang.bench_serving --output-file'", self.imported("sglang", "{}", code=2))

    def test_what_genai_perf_sums_up_in_its_units(self):
        for unit, scale in (("ms", 1), ("ns", 1e6), ("s", 1e-3)):
            row = self.imported("genai-perf", json.dumps(genai_perf_result(unit, scale)))
            for name, value in (("ttft_s", 0.2), ("ttft_p99_s", 0.4), ("tpot_s", 0.015), ("tpot_p95_s", 0.019), ("e2e_p90_s", 0.8), ("makespan_s", 20.0),
                                ("output_tokens_per_s", 40.0), ("throughput_req_per_s", 2.0)):
                self.assertAlmostEqual(row[name], value, msg=name)
            self.assertEqual(row.requests_finished, 40)
            self.assertTrue(np.isnan(row.itl_s))

    def test_what_is_no_summary_of_genai_perf_is_refused(self):
        for damaged, said in (("{}", "this is not a summary of GenAI-Perf or AIPerf"),
                              (json.dumps(genai_perf_result("hours")), "'time_to_first_token' is in 'hours'"),
                              (json.dumps({**genai_perf_result(), "request_count": 40}), "'request_count' has no unit and no mean"),
                              (json.dumps({**genai_perf_result(), "goodput": {"unit": "x", "avg": "many"}}), "'goodput' has a 'avg' that is not a number"),
                              (json.dumps({**genai_perf_result(), "request_throughput": {"unit": "x", "avg": 0}}), "is 0: nothing was measured")):
            self.assertIn(said, self.imported("genai-perf", damaged, code=2))


if __name__ == "__main__":
    unittest.main()
