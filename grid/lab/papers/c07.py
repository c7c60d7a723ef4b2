"""Convergent Scheduling of 2007 (C07): one job a machine, four variants against four baselines."""

from __future__ import annotations

from collections.abc import Iterator

from grid.lab.claims import Claim, Paper, Part, Source, Studies
from grid.lab.comparisons import below, close, grows_at_most, grows_less, growth, within
from grid.lab.papers.c07_knapsack import (
    LICENSES_CLOSE,
    ON_AVERAGE,
    SAVED,
    knapsack_cost,
    knapsack_use,
)
from grid.lab.papers.c07_points import (
    ALL,
    BASELINES,
    EASY,
    EDF,
    EXACT,
    GREEDY,
    I_NP,
    I_P,
    KNAPSACK,
    MAIN,
    NI_NP,
    NI_P,
    OURS,
    REALISED,
    SCALING,
    TIMING,
)
from grid.lab.papers.c07_readings import LEFT_OUT, READINGS, WHY
from grid.lab.papers.contention import (
    CRITERION,
    LATE_CLOSE,
    contention,
    late_jobs_fall,
)
from grid.lab.papers.drawing import along_axis, mean_courses
from grid.lab.papers.points import AXIS, FULLEST, PLAN, at, times
from grid.lab.report.charts import Labels
from grid.lab.report.style import Picture
from grid.lab.statistics import Region
from grid.lab.study import Study

