"""llmsweep from Python: run a sweep, read its tables, compare runs, evaluate lists of points.

    import llmsweep
    run = llmsweep.run({"base": {...}, "axes": [...]}, "runs/mine")
    run.points.pandas()
    llmsweep.pareto(run, minimize=["price_usd_per_mtok"], maximize=["output_tokens_per_s"])
"""

from llmsweep.environment import DesignEnvironment
from llmsweep.evaluate import evaluate
from llmsweep.program import LlmsweepError, program
from llmsweep.questions import Comparison, Replay, breakdown, compare, pareto, plot, replay
from llmsweep.runs import Run, open_run, run
from llmsweep.server import MistakenScenarios
from llmsweep.table import Table

__all__ = [
    "Comparison", "DesignEnvironment", "LlmsweepError", "MistakenScenarios", "Replay", "Run", "Table", "breakdown", "compare", "evaluate", "open_run", "pareto",
    "plot", "program", "replay", "run",
]
