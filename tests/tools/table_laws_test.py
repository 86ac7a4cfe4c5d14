"""What must hold between the tables of any run, whatever its mechanisms: rows add up, times follow one another, prices are rent over
tokens, and nothing is used more than there is.

    LLMSWEEP_BINARY=build/release/llmsweep python tests/tools/table_laws_test.py DIR ...

holds other runs to the same laws.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import pandas as pd

BINARY = os.environ["LLMSWEEP_BINARY"]
SPEC = """
base:
  task: serve
  device: h100-sxm
  model: llama-3.1-8b
  serving: {from: vllm-v1, prefix_caching: true}
  load: {rate: 12 req/s, requests: 400, lengths: {distribution: lognormal, prompt: 600, output: 80}}
  slo: {ttft_p95: 300 ms}
  host: {front_end_per_message: 0 s}
  output: {requests: true, timeline: 1 s}
axes:
  - load.rate: [12 req/s, 60 req/s]
  - concat:
      - {name: plain}
      - {name: little room, base: {serving: {kv_blocks: 600}}}
      - {name: two pools, base: {prefill: {device: h200-sxm}}}
      - {name: two pools that push, base: {prefill: {}, transfer: {initiative: push, first_token: decode}}}
      - {name: draft, base: {speculation: {method: draft_model, draft: llama-3.2-1b, tokens: 3, acceptance: [0.8, 0.6]}}}
      - {name: drawn, base: {speculation: {method: ngram, tokens: 3, acceptance: 0.6, draws: drawn}}}
      - {name: tiers, base: {load: {turns: 4, think_time: 1 s}, serving: {kv_blocks: 2000, tiers: {host: 10 GB, store: 1 TB}}}}
      - {name: failures, base: {serving: {replicas: 3, failures: {mean_time_to_failure: 20 s, mean_time_to_repair: 5 s, attempts: 2}}}}
      - {name: a timetable, base: {serving: {replicas: 3, scaling: {policy: scheduled, schedule: "0:2, 5:3, 15:1"}}}}
      - {name: shed, base: {serving: {admission: {max_queue: 2}}}}
      - {name: classes, base: {load: {classes: {high: {share: 0.3}, low: {share: 0.3}}}, serving: {ordering: priority, preemption: priority}}}
      - {name: adapters, base: {load: {adapters: 30}, serving: {lora: {slots: 8}}}}
      - {name: answers, base: {load: {samples: 3}}}
      - {name: pipeline, base: {parallel: {pp: 2}}}
      - {name: overlapped, base: {serving: {mixed_attention: overlapped, max_num_batched_tokens: 1024}, load: {lengths: {distribution: fixed, prompt: 16384}}}}
      - {name: neighbour, base: {neighbour: {model: llama-3.2-3b, load: {rate: 2 req/s}}}}
"""
STEPS = """
base: {task: step, device: h100-sxm, model: mixtral-8x7b, parallel: {tp: 4}}
axes:
  - task: [step, request]
  - step.phase: {values: [prefill, decode], when: "task == 'step'"}
  - device: [a100-80gb-sxm, h100-sxm, mi300x]
  - step.batch: {values: [1, 32], when: "task == 'step'"}
