"""Convergent Scheduling of 2007 (C07): one job a machine, four variants against four baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grid.experiment.claims import Claim, Paper, Part, Source, Studies, Where
from grid.experiment.comparisons import (
    below,
    close,
    compared,
    grows_at_most,
    grows_less,
    growth,
    not_run,
    wider_gap,
    within,
)
from grid.experiment.papers.c07_readings import LEFT_OUT, READINGS, WHY
from grid.experiment.papers.contention import (
    AXIS,
    CRITERION,
    LATE_CLOSE,
    contention,
    late_jobs_fall,
)
from grid.experiment.papers.drawing import along_axis, mean_courses, points
from grid.experiment.statistics import Region
from grid.experiment.study import Study
from grid.report.charts import Labels
from grid.report.style import Picture

MAIN, KNAPSACK = "convergent-2007", "knapsack-choices"
TIMING, SCALING = "convergent-2007-timing", "convergent-2007-scaling"
I_P, I_NP, NI_P, NI_NP = OURS = points("scheduler", ["CS_i_p", "CS_i_np", "CS_ni_p", "CS_ni_np"])
BASELINES = EASY, _, _, EDF = points("scheduler", ["EASY", "BF-rm", "BF-unrm", "EDF"])
ALL = [*BASELINES, *OURS]
GREEDY, EXACT = points("knapsack", ["greedy", "branch and bound"])
LICENSES_CLOSE = 5.0
"""Licence uses at most so many points apart are called close; the paper's are 1 to 5 apart."""
SAVED = 90.0
"""Much cheaper: at least so many per cent of the solver's processor time saved (the paper: 97)."""
NEAR_ONE = 1.1
"""A mean slowdown of at most so much is called close to 1."""
NEAR_FULL = Region(low=95.0)
"""Usages, in per cent, that are called near 100 %: none is above it, so intervals may pass it."""
PLAN = "plan_seconds_mean_waiting"
"""Mean time of the plans that were made while a job waited."""
ON_AVERAGE = 3.0
"""Points by which the greedy knapsack is behind on average over the ratios, in the paper."""
GOOD_GROWTH = 1.5
"""Very good scalability: time grows with a power of the number of jobs that is at most so much."""
RELAXED = 10
"""The paper's inter-arrival time from which on the slowdown is close to one."""
USES = {"40-45 %": (0.82, 0.87), "45-50 %": (0.84, 0.88), "50-55 %": (0.87, 0.89),
        "55-60 %": (0.87, 0.88)}  # fmt: skip
"""Table 1: average use of licences, greedy and branch & bound."""
TIMES_MS = {"40-45 %": (11.23, 496.53), "45-50 %": (10.40, 353.51), "50-55 %": (10.42, 331.28),
            "55-60 %": (11.90, 556.96)}  # fmt: skip
"""Table 1: average times, greedy and branch & bound."""


def at(where: Where, interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])


def ratios(study: Study) -> Sequence[str]:
    """The ranges of licence ratios, as the study has them."""
    return study.axes["license_ratio"]


def knapsack_use(study: Study) -> Iterator[Part]:
    """C07-1: the licence use of the same instances, ratio by ratio and on average (Table 1)."""
    for ratio in ratios(study):
        first, second = ({**solver, "license_ratio": ratio} for solver in (GREEDY, EXACT))
        greedy, exact = USES.get(ratio, (0.0, 0.0))
        yield close(
            study, "license_usage", first, second, LICENSES_CLOSE, setting=f"licence ratio {ratio}",
            unit="points", paper=f"{100 * greedy:.0f} against {100 * exact:.0f} %",
        )  # fmt: skip
    yield average_distance(study)
    yield wider_gap(
        study, "license_usage", knapsacks, ratios(study)[0], ratios(study)[-1],
        what="greedy is closer where licences are less scarce",
        setting=f"{ratios(study)[-1]} against {ratios(study)[0]}", unit="points",
        paper="the smaller the contention, the closer: 5 points at 40-45 %, 1 at 55-60 %",
    )  # fmt: skip


def knapsacks(ratio: str) -> tuple[Where, Where]:
    """Greedy and branch & bound at a range of licence ratios."""
    return {**GREEDY, "license_ratio": ratio}, {**EXACT, "license_ratio": ratio}


def average_distance(study: Study) -> Part:
    """By how much greedy is behind, mean over the ratios."""
    metric, what = "license_usage", f"greedy at most {ON_AVERAGE:g} points behind"
    gaps = []
    for ratio in ratios(study):
        greedy, exact = (study.values(metric, where) for where in knapsacks(ratio))
        gaps.append({seed: exact[seed] - greedy[seed] for seed in exact if seed in greedy})
    seeds = [seed for seed in gaps[0] if all(seed in gap for gap in gaps)]
    setting, paper = "mean over the licence ratios", "3 % on average"
    if not seeds:
        wheres = [where for ratio in ratios(study) for where in knapsacks(ratio)]
        return not_run(study, metric, wheres, what, setting, paper)
    values = {seed: sum(gap[seed] for gap in gaps) / len(gaps) for seed in seeds}
    return compared(values, Region(high=ON_AVERAGE), what, setting, "points", paper=paper)


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
        paper = f"{100 * (1 - short / long):.1f} % ({short:g} against {long:g} ms)"
        if not saved:
            yield not_run(study, metric, [first, second], what, setting, paper)
            continue
        proven = study.interval("proven_percent", second)
        measured = f"{sum(saved.values()) / len(saved):.2f} %"
        if proven is not None:
            measured += (
                f"; {proven.mean:.0f} % of branch & bound's choices proven within its budget"
            )
        yield compared(saved, Region(low=SAVED), what, setting, "% of time", measured, paper)


