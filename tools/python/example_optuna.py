"""Which design serves a token cheapest within 25 ms a step? Optuna asks, llmsweep answers, a batch at a time."""

import math

import llmsweep

BASE = {"task": "step", "model": "llama-3.1-70b", "host": "vllm-v1", "step": {"phase": "decode", "context": 2048}}
LIMIT_S = 0.025
BATCH, ROUNDS = 20, 5


def scenario(trial):
    return {
        "device": trial.suggest_categorical("device", ["a100-80gb-sxm", "h100-sxm", "h200-sxm"]),
        "parallel.tp": trial.suggest_categorical("tp", [2, 4, 8]),
        "step.batch": trial.suggest_int("batch", 1, 256, log=True),
    }


def price(row):
    """Dollars a million tokens; without bound where the point does not work or is too slow."""
    works = row["status"] == "ok" and row["step_time_s"] <= LIMIT_S
    return row["price_usd_per_mtok"] if works else math.inf


def search(study):
    for _ in range(ROUNDS):
        trials = [study.ask() for _ in range(BATCH)]
        rows = llmsweep.evaluate([scenario(trial) for trial in trials], BASE, columns=["status", "step_time_s", "price_usd_per_mtok"])
        for trial, row in zip(trials, rows.to_pylist()):
            study.tell(trial, price(row))
    return study.best_trial


if __name__ == "__main__":
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    best = search(optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1)))
    print(best.params, f"{best.value:.3f} USD a million tokens")
