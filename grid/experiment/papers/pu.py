"""Partial utility (PU): selections compared on four virtual organizations."""

from __future__ import annotations

from collections.abc import Iterator

from grid.experiment.claims import (
    Check,
    Claim,
    Finding,
    Paper,
    Studies,
    all_hold,
    below,
    difference,
    mean,
    ordered,
)
from grid.experiment.study import Study
from grid.experiment.sweep_page import series_of
from grid.report.charts import Labels, bars
from grid.report.style import Picture

MAIN = "partial-utility"
PU, BU, MM = ({"scheduler": name} for name in ("PU", "BU", "MM"))


def success(study: Study) -> Finding:
    """PU-1: every job of every repetition, but for matchmaking."""
    checks = []
    for where in (PU, BU):
        ratio = mean(study, "user_success_ratio", where)
        text = f"{where['scheduler']} completes {100 * ratio.mean:.4g} %"
        checks.append(Check(text, ratio.low == ratio.high == 1.0))
    checks.append(below(study, "user_success_ratio", MM, PU, factor=100))
    return all_hold(checks)


def utility(study: Study) -> Finding:
    """PU-2: the mean utility, as the words around Eq. 3 say; its literal formula beside it."""
    literal = ", ".join(
        f"{where['scheduler']} {mean(study, 'user_utility_one_minus_root', where).mean:.3f}"
        for where in (PU, BU, MM)
    )
    reason = f"Eq. 3 read literally, 1 - sqrt(sum) / n, which falls as users do better: {literal}"
    return all_hold(ordered(study, "user_utility", [MM, BU, PU]), reason)


def submission(study: Study) -> Finding:
    """PU-3: PU above each of the others."""
    return all_hold([below(study, "submission_time_mean", other, PU) for other in (BU, MM)])


def execution(study: Study) -> Finding:
    """PU-4: below both; "far" and "slightly" as: farther below MM than below BU."""
    metric = "execution_time_mean"
    checks = [below(study, metric, PU, other) for other in (MM, BU)]
    to_mm, to_bu = (difference(study, metric, other, PU).mean for other in (MM, BU))
    checks.append(Check(f"{to_mm:.3g} s below MM, {to_bu:.3g} s below BU", to_mm > to_bu))
    return all_hold(checks)


def balance(study: Study) -> Finding:
    """PU-5: the load balance of Eq. 6 above each of the others'."""
    return all_hold([below(study, "load_balance", other, PU) for other in (BU, MM)])


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 3 to 6."""
    if MAIN not in studies.found:
        return
    study = studies.of(MAIN)
    for number, metric, label in (
        (3, "user_success_ratio", "user success ratio"),
        (4, "user_utility", "user utility"),
        (5, "submission_time_mean", "submission time (s)"),
        (6, "execution_time_mean", "execution time (s)"),
    ):
        points = [PU, BU, MM]
        one = series_of(study, metric, "", [where["scheduler"] for where in points], points)
        if one is not None:
            caption = f"PU Fig. {number} with our data: {label}."
            yield bars(Labels(f"pu-figure-{number}", caption, "scheduler", label), [one])


PAPER = Paper(
    "PU",
    "Partial utility",
    (
        Claim("PU-1", "PU and BU complete every job; MM rejects some", "Fig. 3", (MAIN,), success),
        Claim("PU-2", "user utility: PU > BU > MM", "Fig. 4", (MAIN,), utility),
        Claim("PU-3", "submission time: PU is the highest", "Fig. 5", (MAIN,), submission),
        Claim(
            "PU-4",
            "execution time: PU far below MM, slightly below BU",
            "Fig. 6",
            (MAIN,),
            execution,
        ),
        Claim("PU-5", "load balance: slightly better with PU", "text", (MAIN,), balance),
    ),
    figures,
)
