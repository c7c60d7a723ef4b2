"""Convergent Scheduling 2.0 (CS2): several jobs a machine, against two backfillings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.lab.bound import slowdown_bound
from grid.lab.claims import (
    Claim,
    Comparison,
    Paper,
    Part,
    Settled,
    Source,
    Verdict,
    Where,
)
from grid.lab.comparisons import (
    below,
    grows_at_most,
    grows_less,
    growth,
    over,
    wider_gap,
    within,
)
from grid.lab.papers.contention import CRITERION, contention, late_jobs_fall
from grid.lab.papers.cs2_figures import figures
from grid.lab.papers.cs2_points import (
    ALL,
    BASELINES,
    COUNTING,
    COUNTING_TIMED,
    MAIN,
    OURS,
    QUICKSORT,
    SCALING,
    TIMED,
    TIMING,
    TOTAL,
)
from grid.lab.papers.cs2_readings import LEFT_OUT, READINGS, WHY
from grid.lab.papers.points import FULLEST, PLAN, at, times
from grid.lab.statistics import Region
from grid.lab.study import Study

CONTENDED = (1, 4)
LICENSES_CONTENDED = (1, 4, 6)
EFFICIENT = (50, 60, 70, 80, 90)
"""Usages of licences, in per cent, that may be meant by "efficiently": the paper has no number."""
NEAR_ONE = 1.1
"""A mean slowdown of at most so much is called very close to 1."""
BOUNDED = 5
"""The bound is computed for so many repetitions: it takes seconds each."""
NEAR_FULL = Region(low=95.0)
"""Usages, in per cent, that are called always busy: none is above it, so intervals may pass it."""
GOOD_GROWTH = 1.1
"""Good scalability: time grows with a power of the number of jobs that is at most so much, that of
sorting: from 100 to 1000 jobs N log N of 150 N pairs is N^1.09."""


def late(study: Study) -> Iterator[Part]:
    """CS2-1: all four below both at every time, and the gaps widest where jobs contend most."""
    for one in OURS:
        for time in times(study):
            for other in BASELINES:
                yield below(
                    study, "late_percent", at(one, time), at(other, time),
                    setting=f"Ta = {time} s", unit="% of jobs with a deadline",
                    paper="fewer (Fig. 2)",
                )  # fmt: skip
    for one in OURS:
        for other in BASELINES:
            yield from gaps(study, one, other)
    yield from late_jobs_fall(study, ALL)
    yield from contention(study, QUICKSORT, "Fig. 1")


def gaps(study: Study, one: Where, other: Where) -> Iterator[Part]:
    """Is the gap between two schedulers wider at 1 and at 4 than at each other time?"""
    for here in (time for time in times(study) if time in CONTENDED):
        for elsewhere in (time for time in times(study) if time not in CONTENDED):
            yield wider_gap(
                study, "late_percent", partial(pair, one, other), here, elsewhere,
                what=f"the gap of {one['scheduler']} to {other['scheduler']} at Ta = {here} s is "
                "wider than elsewhere",
                setting=f"than at Ta = {elsewhere} s",
                unit="points; judged: the gap elsewhere - the gap here",
                paper="significantly better at 1 and 4",
            )  # fmt: skip


def pair(one: Where, other: Where, interarrival: int) -> tuple[Where, Where]:
    """Two schedulers at a mean inter-arrival time."""
    return at(one, interarrival), at(other, interarrival)


def slowdown(study: Study) -> Iterator[Part]:
    """CS2-2: below both baselines, and near one; impossible where the work itself forbids it."""
    for one in OURS:
        for time in times(study):
            for other in BASELINES:
                yield below(
                    study, "slowdown_mean", at(one, time), at(other, time),
                    setting=f"Ta = {time} s", unit="slowdown",
                    paper="lower (our reading of Fig. 3)",
                )  # fmt: skip
    # The bound is of all jobs, and says nothing of some of them.
    may_be_bound = study.names.get("slowdown_mean", "slowdown_mean") == "slowdown_mean"
    for time in (time for time in times(study) if time > 1):
        # The less work arrives, the lower the bound.
        bound = least_slowdown(study, time) if may_be_bound else 1.0
        may_be_bound = bound > NEAR_ONE
        for one in OURS:
            part = within(
                study, "slowdown_mean", at(one, time), Region(high=NEAR_ONE),
                what=f"{one['scheduler']} at most {NEAR_ONE:g}", setting=f"Ta = {time} s",
                unit="slowdown", paper="equal or very close to 1",
            )  # fmt: skip
            yield bounded(part, bound) if may_be_bound else part


def bounded(part: Comparison | Settled, bound: float) -> Settled:
    """The part as one that cannot hold, since no schedule at all has a mean slowdown below."""
    if isinstance(part, Settled):
        return part
    because = (
        "the jobs bring more work than the farm can do in time: no schedule at all, even one that "
        f"cuts jobs into pieces over all machines, has a mean slowdown below {bound:.2f} here "
        f"(linear relaxation, grid/lab/bound.py; mean over the first {BOUNDED} repetitions)"
    )
    return Settled(
        part.what, part.setting, Verdict.IMPOSSIBLE, because, part.unit, part.ours, part.paper
    )


def least_slowdown(study: Study, time: int) -> float:
    """The mean over some repetitions of what no schedule can beat; one where nothing is known."""
    scenarios = study.scenarios(at(QUICKSORT, time))[:BOUNDED]
    bounds = [_bound_of(one.model_dump_json()) for one in scenarios]
    return sum(bounds) / len(bounds) if bounds else 1.0


@cache
def _bound_of(scenario: str) -> float:
    """It takes seconds, and every reading asks for it again."""
    return slowdown_bound(realize(Scenario.model_validate_json(scenario), "convergent-2")[0]) or 1.0


def machine_usage(study: Study) -> Iterator[Part]:
    """CS2-3: Eq. 15 and 16, over the whole simulation; above both baselines (abstract)."""
    for one in OURS:
        for time in times(study):
            yield within(
                study, "machine_usage", at(one, time), NEAR_FULL,
                what=f"{one['scheduler']} at least 95 %", setting=f"Ta = {time} s", unit="%",
                paper="all machines always busy",
            )  # fmt: skip
            for other in BASELINES:
                yield below(
                    study, "machine_usage", at(other, time), at(one, time),
                    setting=f"Ta = {time} s", unit="%",
                    paper="resources better exploited (abstract)",
                )  # fmt: skip


def license_usage(study: Study) -> Iterator[Part]:
    """CS2-4: Eq. 17 and 18, above both at the paper's three times; used the better, the less jobs
    contend, by all."""
    for time in times(study):
        for one in OURS if time in LICENSES_CONTENDED else ():
            for other in BASELINES:
                yield below(
                    study, "license_usage", at(other, time), at(one, time),
                    setting=f"Ta = {time} s", unit="% of licences",
                    paper="CS 2.0 uses them better at 1, 4, 6 (Fig. 5)",
                )  # fmt: skip
    for where in ALL:
        for low, high in pairwise(times(study)):
            part = below(
                study, "license_usage", at(where, low), at(where, high),
                setting=f"from {low} to {high}", unit="% of licences",
                paper="used efficiently as contention decreases",
            )  # fmt: skip
            yield replace(part, what=f"{where['scheduler']}: licence usage rises with Ta")
    for where in ALL:
        for time in (time for time in times(study) if time not in LICENSES_CONTENDED):
            yield efficiently(study, where, time)


def efficiently(study: Study, where: Where, time: int) -> Part:
    """Is the usage of licences as high as what may be called efficient, level by level?"""
    what, paper = f"{where['scheduler']} uses licences efficiently", "efficiently: by which level"
    levels = {
        f"at least {level} %": within(
            study, "license_usage", at(where, time), Region(low=level), what=what,
            setting=f"Ta = {time} s", unit="% of licences",
        )
        for level in EFFICIENT
    }  # fmt: skip
    return over(what, f"Ta = {time} s", "the usage that is called efficient", levels, paper)


def plan_cost(study: Study) -> Iterator[Part]:
    """CS2-5: the mean time of a plan against the baselines; mean and total among the four."""
    for time in times(study):
        setting = f"Ta = {time} s"
        for baseline in BASELINES:
            for one in OURS:
                yield below(
                    study, PLAN, at(baseline, time), at(one, time), setting=f"{setting}, a plan",
                    unit="ms", factor=1000, paper="lower (Fig. 6)",
                )  # fmt: skip
                yield below(
                    study, TOTAL, at(baseline, time), at(one, time),
                    setting=f"{setting}, all plans", unit="ms", factor=1000, paper="lower (Fig. 7)",
                )  # fmt: skip
        for metric, what, number in ((PLAN, "a plan", 6), (TOTAL, "all plans", 7)):
            for one in OURS[:3]:
                yield below(
                    study, metric, at(COUNTING_TIMED, time), at(one, time),
                    setting=f"{setting}, {what}", unit="ms", factor=1000,
                    paper=f"the best (Fig. {number})",
                )  # fmt: skip


def sorting(study: Study, timing: Study) -> Iterator[Part]:
    """CS2-6: better schedules have fewer late jobs and lower slowdowns; faster is the mean plan."""
    for time in times(study):
        for fine, coarse in ((QUICKSORT, COUNTING), (TIMED, COUNTING_TIMED)):
            for metric, unit in (
                ("late_percent", "% of jobs with a deadline"),
                ("slowdown_mean", "slowdown"),
            ):
                yield below(
                    study, metric, at(fine, time), at(coarse, time),
                    setting=f"Ta = {time} s, {unit}", unit=unit, paper="the best quality",
                )  # fmt: skip
            yield below(
                timing, PLAN, at(coarse, time), at(fine, time), setting=f"Ta = {time} s, a plan",
                unit="ms", factor=1000, paper="the best times",
            )  # fmt: skip


def scaling(study: Study) -> Iterator[Part]:
    """CS2-7: growth with the number of jobs that are in the system, and who is faster at each."""
    sizes = sorted(study.axes["jobs"])
    span = f"{sizes[0]} to {sizes[-1]} jobs"
    for one in OURS:
        yield grows_at_most(
            growth(study, FULLEST, one, "jobs"), GOOD_GROWTH, name=one["scheduler"], setting=span,
            paper="good scalability",
        )  # fmt: skip
    for other in (QUICKSORT, TIMED, COUNTING_TIMED):
        yield grows_less(
            growth(study, FULLEST, COUNTING, "jobs"), growth(study, FULLEST, other, "jobs"),
            what=f"CS 2.0 Cs grows less than {other['scheduler']}", setting=span,
            paper="the better scalability is that of CS 2.0 Cs",
        )  # fmt: skip
    for jobs in sizes:
        yield below(
            study, FULLEST, {**COUNTING, "jobs": jobs}, {**QUICKSORT, "jobs": jobs},
            setting=f"{jobs} jobs", unit="ms", factor=1000,
            paper="smaller time complexity than CS 2.0 (Fig. 8)",
        )  # fmt: skip


PAPER = Paper(
    "CS2",
    "Convergent Scheduling 2.0",
    Source(
        "A Multi-criteria Job Scheduling Framework for Large Computing Farms",
        "Ranieri Baraglia, Patrizio Dazzi, Gabriele Capannini, Giancarlo Pagano",
        2010,
        "",
        "10th IEEE International Conference on Computer and Information Technology (CIT 2010), "
        "pages 187-194; title, authors and year from its public record, for the text that we have "
        "begins with the abstract",
    ),
    "CS 2.0 keeps the matrix of jobs and machines of 2007, scales its heuristics to [0, 1], and "
    "fills machines with several jobs each by a greedy matching. It is compared with EASY and "
    "Flexible backfilling.",
    (
        Claim(
            "CS2-1",
            "fewer late jobs than Flexible backfilling, and than EASY, most clearly at Ta = 1, 4 "
            "(by the text these may preempt; that was not run: here they do not); late jobs fall "
            "as Ta rises, for contention falls",
            "Fig. 2; Fig. 1 for contention, which is almost constant from Ta = 12 on",
            (MAIN,),
            late,
            "most clearly: the gap to a baseline is wider at 1 and at 4 than at each other Ta; "
            f"{CRITERION}, under CS 2.0",
        ),
        Claim(
            "CS2-2",
            "slowdown lower than both; very close to 1 for Ta > 1",
            "Fig. 3",
            (MAIN,),
            slowdown,
            f"very close to 1: the interval wholly at or below {NEAR_ONE:g}. That it is lower "
            "than backfilling's, no sentence says: it is our reading of Fig. 3, a picture that our "
            "text lacks",
        ),
        Claim(
            "CS2-3",
            "CS 2.0 keeps all machines busy, and resources are better used than by backfilling",
            'Fig. 4: "all the system machines always busy", the text has no number; Eq. 15, 16; '
            'abstract: "a better exploitation of resources"',
            (MAIN,),
            machine_usage,
            "always busy: the interval of the usage of processors wholly at or above 95 % (ours), "
            'over the whole simulation. The sentence before: "A machine can remain idle when it '
            'does not support all the hardware/software requirements of a queued job"',
        ),
        Claim(
            "CS2-4",
            "better licence usage at Ta = 1, 4, 6; all use licences efficiently at the others",
            "Fig. 5; Eq. 17, 18",
            (MAIN,),
            license_usage,
            "efficiently: usage rises from each Ta to the next; and by which level it is "
            "efficient, which the paper does not say, the table tells",
        ),
        Claim(
            "CS2-5",
            "planning costs more than backfilling; CS 2.0 Cs Td costs least of the four",
            "Fig. 6, 7",
            (TIMING,),
            plan_cost,
            "mean processor time of the plans that were made while a job waited, for every policy",
        ),
        Claim(
            "CS2-6",
            "quicksort variants give the better schedules, counting-sort variants the faster plans",
            "text of section IV.B and the conclusions",
            (MAIN, TIMING),
            sorting,
            "better: fewer late jobs, lower slowdown; each on its own. For quicksort stands "
            "numpy's stable sort of all pairs",
        ),
        Claim(
            "CS2-7",
            "plan time against the number of jobs, 100 to 1000: good scalability, that of CS 2.0 "
            "Cs the better",
            "Fig. 8, whose axis ends at 120 ms",
            (SCALING,),
            scaling,
            "of the plans with the longest queues, so with nearly all jobs in the system; good: an "
            f"exponent of at most {GOOD_GROWTH:g}, that of sorting; milliseconds are not judged, "
            "for any machine of today is far below 120",
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
