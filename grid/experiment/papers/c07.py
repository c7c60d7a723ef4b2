"""Convergent Scheduling of 2007 (C07): one job a machine, four variants against four baselines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grid.experiment.claims import (
    Check,
    Claim,
    Finding,
    Paper,
    Studies,
    all_hold,
    along,
    below,
    close,
    difference,
    mean,
    within,
)
from grid.experiment.papers.drawing import along_axis, mean_courses, points
from grid.experiment.study import Study
from grid.report.charts import Labels
from grid.report.style import Picture

MAIN, KNAPSACK, SCALING = "convergent-2007", "knapsack", "convergent-2007-scaling"
AXIS = "interarrival"
I_P, I_NP, NI_P, NI_NP = OURS = points("scheduler", ["CS_i_p", "CS_i_np", "CS_ni_p", "CS_ni_np"])
BASELINES = points("scheduler", ["EASY", "BF-rm", "BF-unrm", "EDF"])
ALL = [*BASELINES, *OURS]
GREEDY, EXACT = points("knapsack", ["greedy", "branch and bound"])
LICENSES_CLOSE = 5.0
"""Licence uses at most so many points apart are called close, as the paper's are."""
SAVED = 0.5
"""Much cheaper: at least this share of a plan's time saved. The paper's 97 % are of the knapsack's
own time; a plan's has heuristics and matching in it, whichever knapsack is used."""
MUCH = (
    f"much means at least {100 * SAVED:g} % of a whole plan, of which the knapsack is only a part; "
    "of the knapsack alone it is more"
)
LATE_CLOSE = 1.0
"""Percentages of late jobs at most so many points apart are called very close."""
NEAR_ONE = 1.1
NEAR_FULL = 95.0
PLAN = "plan_seconds_max"
"""Jobs come so fast that all are in the system at once, in the longest of the plans."""
RELAXED = 10
"""The paper's inter-arrival time from which on the slowdown is close to one."""


def at(where: dict[str, str], interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])


def ratios(study: Study) -> list[str]:
    """The ranges of license ratios, as the study has them."""
    return list(study.axes["license_ratio"])


def knapsack_use(study: Study) -> Finding:
    """C07-1: the licence use of the same streams, ratio by ratio (Table 1)."""
    checks = [
        close(
            study,
            "license_usage",
            {**GREEDY, "license_ratio": ratio},
            {**EXACT, "license_ratio": ratio},
            LICENSES_CLOSE,
        )
        for ratio in ratios(study)
    ]
    ours = along(study, "license_usage", "license_ratio", ratios(study), [GREEDY, EXACT])
    gaps = [
        difference(
            study,
            "license_usage",
            {**EXACT, "license_ratio": ratio},
            {**GREEDY, "license_ratio": ratio},
        ).mean
        for ratio in ratios(study)
    ]
    apart = f"{float(np.mean(gaps)):.2g} points apart on average"
    return all_hold(checks, apart, f"use % {ours}")


def knapsack_cost(study: Study) -> Finding:
    """C07-2: the mean time of a plan, solver against solver."""
    checks = []
    for ratio in ratios(study):
        greedy, exact = ({**solver, "license_ratio": ratio} for solver in (GREEDY, EXACT))
        checks.append(below(study, "plan_seconds_mean", greedy, exact, 1000))
        cheap, dear = (mean(study, "plan_seconds_mean", point).mean for point in (greedy, exact))
        saved = 1 - cheap / dear
        checks.append(Check(f"{100 * saved:.3g} % saved at {ratio}", saved >= SAVED))
    ours = along(study, "plan_seconds_mean", "license_ratio", ratios(study), [GREEDY, EXACT], 1000)
    return all_hold(checks, MUCH, f"mean ms a plan {ours}")


def late(study: Study) -> Finding:
    """C07-3: each of the four below each of the baselines, time by time."""
    checks = [
        below(study, "late_percent", at(one, time), at(other, time))
        for time in times(study)
        for one in OURS
        for other in BASELINES
    ]
    ours = along(study, "late_percent", AXIS, times(study), ALL)
    return all_hold(checks, ours=f"late % {ours}")


def incremental(study: Study) -> Finding:
    """C07-4: late jobs of the incremental matching and of the whole one."""
    checks = [
        close(study, "late_percent", at(I_P, time), at(NI_P, time), LATE_CLOSE)
        for time in times(study)
    ]
    return all_hold(checks)


def slowdown(study: Study) -> Finding:
    """C07-5: the four variants, jobs without a deadline."""
    metric = "slowdown_without_deadline_mean"
    relaxed = [time for time in times(study) if time >= RELAXED]
    checks = [
        within(study, metric, at(one, time), 0.0, NEAR_ONE) for time in relaxed for one in OURS
    ]
    ours = along(study, metric, AXIS, relaxed, ALL)
    return all_hold(checks, f"close means up to {NEAR_ONE:g}", ours)