"""
ENDS = {"finished": "requests_finished", "refused": "requests_refused", "failed": "requests_failed", "shed": "requests_shed"}
SHARES = ["utilization", "prefill_utilization", "encode_utilization", "kv_use", "kv_peak", "kv_waste", "prefill_kv_peak",
          "prefix_hit_rate", "history_hit_rate", "adapter_hit_rate", "slo_attainment", "slo_attainment_high",
          "slo_attainment_normal", "slo_attainment_low", "tenant_fairness", "idle_rank_share", "draft_share", "availability",
          "transfer_share", "encode_share", "clock_mean", "model_flops_utilization", "hardware_flops_utilization",
          "memory_bandwidth_utilization", "bubble_share", "training_goodput"]


class Tables:
    """The tables of a run, and the laws that they break."""

    def __init__(self, folder):
        self.broken = []
        self.all = pd.read_parquet(folder / "points").set_index("index").sort_index()
        self.points = self.all[self.all.status == "ok"]
        self.kernels, self.requests, self.timeline = (self.read(folder / name) for name in ("kernels", "requests", "timeline"))

    def read(self, folder):
        if not any(folder.glob("*.parquet")):
            return None
        rows = pd.read_parquet(folder)
        return rows[rows["index"].isin(self.points.index)]

    def __getitem__(self, column):
        """A column of the points that work; without it, nothing is known."""
        return self.points.get(column, pd.Series(np.nan, index=self.points.index))

    def never(self, wrong, what, *columns):
        wrong = wrong[wrong].index
        if len(wrong):
            where = {column: self[column].get(wrong[0]) for column in columns}
            self.broken.append(f"{what}: {len(wrong)} rows, the first of index {wrong[0]} {where}")

    def below(self, less, more, slack=1e-9):
        self.never(self[less] > self[more] * (1 + slack) + 1e-12, f"{less} is above {more}", less, more)

    def equal(self, column, figure, slack=1e-9, floor=1e-12):
        self.never((self[column] - figure).abs() > slack * figure.abs() + floor, f"{column} is not what follows from others",
                   column)

    def hold(self):
        broken_status = (self.all.status == "ok") != self.all.reason_class.isna()
        self.never(broken_status | (self.all.status == "failed"), "a point fails, or has figures and a reason")
        self.figures()
        self.prices()
        if self.kernels is not None:
            self.hold_kernels()
        if self.requests is not None:
            self.hold_requests()
        if self.timeline is not None:
            rows = self.timeline.set_index("index")
            self.never((rows.batch > rows.running) | (rows.decoding > rows.running), "more decode than are inside")
            self.never((rows.kv_use < 0) | (rows.kv_use > 1 + 1e-9), "the timeline has more KV than room")
        return self.broken

    def figures(self):
        for name in SHARES:
            self.never((self[name] < 0) | (self[name] > 1 + 1e-9), f"{name} is no share", name)
        for name in ("ttft", "tpot", "itl", "e2e", "queue"):
            for less, more in (("p50", "p90"), ("p90", "p95"), ("p95", "p99")):
                self.below(f"{name}_{less}_s", f"{name}_{more}_s")
        for column in self.points.columns:
            interval = column.endswith("_low_s") and "_p95_" not in column  # else of class low
            if interval and column.replace("_low_s", "_s") in self.points:
                self.below(column, column.replace("_low_s", "_s"))
                self.below(column.replace("_low_s", "_s"), column.replace("_low_s", "_high_s"))
        for less, more in (("queue_s", "ttft_s"), ("ttft_s", "e2e_s"), ("kv_use", "kv_peak"), ("measured_from_s", "measured_until_s"),
                           ("goodput_req_per_s", "throughput_req_per_s"), ("output_tokens_per_s", "total_tokens_per_s")):
            if "task" not in self.points or more != "total_tokens_per_s":  # a step that reads makes a token, too
                self.below(less, more)
        tiers = sum(self[f"{tier}_hit_rate"].fillna(0) for tier in ("peer", "host", "disk", "store"))
        self.never(tiers > self["prefix_hit_rate"] + 1e-12, "tiers have hits that the cache has not", "prefix_hit_rate")
        parts = sum(self[part] for part in ("weights_bytes", "kv_cache_bytes", "activations_bytes", "reserved_bytes"))
        self.never(parts > self["memory_used_bytes"] * (1 + 1e-9), "parts of the memory exceed it", "memory_used_bytes")
        self.below("memory_used_bytes", "device.memory_capacity")

    def prices(self):
        per_second = self["rent_usd_per_hour"] / 3600
        self.equal("price_usd_per_mtok", per_second / self["total_tokens_per_s"] * 1e6, 1e-6)
        self.equal("price_usd_per_mtok_output", per_second / self["output_tokens_per_s"] * 1e6, 1e-6)
        self.equal("goodput_per_usd", self["goodput_req_per_s"] / per_second, 1e-6)
        fixed = self["replicas_mean"].isna() & self["prefill_replicas_mean"].isna()
        self.equal("device_hours", (self["devices"] * self["makespan_s"] / 3600).where(fixed))
        # Other deployments may be of other devices; what is under repair draws nothing.
        alone = self["prefill_devices"].isna() & self["encode_s"].isna() & self["draft.device"].isna()
        seconds = (self["device_hours"] * 3600).where(alone)
        rest = seconds * self["device.idle_power"] * self["availability"].fillna(1)
        self.never(self["energy_j"] < rest * (1 - 1e-9), "devices draw less than at rest", "energy_j")
        self.never(self["energy_j"] > seconds * self["device.power_limit"] * (1 + 1e-9), "devices draw more than the limit",
                   "energy_j", "device_hours")

    def hold_kernels(self):
        rows = self.kernels.set_index("index")
        for column in ("calls", "seconds", "hidden_s", "flops", "bytes", "energy_j"):
            self.never(rows[column] < 0, f"{column} of a kernel is negative")
        self.never((rows.low_ratio > 1 + 1e-9) | (rows.high_ratio < 1 - 1e-9), "a kernel's interval is without its time")
        seconds = rows.seconds.groupby(level=0).sum()
        self.equal("step_time_s", seconds)
        if "makespan_s" not in self.points and "iteration_time_s" not in self.points:
            self.equal("e2e_s", seconds, 1e-6)
        for family in ("gap", "host"):
            if "iteration_time_s" not in self.points:
                self.equal(f"{family}_time_s", rows.seconds.where(rows.family == family, 0).groupby(level=0).sum())

    def hold_requests(self):
        rows = self.requests.set_index("index")
        self.never(rows.set_index("request", append=True).index.duplicated() & pd.Series(True, rows.index), "a request is there twice")
        for end, column in ENDS.items():
            self.equal(column, (rows.end == end).groupby(level=0).sum())
        done = rows[rows.end == "finished"]
        late = 1e-9
        self.never((done.arrival_s > done.scheduled_s + late) | (done.scheduled_s > done.first_token_s + late) |
                   (done.first_token_s > done.finish_s + late), "a request's moments are out of order")
        self.never(done.read_s > done.received_s + late, "KV comes before it was read")
        self.never(done.cached_tokens > done.prompt_tokens, "more is cached than asked")
        measured = done[done.measured]
        latency = self["host.request_latency"].fillna(0)
        ttft, e2e = measured.first_token_s - measured.arrival_s, measured.finish_s - measured.arrival_s
        self.equal("requests_measured", ttft.groupby(level=0).size())
        self.equal("ttft_s", ttft.groupby(level=0).mean() + latency)
        self.equal("e2e_s", e2e.groupby(level=0).mean() + latency)
        self.equal("queue_s", (measured.scheduled_s - measured.arrival_s).groupby(level=0).mean())
        # Little's law over the whole run, where a stated number came and all were answered (else some are inside at its end). Clients
        # may have answers later than the engine has made them.
        all_done = (self["requests_finished"] == rows.groupby(level=0).size()) & (self["requests_finished"] == self["load.requests"])
        stays = ((done.finish_s - done.arrival_s).groupby(level=0).sum() / self["makespan_s"]).where(all_done)
        self.never(self["concurrency"] > stays * (1 + 1e-6), "more are inside than stay", "concurrency")
        self.equal("concurrency", stays.where(self["host.front_end_per_message"] == 0), 1e-6)


class TableLaws(unittest.TestCase):
    def of(self, spec):
        with tempfile.TemporaryDirectory(prefix="llmsweep-laws-") as scratch:
            home = pathlib.Path(scratch)
            (home / "spec.yaml").write_text(spec)
            subprocess.run([BINARY, "run", home / "spec.yaml", "-o", home / "run"], check=True, stdout=subprocess.DEVNULL)
            return Tables(home / "run")

    def test_served_loads(self):
        tables = self.of(SPEC)
        self.assertEqual((tables.all.status == "ok").sum(), 32, tables.all.reason.dropna().to_dict())
        self.assertEqual("\n".join(tables.hold()), "")

    def test_steps_and_requests(self):
        tables = self.of(STEPS)
        self.assertGreater(len(tables.points), 6)
        self.assertEqual("\n".join(tables.hold()), "")


if __name__ == "__main__" and sys.argv[1:]:
    for run in sys.argv[1:]:
        print(run, *Tables(pathlib.Path(run)).hold() or ["holds every law"], sep="\n  ")
elif __name__ == "__main__":
    unittest.main()