def late(study: Study) -> Iterator[Part]:
    """C07-3: each of the four below each of the baselines, time by time; and Fig. 3, see below."""
    for time in times(study):
        for one in OURS:
            for other in BASELINES:
                yield below(
                    study, "late_percent", at(one, time), at(other, time),
                    setting=f"Ta = {time} s", unit="% of jobs with a deadline",
                    paper="fewer (Fig. 4)",
                )  # fmt: skip
    yield from late_jobs_fall(study, ALL)
    yield from contention(study, I_P, "Fig. 3")


def incremental(study: Study) -> Iterator[Part]:
    """C07-4: late jobs of the incremental matching and of the whole one."""
    for time in times(study):
        yield close(
            study, "late_percent", at(I_P, time), at(NI_P, time), LATE_CLOSE,
            setting=f"Ta = {time} s", unit="points", paper="equal or very close",
        )  # fmt: skip


def slowdown(study: Study) -> Iterator[Part]:
    """C07-5: the four variants, jobs without a deadline."""
    for time in times(study):
        if time >= RELAXED:
            for one in OURS:
                yield within(
                    study, "slowdown_without_deadline_mean", at(one, time), Region(high=NEAR_ONE),
                    what=f"{one['scheduler']} at most {NEAR_ONE:g}", setting=f"Ta = {time} s",
                    unit="slowdown", paper="equal or very close to 1",
                )  # fmt: skip


def machine_usage(study: Study) -> Iterator[Part]:
    """C07-6: active machines / min(machines, jobs in the system), while jobs still arrive."""
    for time in times(study):
        for one in OURS:
            yield within(
                study, "machine_usage_arriving", at(one, time), NEAR_FULL,
                what=f"{one['scheduler']} at least 95 %", setting=f"Ta = {time} s",
                unit="%", paper="all machines always busy",
            )  # fmt: skip


def matching_cost(timing: Study, scaling: Study) -> Iterator[Part]:
    """C07-7: incremental plans cost less (Fig. 7), preemption costs more, growth (Fig. 8)."""
    for time in times(timing):
        for first, second in ((I_P, NI_P), (I_NP, NI_NP), (I_NP, I_P), (NI_NP, NI_P)):
            yield below(
                timing, PLAN, at(first, time), at(second, time), setting=f"Ta = {time} s",
                unit="ms", factor=1000, paper="lower (Fig. 7)",
            )  # fmt: skip
        for baseline in (EASY, EDF):
            for one in (I_P, NI_P):
                yield below(
                    timing, PLAN, at(baseline, time), at(one, time), setting=f"Ta = {time} s",
                    unit="ms", factor=1000, paper="preemption costs more (Fig. 7)",
                )  # fmt: skip
    for jobs in sorted(scaling.axes["jobs"]):
        yield below(
            scaling, PLAN, {**I_P, "jobs": jobs}, {**NI_P, "jobs": jobs}, setting=f"{jobs} jobs",
            unit="ms", factor=1000, paper="lower (Fig. 8)",
        )  # fmt: skip
    sizes = sorted(scaling.axes["jobs"])
    yield grows_at_most(
        growth(scaling, PLAN, I_P, "jobs"), GOOD_GROWTH, name="CS_i_p",
        setting=f"{sizes[0]} to {sizes[-1]} jobs", paper="very good scalability",
    )  # fmt: skip
    yield grows_less(
        growth(scaling, PLAN, I_P, "jobs"),
        growth(scaling, PLAN, NI_P, "jobs"),
        what="CS_i_p grows less than CS_ni_p",
        setting=f"{sizes[0]} to {sizes[-1]} jobs",
        paper="O(N^3) against O(N^4), for N machines",
    )


