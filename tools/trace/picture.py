"""A part of a trace as a picture, for a text: tracks from top to bottom, slices as bars, counters as lines.

    python tools/trace/picture.py trace.json picture.png [--from 1.5] [--to 2.5] [--rows 24]
"""

import argparse
import collections
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = ["#5f6b73", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a7a00", "#7f5ac7", "#b03a5b", "#00868b", "#9c5221",
           "#a6a6a6", "#4477aa", "#bbaa33"]
FIRST_REQUEST = 1000  # threads from here on hold requests


def read(file):
    with open(file) as stream:
        events = json.load(stream)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    return events, names


def depth_of(slices):
    """Slices of one track with how deep each lies within others."""
    open_ends = []
    for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        while open_ends and open_ends[-1] <= event["ts"] + 1e-9:
            open_ends.pop()
        yield event, len(open_ends)
        open_ends.append(event["ts"] + event["dur"])


def tracks_in(events, names, begin, end, most):
    tracks = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["ts"] < end and event["ts"] + event["dur"] > begin and event["dur"] > 0:
            tracks[event["pid"], event["tid"]].append(event)
    chosen = sorted(tracks, key=lambda t: (t[0], t[1]))
    return {(pid, tid): tracks[pid, tid] for pid, tid in chosen[:most]}


def draw(file, picture, begin, end, most):
    events, names = read(file)
    last = max(e["ts"] + e.get("dur", 0) for e in events)
    begin, end = begin * 1e6, last if end is None else end * 1e6
    tracks = tracks_in(events, names, begin, end, most)
    counters = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "C" and begin <= event["ts"] <= end:
            for name, value in event["args"].items():
                counters[event["pid"], f"{event['name']} [{name}]"].append((event["ts"], value))
    shown = [key for key in sorted(counters) if "power" in key[1] or "KV" in key[1]][:2]
    heights = [0.9 + max(depth for _, depth in depth_of(slices)) for slices in tracks.values()]
    figure, axes = plt.subplots(1 + len(shown), 1, sharex=True, figsize=(10, 1.2 + 0.24 * sum(heights) + 0.7 * len(shown)),
                                gridspec_kw={"height_ratios": [0.24 * sum(heights) + 0.2] + [0.7] * len(shown), "hspace": 0.08}, squeeze=False)
    top, colours, ticks = axes[0, 0], {}, []
    place = 0.0
    for (pid, tid), slices in tracks.items():
        deepest = 0
        for event, depth in depth_of(slices):
            deepest = max(deepest, depth)
            kind = "waiting" if event["cat"] == "queue" else event["cat"]
            colour = colours.setdefault(kind, COLOURS[len(colours) % len(COLOURS)])
            left, right = max(event["ts"], begin), min(event["ts"] + event["dur"], end)
            top.barh(place + depth, (right - left) / 1e3, left=left / 1e3, height=0.86, color=colour, edgecolor="white", linewidth=0.3)
            if right - left > 0.012 * len(event["name"]) * (end - begin) / 2:
                top.text((left + right) / 2e3, place + depth, event["name"], ha="center", va="center", fontsize=6.5, color="white", clip_on=True)
        row = "steps" if tid < FIRST_REQUEST and pid >= 10 else "request"
        ticks.append((place, names.get(pid, str(pid)) + (f", {row}" if "replica" in names.get(pid, "") else "")))
        place += deepest + 1.1
    labels = [text if i == 0 or ticks[i - 1][1] != text else "" for i, (_, text) in enumerate(ticks)]
    top.set_yticks([at for at, _ in ticks], labels, fontsize=8)
    top.legend([plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()], list(colours), ncols=8, fontsize=7,
               loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    top.invert_yaxis()
    top.set_xlim(begin / 1e3, end / 1e3)
    for axis, key in zip(axes[1:, 0], shown):
        times, values = zip(*counters[key])
        axis.step([t / 1e3 for t in times], values, where="post", color=COLOURS[0])
        axis.set_ylim(0, 1.15 * max(max(values), 1e-9))
        axis.set_ylabel(key[1].replace(" [", "\n["), fontsize=7, rotation=0, ha="right", va="center")
        axis.tick_params(labelsize=7)
    axes[-1, 0].set_xlabel("milliseconds", fontsize=8)
    axes[-1, 0].tick_params(labelsize=8)
    figure.savefig(picture, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("trace")
    arguments.add_argument("picture")
    arguments.add_argument("--from", dest="begin", type=float, default=0, help="seconds")
    arguments.add_argument("--to", dest="end", type=float, help="seconds")
    arguments.add_argument("--rows", type=int, default=24, help="most tracks")
    given = arguments.parse_args()
    draw(given.trace, given.picture, given.begin, given.end, given.rows)
