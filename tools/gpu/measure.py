#!/usr/bin/env python3
"""Measures a real NVIDIA GPU into kernel tables, host terms and whole model steps. See README.md beside this file.

    python3 tools/gpu/measure.py --out DIR [--part kernels,host,steps] [--plan heldout] [--families gemm_bf16,...]
                                 [--budget-s 540] [--resume]
"""
import argparse
import gc
import os
import sys
import threading
import time

START = time.monotonic()
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import plan_axes  # noqa: E402  (these are torch-free: --dry-run works anywhere)
import step_plan  # noqa: E402
import sweep_plan  # noqa: E402

PARTS = ("host", "kernels", "steps")
PART_SHARES = {"host": 0.06, "kernels": 0.66, "steps": 0.28}
WATCHDOG_GRACE = 15  # seconds past the budget before the process ends itself; every finished row is on disk by then
LEAST_BUDGET = 20
PROFILE_SECONDS = 15  # kept back from the steps for their kernel breakdown


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="folder for the tables; created if absent")
    parser.add_argument("--part", default=",".join(PARTS), help="comma-separated: host, kernels, steps")
    parser.add_argument("--plan", default="sweep", choices=[*plan_axes.PLANS, "drawn"],
                        help="shapes of the kernel part: the sweep and what lies between its grid points calibrate, held-out and drawn ones check")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn plan")
    parser.add_argument("--families", default="", help="groups of the kernel plan to run (see --dry-run); default all")
    parser.add_argument("--budget-s", type=float, default=540.0, help="wall seconds for everything, start-up included")
    parser.add_argument("--resume", action="store_true", help="add to the tables in --out, skipping rows they hold")
    parser.add_argument("--skip", default="", help="groups or parts to leave out; set by a restart after a fatal CUDA error")
    parser.add_argument("--dry-run", action="store_true", help="print the plan with estimated times; needs no GPU")
    parser.add_argument("--check", action="store_true", help="run the self-checks only (on a CPU: TRITON_INTERPRET=1)")
    arguments = parser.parse_args()
    arguments.part = [part for part in PARTS if part in arguments.part.split(",")]
    arguments.skip = [name for name in arguments.skip.split(",") if name]
    arguments.groups = chosen_groups(parser, arguments)
    if not (arguments.dry_run or arguments.check or arguments.out):
        parser.error("--out DIR is needed")
    return arguments


def chosen_groups(parser, arguments):
    drawn = arguments.plan == "drawn"
    plan = sweep_plan.build_plan(plan_axes.drawn(arguments.seed) if drawn else plan_axes.PLANS[arguments.plan])
    wanted = [name for name in arguments.families.split(",") if name] or list(plan)
    unknown = [name for name in wanted if name not in plan]
    if unknown:
        parser.error(f"unknown families {', '.join(unknown)}; known: {', '.join(plan)}")
    return {name: plan[name] for name in plan if name in wanted and name not in arguments.skip}


def print_plan(plan):
    total = 0.0
    for name, (share, rows) in plan.items():
        seconds = sum(sweep_plan.row_seconds(row) for row in rows)
        total += seconds
        print(f"{name:20} share {share:4.2f} {len(rows):6d} rows {seconds:7.1f} s")
    print(f"kernels: {sum(len(rows) for _, rows in plan.values())} rows, about {total:.0f} s without compilation")
    for model in step_plan.MODELS:
        steps = [step for _, step in step_plan.step_rows(model)]
        seconds = sum(step_plan.row_seconds(model, step) for step in steps)
        print(f"steps {model.name:26} {len(steps):4d} rows {seconds:7.1f} s")
    print("host terms: about 20 s; start-up and self-checks: about 20 s a run")


