# %% [markdown]
# # What should the next GPU have twice of?
#
# A vendor may double one thing of an H100: its memory bandwidth, its memory, its arithmetic or its links. Llama 3.1 70B in fp8 is to be
# served at 1,500 tokens of context. Which doubling helps, and for whom: many users who wait, or few who do not?
#
# Run it as it is (`python tools/python/example_codesign.py FOLDER`), or cell by cell in an editor that knows `# %%`. It writes three figures.

# %%
import pathlib
import sys

import matplotlib
import pandas as pd

import llmsweep

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
BASE = {
    "task": "step",
    "model": "llama-3.1-70b",
    "quant": {"weights": "fp8", "activations": "fp8", "kv": "fp8"},
    "host": "vllm-v1",
    "step": {"phase": "decode", "context": 1500},
}
CHIPS = {
    "H100": {},
    "2x bandwidth": {"device.memory_bandwidth": "6.7 TB/s"},
    "2x memory": {"device.memory_capacity": "160 GB"},
    "2x arithmetic": {"device.peak.bf16": "1978 TFLOP/s", "device.peak.fp8": "3958 TFLOP/s"},
    "2x links": {"device.scale_up.bandwidth": "900 GB/s"},
}
BATCHES = sorted({round(1.12**i) for i in range(62)})  # 1 to 1,000
COLOURS = dict(zip(CHIPS, ("#5f6b76", "#0072b2", "#e69f00", "#009e73", "#d55e00")))
DPI = 80

# %% [markdown]
# ## Every chip with every layout and batch
# One call for all of them; a chip is the H100 of the library with one field changed.

# %%
names, scenarios = [], []
for name, changes in CHIPS.items():
    for tp in (1, 2, 4, 8):
        for batch in BATCHES:
            names.append(name)
            scenarios.append({"device": "h100-sxm", "parallel.tp": tp, "step.batch": batch, **changes})
COLUMNS = ["status", "parallel.tp", "step.batch", "step_time_s", "per_device_tokens_per_s"]
points = llmsweep.evaluate(scenarios, BASE, columns=COLUMNS).to_pandas()
points["chip"] = names
points = points[points.status == "ok"].copy()
points["per_user"] = 1 / points.step_time_s


def front(frame):
    """Points that no other beats in both: fastest user first."""
    frame = frame.sort_values(["per_user", "per_device_tokens_per_s"], ascending=False)
    return frame[frame.per_device_tokens_per_s > frame.per_device_tokens_per_s.cummax().shift(fill_value=0)]


# %% [markdown]
# ## Figure 1: what each chip can do
# To the right, tokens come fast for one user; upwards, a device makes many for all.

# %%
figure, ax = plt.subplots(figsize=(7, 4.2))
for name, group in points.groupby("chip", sort=False):
    best = front(group)
    # The H100 on top and dashed: where a change helps nobody, its line is the H100's.
    style = {"linestyle": "--", "zorder": 3} if name == "H100" else {}
    ax.plot(best.per_user, best.per_device_tokens_per_s, color=COLOURS[name], label=name, linewidth=2, **style)
ax.set(xscale="log", yscale="log", xlabel="tokens a second for one user", ylabel="tokens a second of one device",
       title="Llama 3.1 70B, fp8: one thing doubled", ylim=(50, None))
ax.set_xticks([10, 20, 30, 50, 70, 100])
ax.set_yticks([50, 100, 200, 500, 1000, 2000, 4000])
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
ax.grid(alpha=0.3)
ax.legend()
figure.savefig(FOLDER / "codesign_front.png", dpi=DPI, bbox_inches="tight")

# %% [markdown]
# ## Figure 2: what it is worth
# A promise is a least speed for every user. How many more tokens does a device make than an H100 that keeps the same promise?

# %%
PROMISES = [10, 15, 20, 30, 40, 50, 60, 70, 80, 90]


def most(frame, promise):
    kept = frame[frame.per_user >= promise]
    return kept.per_device_tokens_per_s.max() if len(kept) else float("nan")


worth = pd.DataFrame({name: [most(group, promise) for promise in PROMISES] for name, group in points.groupby("chip", sort=False)}, index=PROMISES)
gain = worth.div(worth["H100"], axis=0)
figure, ax = plt.subplots(figsize=(7, 3.6))
for name in list(CHIPS)[1:]:
    ax.plot(gain.index, gain[name], "o-", color=COLOURS[name], label=name)
ax.axhline(1, color=COLOURS["H100"], linewidth=1)
ax.set(xlabel="promise: tokens a second for every user", ylabel="tokens of a device, H100 = 1", title="What doubling is worth, by promise")
ax.grid(alpha=0.3)
ax.legend()
figure.savefig(FOLDER / "codesign_worth.png", dpi=DPI, bbox_inches="tight")
print(gain.round(2).to_string())

# %% [markdown]
# ## Figure 3: why
# Where the time of the best design of each chip goes, at a promise of 40 tokens a second.

# %%
PROMISE = 40
best = {name: group[group.per_user >= PROMISE].sort_values("per_device_tokens_per_s").iloc[-1] for name, group in points.groupby("chip", sort=False)}
shares = {}
for name, design in best.items():
    base = {**BASE, "device": {"from": "h100-sxm", **{path.removeprefix("device."): value for path, value in CHIPS[name].items()}},
            "parallel": {"tp": int(design["parallel.tp"])}, "step": {**BASE["step"], "batch": int(design["step.batch"])}}
    run = llmsweep.run({"base": base}, progress=False)
    seconds = llmsweep.breakdown(run).iloc[0]
    shares[f"{name}: tp {base['parallel']['tp']}, batch {base['step']['batch']}"] = 1e3 * seconds
families = pd.DataFrame(shares).fillna(0).T
main = families.sum().sort_values(ascending=False).index[:5]
families = families[main].assign(rest=families.drop(columns=main).sum(axis=1))
figure, ax = plt.subplots(figsize=(7, 3))
families[::-1].plot.barh(stacked=True, ax=ax, width=0.7, color=["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#b0b8bf"])
ax.set(xlabel="milliseconds of a step", title=f"Best designs at {PROMISE} tokens a second for every user")
ax.legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.18))
figure.savefig(FOLDER / "codesign_why.png", dpi=DPI, bbox_inches="tight")