def machine_usage(study: Study) -> Finding:
    """C07-6: active machines / min(machines, jobs in the system), over time."""
    checks = [
        within(study, "machine_usage", at(one, time), NEAR_FULL, 1.0)
        for time in times(study)
        for one in OURS
    ]
    ours = along(study, "machine_usage", AXIS, times(study), ALL)
    return all_hold(checks, f"near means from {NEAR_FULL:g} % on", f"% {ours}")


def matching_cost(study: Study) -> Finding:
    """C07-7: incremental below whole for every number of jobs, and growing more slowly."""
    numbers = sorted(study.axes["jobs"])
    pairs = ((I_P, NI_P), (I_NP, NI_NP))
    checks = []
    for part, whole in pairs:
        for jobs in numbers:
            first, second = ({**one, "jobs": jobs} for one in (part, whole))
            checks.append(below(study, PLAN, first, second, 1000))
        slow, steep = (growth(study, one, numbers) for one in (part, whole))
        text = f"{part['scheduler']} grows as N^{slow:.2f}, {whole['scheduler']} as N^{steep:.2f}"
        checks.append(Check(text, slow < steep))
    ours = along(study, PLAN, "jobs", [numbers[0], numbers[-1]], OURS, 1000)
    growths = ", ".join(f"{one['scheduler']} N^{growth(study, one, numbers):.2f}" for one in OURS)
    return all_hold(checks, ours=f"ms for the longest plan {ours}; growth {growths}")


def growth(study: Study, where: dict[str, str], numbers: list[int]) -> float:
    """The power of the number of jobs that the time of a plan grows with, by least squares."""
    seconds = [mean(study, PLAN, {**where, "jobs": n}).mean for n in numbers]
    return float(np.polyfit(np.log(numbers), np.log(seconds), 1)[0])


def figures(studies: Studies) -> Iterator[Picture]:
    """Table 1 as a picture, and Fig. 3 to 8."""
    if KNAPSACK in studies.found:
        study = studies.of(KNAPSACK)
        for part, metric, label in (
            ("use", "license_usage", "license usage (%)"),
            ("time", "plan_seconds_mean", "time for a plan, mean (s)"),
        ):
            caption = f"C07 Table 1 with our data: {label}."
            labels = Labels(f"c07-table-1-{part}", caption, "license ratio", label)
            yield from along_axis(labels, study, metric, "license_ratio", [EXACT, GREEDY])
    if MAIN in studies.found:
        yield from _main_figures(studies.of(MAIN))
    if SCALING in studies.found:
        caption = "C07 Fig. 8 with our data: time for a plan by number of jobs."
        labels = Labels("c07-figure-8", caption, "jobs", "time for a plan (s)", True, True)
        study = studies.of(SCALING)
        shown = [where for where in ALL if where["scheduler"] in study.axes["scheduler"]]
        yield from along_axis(labels, study, PLAN, "jobs", shown)


def _main_figures(study: Study) -> Iterator[Picture]:
    named = [(f"Ta = {value}", at(I_P, value)) for value in times(study)]
    caption = "C07 Fig. 3 with our data: jobs in the system, under CS_i_p."
    labels = Labels("c07-figure-3", caption, "", "jobs", over_time=True)
    yield from mean_courses(labels, study, "jobs_in_system", "time_s", named)
    for number, metric, label in (
        (4, "late_percent", "late jobs (%)"),
        (5, "slowdown_without_deadline_mean", "slowdown without deadline"),
        (6, "machine_usage", "machine usage (%)"),
        (7, "plan_seconds_mean", "time for a plan, mean (s)"),
    ):
        caption = f"C07 Fig. {number} with our data: {label}."
        time = "mean inter-arrival time (s)"
        labels = Labels(f"c07-figure-{number}", caption, time, label, log_y=number == 7)
        yield from along_axis(labels, study, metric, AXIS, ALL)


PAPER = Paper(
    "C07",
    "Convergent Scheduling of 2007",
    (
        Claim(
            "C07-1",
            "greedy MKP is close to branch & bound in license usage",
            "0.82/0.87, 0.84/0.88, 0.87/0.89, 0.87/0.88: 3 % apart on average",
            (KNAPSACK,),
            knapsack_use,
        ),
        Claim(
            "C07-2", "and much cheaper", "97 % of the CPU time saved", (KNAPSACK,), knapsack_cost
        ),
        Claim(
            "C07-3",
            "all four CS variants have fewer late jobs than EASY, BF-rm, BF-unrm and EDF",
            "Fig. 4",
            (MAIN,),
            late,
        ),
        Claim(
            "C07-4",
            "the incremental matching loses no quality: CS_i_p against CS_ni_p",
            "equal or very close",
            (MAIN,),
            incremental,
        ),
        Claim(
            "C07-5",
            "slowdown of jobs without a deadline is close to 1 from Ta = 10 on",
            "Fig. 5",
            (MAIN,),
            slowdown,
        ),
        Claim("C07-6", "CS keeps all machines busy", "Fig. 6, near 100 %", (MAIN,), machine_usage),
        Claim(
            "C07-7",
            "incremental matching plans faster than non-incremental, and scales better",
            "Fig. 7, 8; O(N^3) against O(N^4)",
            (SCALING,),
            matching_cost,
        ),
    ),
    figures,
)
