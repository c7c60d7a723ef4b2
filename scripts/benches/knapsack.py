"""Table 1 of the 2007 paper: the greedy knapsack against branch and bound, on the same instances.

CS_i_p plans jobs that come 10 s apart to 100 machines with 40 licenses; how choices are measured
stands in grid/lab/knapsack_choices.py.
"""

from __future__ import annotations

from pathlib import Path

from grid.config.load import load_scenario
from grid.lab.knapsack_choices import knapsack_choices

SCENARIO = Path(__file__).parents[2] / "scenarios" / "knapsack.yaml"
JOBS = 700
RATIOS = ((0.40, 0.45), (0.55, 0.60))
SOLVERS = {"greedy": "greedy", "branch and bound": "exact"}


def measure() -> dict[str, float]:
    """Microseconds of a choice and the use of licenses per mille, by ratio and solver."""
    found: dict[str, float] = {}
    for least, most in RATIOS:
        for name, solver in SOLVERS.items():
            settings = {"knapsack": solver, "jobs": JOBS, "ratio_least": least, "ratio_most": most}
            scenario = load_scenario(SCENARIO, settings)
            record, clock = knapsack_choices(scenario, str(SCENARIO))
            where = f"{name}, {100 * least:.0f} to {100 * most:.0f} %"
            found[f"us a choice, {where}"] = 1e6 * clock["plan_seconds"]["knapsack"]["mean"]
            found[f"use per mille, {where}"] = 10 * record["metrics"]["grid"]["license_usage"]
    return found