def figures(studies: Studies) -> Iterator[Picture]:
    """Table 1 as a picture, and Fig. 3 to 8."""
    if KNAPSACK in studies.found:
        study = studies.found[KNAPSACK]
        for part, metric, label, factor in (
            ("use", "license_usage", "use of licences at a choice (%)", 1.0),
            ("time", "plan_seconds_mean", "time of a choice, mean (ms)", 1000.0),
        ):
            caption = f"C07 Table 1 with our data: {label}."
            labels = Labels(f"c07-table-1-{part}", caption, "licence ratio (% of machines)", label)
            yield from along_axis(labels, study, metric, "license_ratio", [EXACT, GREEDY], factor)
    if MAIN in studies.found:
        yield from _main_figures(studies.found[MAIN])
    if TIMING in studies.found:
        study = studies.found[TIMING]
        caption = "C07 Fig. 7 with our data: time for a plan, mean."
        axes = ("mean inter-arrival time (s)", "time for a plan, mean (ms)")
        labels = Labels("c07-figure-7", caption, *axes, log_y=True)
        shown = [where for where in ALL if where["scheduler"] in study.axes["scheduler"]]
        yield from along_axis(labels, study, PLAN, AXIS, shown, 1000.0)
    if SCALING in studies.found:
        caption = "C07 Fig. 8 with our data: time for a plan by number of jobs."
        labels = Labels("c07-figure-8", caption, "jobs", "time for a plan, mean (ms)", True, True)
        study = studies.found[SCALING]
        shown = [where for where in ALL if where["scheduler"] in study.axes["scheduler"]]
        yield from along_axis(labels, study, PLAN, "jobs", shown, 1000.0)


def _main_figures(study: Study) -> Iterator[Picture]:
    named = [(f"Ta = {value}", at(I_P, value)) for value in times(study)]
    caption = "C07 Fig. 3 with our data: jobs in the system, under CS_i_p."
    labels = Labels("c07-figure-3", caption, "time (s)", "jobs")
    yield from mean_courses(labels, study, "jobs_in_system", "time_s", named)
    for number, metric, label in (
        (4, "late_percent", "jobs late, of those with a deadline (%)"),
        (5, "slowdown_without_deadline_mean", "slowdown without deadline"),
        (6, "machine_usage_arriving", "machine usage (%)"),
    ):
        caption = f"C07 Fig. {number} with our data: {label}."
        time = "mean inter-arrival time (s)"
        labels = Labels(f"c07-figure-{number}", caption, time, label)
        yield from along_axis(labels, study, metric, AXIS, ALL)


PAPER = Paper(
    "C07",
    "Convergent Scheduling of 2007",
    Source(
        "A Job Scheduling Framework for Large Computing Farms",
        "Gabriele Capannini, Ranieri Baraglia, Diego Puppin (the byline has Puppini), Laura Ricci, "
        "Marco Pasquali",
        2007,
        "",
        "SC07, November 10-16, 2007, Reno, Nevada, USA; ISBN 978-1-59593-764-3",
    ),
    "Convergent Scheduling fills a matrix of jobs and machines by heuristics, clears what licences "
    "forbid by a knapsack, and matches. It is compared with three backfillings and EDF on a farm "
    "of 150 machines that run one job each.",
    (
        Claim(
            "C07-1",
            "greedy MKP is close to branch & bound in licence usage, the closer the less scarce "
            "licences are",
            "Table 1: 0.82/0.87, 0.84/0.88, 0.87/0.89, 0.87/0.88; 3 % apart on average",
            (KNAPSACK,),
            knapsack_use,
            f"close: the interval within ± {LICENSES_CLOSE:g} points; 3 % on average: at most "
            f"{ON_AVERAGE:g} points, mean over the ratios",
        ),
        Claim(
            "C07-2",
            "and much cheaper",
            "Table 1: 97 % of the CPU time saved",
            (KNAPSACK,),
            knapsack_cost,
            f"much: at least {SAVED:g} % of the solver's own time saved",
        ),
        Claim(
            "C07-3",
            "all four CS variants have fewer late jobs than EASY, BF-rm, BF-unrm and EDF, at "
            "every Ta; late jobs fall as Ta rises, for contention falls",
            "Fig. 4; Fig. 3 for contention, which is almost constant from Ta = 12 on",
            (MAIN,),
            late,
            f"{CRITERION}, under CS_i_p",
        ),
        Claim(
            "C07-4",
            "the incremental matching loses no quality: CS_i_p against CS_ni_p",
            "equal or very close",
            (MAIN,),
            incremental,
            f"very close: the interval within ± {LATE_CLOSE:g} point of late jobs",
        ),
        Claim(
            "C07-5",
            "slowdown of jobs without a deadline is close to 1 from Ta = 10 on",
            "Fig. 5",
            (MAIN,),
            slowdown,
            f"close to 1: the interval wholly at or below {NEAR_ONE:g}",
        ),
        Claim(
            "C07-6",
            "CS keeps all machines busy",
            "Fig. 6, near 100 %",
            (MAIN,),
            machine_usage,
            "near 100 %: the interval wholly at or above 95 %, while jobs still arrive",
        ),
        Claim(
            "C07-7",
            "incremental matching plans faster than non-incremental, preemptive plans cost more, "
            "and the incremental one scales very well, and better, with the number of jobs",
            "Fig. 7, 8; O(N^3) against O(N^4)",
            (TIMING, SCALING),
            matching_cost,
            "mean processor time of the plans that were made while a job waited; growth: the "
            "exponent of the number of jobs, fitted to each repetition; very good: at most "
            f"{GOOD_GROWTH:g}",
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
