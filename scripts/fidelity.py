"""How close live runs come to virtual time; see scripts/fidelity."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from grid.config.load import load_scenario
from grid.results.definitions import label_of
from grid.runtime.clock import Pace
from grid.runtime.run import Live, Run, execute

ROWS = ("user_success_ratio", "user_utility", "submission_time_mean", "execution_time_mean")


def main() -> None:
    """Print a table with a row for each figure and a column for each speed-up."""
    parser = argparse.ArgumentParser(prog="scripts/fidelity")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("speedups", type=float, nargs="+", metavar="SPEEDUP")
    parser.add_argument("--placement", default="entity")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    given = parser.parse_args()
    scenario = load_scenario(given.scenario, given.settings)
    virtual = execute(scenario, str(given.scenario), in_process=True)
    runs = []
    for speedup in given.speedups:
        with tempfile.TemporaryDirectory() as folder:
            live = Live(Pace(speedup), Path(folder) / "journals")
            placement = given.placement
            runs.append(
                execute(
                    scenario, str(given.scenario), in_process=False, live=live, placement=placement
                )
            )
    speeds = [f"live, {speedup:g} times" for speedup in given.speedups]
    print(_row(["", "virtual", *speeds]))
    print(_row(["---"] * (2 + len(runs))))
    for name in ROWS:
        expected = _figure(virtual, name)
        cells = [_beside(_figure(run, name), expected) for run in runs]
        print(_row([label_of(name), f"{expected:.4f}", *cells]))
    for what in ("messages", "timers"):
        late: list[dict[str, Any]] = [run.manifest["live"]["late"][what] for run in runs]
        cells = [
            " / ".join(f"{one[f'{q}_s'] * 1000:.1f}" for q in ("p50", "p99", "max")) for one in late
        ]
        print(_row([f"{what} late, p50 / p99 / max (ms)", "0", *cells]))
    shares = [f"{run.manifest['live']['late']['share']:.1%}" for run in runs]
    print(_row(["late, share of the jobs' time at most", "0", *shares]))


def _figure(run: Run, name: str) -> float:
    value = run.metrics["grid"][name]
    assert value is not None
    return float(value)


def _beside(found: float, expected: float) -> str:
    return f"{found:.4f} ({found / expected - 1:+.2%})" if expected else f"{found:.4f}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
