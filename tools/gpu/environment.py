"""What the numbers were measured on: driver, versions, and clocks, power and temperature while each part ran.

`nvidia-smi` only reads here; nothing on the card is ever set.
"""
import ctypes
import datetime
import json
import platform
import statistics
import subprocess
import threading
import time

SAMPLED = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "clocks_event_reasons.active"]
FIXED = ["name", "driver_version", "memory.total", "power.limit", "clocks.max.sm", "clocks.max.mem",
         "persistence_mode", "ecc.mode.current"]


def _query(fields):
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=20)
        if answer.returncode != 0:
            return {"error": (answer.stdout + answer.stderr).strip()[:300]}
        return dict(zip(fields, (value.strip() for value in answer.stdout.strip().splitlines()[0].split(","))))
    except (OSError, subprocess.TimeoutExpired, IndexError) as error:
        return {"error": repr(error)}


class ClockSampler:
    """Reads clocks twice a second in another process: the timed process is not disturbed."""

    def __init__(self):
        self.samples = []
        self.process = None
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", f"--query-gpu={','.join(SAMPLED)}", "--format=csv,noheader,nounits", "-lms", "500"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self._read, daemon=True).start()
        except OSError:
            pass

    def _read(self):
        for line in self.process.stdout:
            fields = [field.strip() for field in line.split(",")]
            try:
                self.samples.append((time.monotonic(), *(float(f) for f in fields[:4]), fields[4]))
            except (ValueError, IndexError):
                continue

    def summary(self, since):
        """Least, median and greatest of each quantity since a moment, and which clock-limiting reasons were seen."""
        recent = [sample for sample in list(self.samples) if sample[0] >= since]
        if not recent:
            return {"samples": 0}
        result = {"samples": len(recent)}
        for i, name in enumerate(("sm_mhz", "memory_mhz", "power_w", "temperature_c"), start=1):
            values = [sample[i] for sample in recent]
            result[name] = [min(values), statistics.median(values), max(values)]
        reasons = [sample[5] for sample in recent]
        # Bit 0x4 is the software power cap: the chip slows its clock to stay inside its power limit.
        result["reasons"] = {reason: reasons.count(reason) for reason in sorted(set(reasons))}
        return result

    def stop(self):
        if self.process:
            self.process.terminate()


class EnergyMeter:
    """The card's energy counter, which moves ten times a second: windows start and end where it moves."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.library.nvmlInit_v2()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device))

    def _joules(self):
        millijoules = ctypes.c_ulonglong()
        self.library.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(millijoules))
        return millijoules.value * 1e-3

    def _next_move(self):
        before, began = self._joules(), time.monotonic()
        while (now := self._joules()) == before and time.monotonic() - began < 1:
            time.sleep(1e-3)
        return now, time.monotonic()

    def mean_watts(self, delay, window):
        """Mean power over about `window` seconds that begin `delay` seconds from now."""
        time.sleep(delay)
        joules, began = self._next_move()
        time.sleep(window - 0.1)
        end_joules, ended = self._next_move()
        return (end_joules - joules) / (ended - began)


class Environment:
    """environment.json: rewritten after every part, so that a killed run leaves it valid and current."""

    def __init__(self, path, request):
        self.path = path
        self.sampler = ClockSampler()
        self.record = {"runs": []}
        try:
            with open(path) as file:
                self.record = json.load(file)
        except (OSError, ValueError):
            pass
        self.run = {"started": _now(), "request": request, "before": _query(SAMPLED), "parts": []}
        self.record["runs"].append(self.run)
        self.record["gpu"] = _query(FIXED)
        self.record["host"] = {"cpu": _cpu(), "python": platform.python_version()}

    def describe(self, **facts):
        """Facts about software and method, from the part that knows them."""
        self.record.setdefault("method", {}).update(facts)
        self.write()

    def part(self, name, since, rows, seconds):
        self.run["parts"].append({"part": name, "rows": rows, "seconds": round(seconds, 2),
                                  "clocks": self.sampler.summary(since)})
        self.write()

    def failed(self, name, reason):
        self.run.setdefault("failed", {})[name] = reason
        self.write()

    def finish(self):
        self.run["after"] = _query(SAMPLED)
        self.run["ended"] = _now()
        self.write()
        self.sampler.stop()

    def write(self):
        with open(self.path, "w") as file:
            json.dump(self.record, file, indent=1)


def _now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _cpu():
    try:
        with open("/proc/cpuinfo") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        return ""
