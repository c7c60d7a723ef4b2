"""C07's Table 1: the greedy knapsack against branch & bound, in use of licences and in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from grid.lab.claims import Part, Where
from grid.lab.comparisons import close, compared, not_run, wider_gap
from grid.lab.papers.c07_points import EXACT, GREEDY
from grid.lab.statistics import Region
from grid.lab.study import Study

LICENSES_CLOSE = 5.5
"""Licence uses at most so many points apart are called close; the paper's are 1 to 5 apart, each of
them rounded."""
SAVED = 90.0
"""Much cheaper: at least so many per cent of the solver's processor time saved (the paper: 97)."""
ON_AVERAGE = 3.5
"""Points, or per cent, by which greedy is behind on average over the ratios: the paper's 3, as
rounded."""
USES = {"40-45 %": (0.82, 0.87), "45-50 %": (0.84, 0.88), "50-55 %": (0.87, 0.89),
        "55-60 %": (0.87, 0.88)}  # fmt: skip
"""Table 1: average use of licences, greedy and branch & bound."""
LEAST = {"40-45 %": (0.54, 0.57), "45-50 %": (0.59, 0.62), "50-55 %": (0.62, 0.64),
         "55-60 %": (0.63, 0.64)}  # fmt: skip
"""Table 1: smallest use of licences, greedy and branch & bound."""
BEST = dict.fromkeys(USES, (1.00, 1.00))
"""Table 1: best use of licences, greedy and branch & bound."""
COLUMNS = (
    ("Sml", "least_usage", LEAST), ("Avg", "license_usage", USES), ("Bst", "best_usage", BEST),
)  # fmt: skip
TIMES_MS = {"40-45 %": (11.23, 496.53), "45-50 %": (10.40, 353.51), "50-55 %": (10.42, 331.28),
            "55-60 %": (11.90, 556.96)}  # fmt: skip
"""Table 1: average times, greedy and branch & bound."""


def ratios(study: Study) -> Sequence[str]:
    """The ranges of licence ratios, as the study has them."""
    return study.axes["license_ratio"]


def knapsack_use(study: Study, realised: Study) -> Iterator[Part]:
    """C07-1: the licence use of the same instances, ratio by ratio and on average (Table 1)."""
    for ratio in ratios(study):
        first, second = knapsacks(ratio)
        greedy, exact = USES.get(ratio, (0.0, 0.0))
        part = close(
            study, "license_usage", first, second, LICENSES_CLOSE, setting=f"licence ratio {ratio}",
            unit="points", paper=f"close: {100 * greedy:.0f} against {100 * exact:.0f} %",
        )  # fmt: skip
        if part.ours:
            part = replace(part, ours=f"{part.ours} %{_proven(study, second)}", unit="")
        yield part
    yield average_distance(study)
    yield average_distance(study, relative=True)
    yield wider_gap(
        study, "license_usage", knapsacks, ratios(study)[0], ratios(study)[-1],
        what="greedy is closer where licences are less scarce",
        setting=f"{ratios(study)[0]} against {ratios(study)[-1]}",
        unit="points behind; judged: the second - the first",
        paper="the smaller the contention, the closer: 5 points at 40-45 %, 1 at 55-60 %",
    )  # fmt: skip
    for column, metric, figures in COLUMNS:
        yield from table_one(study, metric, f"{column} at a choice", figures)
    yield from table_one(realised, "license_usage", "use realised on the farm", USES)