QUALITY = "without loss of results quality"
NEAR_ONE = 1.1
"""A mean slowdown of at most so much is called close to 1."""
SLOWDOWN_CLOSE = 0.1
"""Mean slowdowns at most so far apart are called very close, as one is to 1 by NEAR_ONE."""
NEAR_FULL = Region(low=95.0)
"""Usages, in per cent, that are called always busy: none is above it, so intervals may pass it."""
GOOD_GROWTH = 1.0
"""Very good scalability: time grows no more than in proportion to the number of jobs."""
PREEMPTION = "CS with preemption costs more (Fig. 7)"
THAN_EASY = "dearer than EASY (our reading of Fig. 7)"
THAN_EDF = "dearer than EDF, which preempts too (our reading of Fig. 7)"
RELAXED = 10
"""The paper's inter-arrival time from which on the slowdown is close to one."""


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
    """C07-4: late jobs, slowdown and usage of the incremental matching and of the whole one."""
    for time in times(study):
        for metric, margin, setting, unit, paper in (
            ("late_percent", LATE_CLOSE, "", "points", "equal or very close"),
            ("slowdown_without_deadline_mean", SLOWDOWN_CLOSE, ", slowdown", "slowdown", QUALITY),
            ("machine_usage", LATE_CLOSE, ", machine usage", "points", QUALITY),
        ):
            yield close(
                study, metric, at(I_P, time), at(NI_P, time), margin,
                setting=f"Ta = {time} s{setting}", unit=unit, paper=paper,
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
    """C07-6: active machines / min(machines, jobs in the system), over the whole simulation."""
    for time in times(study):
        for one in OURS:
            yield within(
                study, "machine_usage", at(one, time), NEAR_FULL,
                what=f"{one['scheduler']} at least 95 %", setting=f"Ta = {time} s",
                unit="%", paper="all machines always busy",
            )  # fmt: skip


def matching_cost(timing: Study, scaling: Study) -> Iterator[Part]:
    """C07-7: incremental plans cost less (Fig. 7), preemption costs more, growth (Fig. 8).

    The text has one sentence on preemption, of "the CS versions which support" it; which others
    cost less, it does not say.
    """
    for time in times(timing):
        for first, second, paper in (
            (I_P, NI_P, "incremental plans are faster (Fig. 7)"),
            (I_NP, NI_NP, "incremental plans are faster (Fig. 7)"),
            (I_NP, I_P, PREEMPTION),
            (NI_NP, NI_P, PREEMPTION),
        ):
            yield below(
                timing, PLAN, at(first, time), at(second, time), setting=f"Ta = {time} s",
                unit="ms", factor=1000, paper=paper,
            )  # fmt: skip
        for baseline, paper in ((EASY, THAN_EASY), (EDF, THAN_EDF)):
            for one in (I_P, NI_P):
                yield below(
                    timing, PLAN, at(baseline, time), at(one, time), setting=f"Ta = {time} s",
                    unit="ms", factor=1000, paper=paper,
                )  # fmt: skip
    for jobs in sorted(scaling.axes["jobs"]):
        yield below(
            scaling, FULLEST, {**I_P, "jobs": jobs}, {**NI_P, "jobs": jobs},
            setting=f"{jobs} jobs", unit="ms", factor=1000,
            paper="incremental plans are faster (Fig. 8)",
        )  # fmt: skip
    sizes = sorted(scaling.axes["jobs"])
    yield grows_at_most(
        growth(scaling, FULLEST, I_P, "jobs"), GOOD_GROWTH, name="CS_i_p",
        setting=f"{sizes[0]} to {sizes[-1]} jobs", paper="very good scalability",
    )  # fmt: skip
    yield grows_less(
        growth(scaling, FULLEST, I_P, "jobs"),
        growth(scaling, FULLEST, NI_P, "jobs"),
        what="CS_i_p grows less than CS_ni_p",
        setting=f"{sizes[0]} to {sizes[-1]} jobs",
        paper="O(N^3) against O(N^4), for N machines",
    )


def figures(studies: Studies) -> Iterator[Picture]:
    """Table 1 as a picture, and Fig. 3 to 8."""
    if KNAPSACK in studies.found:
        study = studies.found[KNAPSACK]
        for part, metric, label, factor in (
            ("use", "license_usage", "use of licences at a choice, mean (%)", 1.0),
            ("least", "least_usage", "smallest use of licences at a choice (%)", 1.0),
            ("best", "best_usage", "best use of licences at a choice (%)", 1.0),
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
        caption = "C07 Fig. 8 with our data: time for a plan with nearly all jobs in the system."
        labels = Labels("c07-figure-8", caption, "jobs", "time for a plan (ms)", True, True)
        study = studies.found[SCALING]
        shown = [where for where in ALL if where["scheduler"] in study.axes["scheduler"]]
        yield from along_axis(labels, study, FULLEST, "jobs", shown, 1000.0)


def _main_figures(study: Study) -> Iterator[Picture]:
    named = [(f"Ta = {value}", at(I_P, value)) for value in times(study)]
    caption = "C07 Fig. 3 with our data: jobs in the system, under CS_i_p."
    labels = Labels("c07-figure-3", caption, "time (s)", "jobs")
    yield from mean_courses(labels, study, "jobs_in_system", "time_s", named)
    for figure, metric, label in (
        ("Fig. 4 with our data", "late_percent", "jobs late, of those with a deadline (%)"),
        ("Fig. 5 with our data", "slowdown_without_deadline_mean", "slowdown without deadline"),
        ("Fig. 6 with our data", "machine_usage", "machine usage, whole simulation (%)"),
        ("licences, for which the text gives no result", "license_usage", "licence usage (%)"),
        ("what moves or waits again, not in the paper", "preemptions", "preemptions a run"),
    ):
        time = "mean inter-arrival time (s)"
        name = f"c07-figure-{figure[5]}" if figure.startswith("Fig") else f"c07-{metric}"
        labels = Labels(name, f"C07 {figure}: {label}.", time, label)
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
            "licences are; and the figures of Table 1",
            "Table 1: 0.82/0.87, 0.84/0.88, 0.87/0.89, 0.87/0.88; 3 % apart on average",
            (KNAPSACK, REALISED),
            knapsack_use,
            f"close, and near a figure: the interval within ± {LICENSES_CLOSE:g} points; 3 % on "
            f"average: at most {ON_AVERAGE:g}, mean over the ratios, in points and relative. "
            "Branch & bound is ours, cut off at its budget: where it proved few of its choices "
            "best, greedy may be farther from the best than from it",
        ),
        Claim(
            "C07-2",
            "greedy MKP needs much less CPU time than branch & bound",
            "Table 1: 97 % of the CPU time saved",
            (KNAPSACK,),
            knapsack_cost,
            f"much: at least {SAVED:g} % of the solver's own time saved. Branch & bound stops at a "
            "budget of nodes: without it its time would be longer, so the share saved is a lower "
            "bound, which can show that the claim holds; that it is near the paper's 97 % shows "
            "nothing",
        ),
        Claim(
            "C07-3",
            "all four CS variants have fewer late jobs than EASY, BF-rm, BF-unrm and EDF, at "
            "every Ta; late jobs fall as Ta rises, for contention falls",
            "Fig. 4; Fig. 3 for contention, which is almost constant from Ta = 12 on",
            (MAIN,),
            late,
            f"{CRITERION}, under CS_i_p. The text has no numbers: it says that the other four "
            '"obtain worse results than those obtained by all the CS schedulers"; that this is '
            "meant at every Ta, each against each, is our reading of Fig. 4",
        ),
        Claim(
            "C07-4",
            "the incremental matching loses no quality: CS_i_p against CS_ni_p",
            "equal or very close",
            (MAIN,),
            incremental,
            f"very close: the interval within ± {LATE_CLOSE:g} point of late jobs (text on Fig. 4) "
            f"and of usage, ± {SLOWDOWN_CLOSE:g} of slowdown (ours, for the text's "
            '"results quality"). At Ta = 16 and 20 less than 1 % of jobs are late, so late jobs '
            "can hardly fail there",
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
            'Fig. 6: "all the system machines always busy"; the text has no number',
            (MAIN,),
            machine_usage,
            "always busy: the interval wholly at or above 95 % (ours), over the whole simulation. "
            'The sentence before: "A machine can remain idle when it does not support all the '
            'hardware/software requirements required by a queued job"',
        ),
        Claim(
            "C07-7",
            "incremental matching plans faster than non-incremental, plans of CS with preemption "
            "cost more, and the incremental one scales very well, and better, with the number of "
            "jobs",
            "Fig. 7, 8; O(N^3) against O(N^4)",
            (TIMING, SCALING),
            matching_cost,
            "Fig. 7: mean processor time of the plans that were made while a job waited; Fig. 8: "
            "of those with the longest queues, so with nearly all jobs in the system; growth: the "
            "exponent of the number of jobs, fitted to each repetition; very good: at most "
            f"{GOOD_GROWTH:g}, no more than in proportion. Which algorithms cost less than CS with "
            "preemption, the text does not say: CS without it is the comparison; EASY and EDF, "
            "which preempts too, are our reading of a picture",
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