class Log:
    """To the screen, because a killed run returns only its screen, and to log.txt."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def __call__(self, message):
        line = f"[{time.monotonic() - START:7.1f}] {message}"
        print(line, flush=True)
        self.file.write(line + "\n")


def open_tables(arguments):
    import kernel_table as kt
    path = lambda name: os.path.join(arguments.out, name)
    if not arguments.resume and any(os.path.exists(path(f)) for f in ("kernels.csv", "steps.csv", "host_terms.csv")):
        sys.exit(f"{arguments.out} already holds tables: give --resume to add to them, or another --out")
    tables = {}
    if "kernels" in arguments.part:
        tables["kernels"] = kt.AppendTable(path("kernels.csv"), kt.KERNEL_COLUMNS, kt.kernel_key)
        tables["details"] = kt.AppendTable(path("kernel_details.csv"), kt.DETAIL_COLUMNS)
    if "host" in arguments.part:
        tables["host"] = kt.AppendTable(path("host_terms.csv"), kt.HOST_COLUMNS)
    if "steps" in arguments.part:
        tables["steps"] = kt.AppendTable(path("steps.csv"), kt.STEP_COLUMNS, kt.step_key)
        tables["step_kernels"] = kt.AppendTable(path("step_kernels.csv"), kt.STEP_KERNEL_COLUMNS)
    return tables


def run_self_checks(device, log, skip=()):
    from self_checks import TRITON_CHECKS, run_checks
    checks = dict(TRITON_CHECKS)
    if device == "cuda":
        from torch_checks import TORCH_CHECKS
        checks.update(TORCH_CHECKS)
    crashed = [name for name in checks if f"check-{name}" in skip]
    return run_checks(checks, device, log, crashed)


def context_is_alive(torch):
    try:
        torch.cuda.synchronize()
        return True
    except RuntimeError:
        return False


def part_deadlines(parts, end):
    """Moments by which each part must stop; parts that are not run leave their share to the others."""
    now, total = time.monotonic(), sum(PART_SHARES[part] for part in parts)
    deadlines, moment = {}, now
    for part in parts:
        moment += (end - now) * PART_SHARES[part] / total
        deadlines[part] = moment
    return deadlines


def describe_software(environment, lab, torch):
    import triton
    environment.describe(
        torch=torch.__version__, triton=triton.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(),
        multiprocessors=lab.timer.multiprocessors, l2_bytes=lab.timer.l2_bytes,
        graph_intercept_s=lab.timer.intercept, tiny_graph_kernel_s=lab.timer.tiny_call,
        l2="cold: flushed before each replay, weights/KV/streams rotated; activations shared; ':warm' rows reuse one copy")


def run_part(part, arguments, context, deadline):
    """One part with memory of its own; what it allocated is returned before the next."""
    import torch
    from lab import Lab
    tables, environment, log, failed = context
    began = time.monotonic()
    if part == "kernels":
        from kernel_sweep import KernelSweep
        lab = Lab(weights_gib=16, stream_gib=48, scratch_gib=16, fp8_gib=24)
        describe_software(environment, lab, torch)
        log(f"kernels: set up in {time.monotonic() - began:.1f} s; graph intercept {lab.timer.intercept * 1e6:.2f} us, "
            f"tiny kernel {lab.timer.tiny_call * 1e6:.2f} us")
        KernelSweep(lab, tables, environment, log).run(arguments.groups, failed, deadline)
    elif part == "host":
        from host_terms import measure_host
        lab = Lab(weights_gib=1, stream_gib=1, scratch_gib=1, fp8_gib=0)
        describe_software(environment, lab, torch)
        measure_host(lab, tables["host"], log, deadline)
        environment.part("host", began, tables["host"].count, time.monotonic() - began)
    else:
        from step_sweep import NEEDED_CHECKS, measure_steps, profile_steps
        if NEEDED_CHECKS & set(failed):
            raise RuntimeError(f"no steps: self-check failed: {', '.join(sorted(NEEDED_CHECKS & set(failed)))}")
        lab = Lab(weights_gib=36, stream_gib=64, scratch_gib=1, fp8_gib=0)
        describe_software(environment, lab, torch)
        measure_steps(lab, tables, (environment, log, failed), deadline - PROFILE_SECONDS)
        profile_steps(lab, tables["step_kernels"], (environment, log, failed), deadline)


def restart_without(name, arguments):
    """Replaces this process: a sticky CUDA error cannot be cleared from inside it."""
    left = arguments.budget_s - (time.monotonic() - START)
    if left < LEAST_BUDGET:
        sys.exit(3)
    parts = [part for part in arguments.part if part not in arguments.skip]
    command = [sys.executable, os.path.abspath(__file__), "--out", arguments.out, "--resume", "--part", ",".join(parts),
               "--budget-s", f"{left:.1f}", "--skip", ",".join(arguments.skip + [name])]
    command += ["--plan", arguments.plan, "--seed", str(arguments.seed)]
    if arguments.families:
        command += ["--families", arguments.families]
    os.execv(sys.executable, command)


def measure(arguments):
    os.makedirs(arguments.out, exist_ok=True)
    log = Log(os.path.join(arguments.out, "log.txt"))
    watchdog = threading.Timer(arguments.budget_s + WATCHDOG_GRACE, lambda: os._exit(4))
    watchdog.daemon = True
    watchdog.start()
    tables = open_tables(arguments)
    import torch
    from environment import Environment
    from kernel_sweep import PoisonedContext
    torch.set_grad_enabled(False)
    gc.disable()  # a collection inside a capture or a timed burst would be measured; one is forced between parts
    request = dict(part=arguments.part, plan=arguments.plan, families=arguments.families, budget_s=arguments.budget_s, skip=arguments.skip)
    environment = Environment(os.path.join(arguments.out, "environment.json"), request)
    log(f"torch {torch.__version__} on {torch.cuda.get_device_name(0)}; parts {', '.join(arguments.part)}; "
        f"budget {arguments.budget_s:.0f} s")
    failed = run_self_checks("cuda", log, arguments.skip)
    for name, reason in failed.items():
        environment.failed(f"self-check {name}", reason)
    if not context_is_alive(torch):
        environment.finish()
        # The first new failure broke the context; those after it only felt the consequence.
        culprit = next(name for name in failed if f"check-{name}" not in arguments.skip)
        restart_without(f"check-{culprit}", arguments)
    parts = [part for part in arguments.part if part not in arguments.skip]
    for part, deadline in part_deadlines(parts, START + arguments.budget_s).items():
        try:
            run_part(part, arguments, (tables, environment, log, failed), deadline)
        except Exception as error:
            log(f"{part}: {type(error).__name__}: {str(error)[:500]}")
            environment.failed(part, f"{type(error).__name__}: {str(error)[:500]}")
            if not context_is_alive(torch):
                environment.finish()
                arguments.part = parts[parts.index(part):]  # finished parts are not repeated
                restart_without(str(error) if isinstance(error, PoisonedContext) else part, arguments)
        gc.collect()
        torch.cuda.empty_cache()
    environment.finish()
    log(f"done: {', '.join(f'{name} {table.count} rows' for name, table in tables.items())}")


def main():
    arguments = parse_arguments()
    if arguments.dry_run:
        print_plan(arguments.groups)
    elif arguments.check:
        import torch
        sys.exit(1 if run_self_checks("cuda" if torch.cuda.is_available() else "cpu", print) else 0)
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