def table_one(
    study: Study, metric: str, column: str, figures: dict[str, tuple[float, float]]
) -> Iterator[Part]:
    """Are the figures of a column of Table 1 ours, mean over the ratios?

    Nothing where runs do not measure it: what is realised has no smallest and no best use.
    """
    places = [ratio for ratio in ratios(study) if ratio in figures]
    for number, solver in enumerate((GREEDY, EXACT)):
        wheres = [knapsacks(ratio)[number] for ratio in places]
        theirs = [100 * figures[ratio][number] for ratio in places]
        by_ratio = [study.values(metric, where) for where in wheres]
        mean = sum(theirs) / len(theirs)
        region = Region(mean - LICENSES_CLOSE, mean + LICENSES_CLOSE)
        what = f"{solver['knapsack']}: {column} (within {LICENSES_CLOSE:g} points)"
        setting, told = "mean over the licence ratios", ", ".join(f"{one:.0f}" for one in theirs)
        paper = f"figures of the table, {column}: {told} %"
        seeds = [seed for seed in by_ratio[0] if all(seed in values for values in by_ratio)]
        if not seeds:
            if not any(study.keys(where) for where in wheres):
                yield not_run(study, metric, wheres, what, setting, paper)
            continue
        means = [sum(values[seed] for seed in seeds) / len(seeds) for values in by_ratio]
        values = {seed: sum(one[seed] for one in by_ratio) / len(by_ratio) for seed in seeds}
        ours = ", ".join(f"{one:.1f}" for one in means)
        yield compared(values, region, what, setting, "% of licences", ours, paper)


def _proven(study: Study, where: Where) -> str:
    """How many of branch & bound's choices are known to be best."""
    share = study.interval("proven_percent", where)
    if share is None:
        return ""
    return f"; branch & bound proved {share.mean:.0f} % of its choices best"


def knapsacks(ratio: str) -> tuple[Where, Where]:
    """Greedy and branch & bound at a range of licence ratios."""
    return {**GREEDY, "license_ratio": ratio}, {**EXACT, "license_ratio": ratio}


def average_distance(study: Study, relative: bool = False) -> Part:
    """By how much greedy is behind, mean over the ratios: in points, or `relative` to the other."""
    unit = "% of the use by branch & bound" if relative else "points"
    metric, what = "license_usage", f"greedy at most {ON_AVERAGE:g} {unit} behind"
    gaps = []
    for ratio in ratios(study):
        greedy, exact = (study.values(metric, where) for where in knapsacks(ratio))
        gaps.append(
            {
                seed: (exact[seed] - greedy[seed]) * (100 / exact[seed] if relative else 1.0)
                for seed in exact
                if seed in greedy
            }
        )
    seeds = [seed for seed in gaps[0] if all(seed in gap for gap in gaps)]
    paper = f"3 % distant on average: the table has {'3.4 %' if relative else '3.0 points'}"
    setting = "mean over the licence ratios"
    if not seeds:
        wheres = [where for ratio in ratios(study) for where in knapsacks(ratio)]
        return not_run(study, metric, wheres, what, setting, paper)
    values = {seed: sum(gap[seed] for gap in gaps) / len(gaps) for seed in seeds}
    return compared(values, Region(high=ON_AVERAGE), what, setting, unit, paper=paper)


def knapsack_cost(study: Study) -> Iterator[Part]:
    """C07-2: the processor time of the solvers alone, ratio by ratio.

    Branch and bound stops at a budget of nodes where it has not proven its choice by then. Its
    real time would be longer, so the share saved is a lower bound, which can show that the claim
    holds; the share of proven choices stands beside it.
    """
    metric = "plan_seconds_mean"
    for ratio in ratios(study):
        first, second = ({**solver, "license_ratio": ratio} for solver in (GREEDY, EXACT))
        what, setting = f"greedy saves at least {SAVED:g} % of the time", f"licence ratio {ratio}"
        cheap, dear = study.values(metric, first), study.values(metric, second)
        saved = {seed: 100 * (1 - cheap[seed] / dear[seed]) for seed in cheap if dear.get(seed)}
        short, long = TIMES_MS.get(ratio, (1.0, 1.0))
        paper = f"97 % saved: {100 * (1 - short / long):.1f} % ({short:g} against {long:g} ms)"
        if not saved:
            yield not_run(study, metric, [first, second], what, setting, paper)
            continue
        measured = f"{sum(saved.values()) / len(saved):.2f} % of the time saved"
        measured += _proven(study, second)
        yield compared(saved, Region(low=SAVED), what, setting, "", measured, paper)
