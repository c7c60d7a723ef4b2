"""Convergent Scheduling 2.0 (CS2): several jobs a machine, against two backfillings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from grid.experiment.bound import slowdown_bound
from grid.experiment.claims import (
    Claim,
    Comparison,
    Paper,
    Part,
    Settled,
    Source,
    Studies,
    Verdict,
    Where,
)
from grid.experiment.comparisons import (
    below,
    grows_at_most,
    grows_less,
    growth,
    wider_gap,
    within,
)
from grid.experiment.papers.contention import AXIS, CRITERION, contention, late_jobs_fall
from grid.experiment.papers.cs2_readings import LEFT_OUT, READINGS, WHY
from grid.experiment.papers.drawing import along_axis, mean_courses, points
from grid.experiment.statistics import Region
from grid.experiment.study import Study
from grid.report.charts import Labels, Series, lines
from grid.report.style import Picture
from grid.scenario.schema import Scenario
from grid.scenario.workload import realize

MAIN, TIMING, SCALING = "convergent-2", "convergent-2-timing", "convergent-2-scaling"
READING_RUNS = "convergent-2-readings"
QUICKSORT, TIMED, COUNTING, COUNTING_TIMED = points(
    "scheduler", ["CS 2.0", "CS 2.0 Td", "CS 2.0 Cs", "CS 2.0 Cs Td"]
)
OURS = [QUICKSORT, TIMED, COUNTING, COUNTING_TIMED]
EASY, FLEXIBLE = BASELINES = points("scheduler", ["EASY", "Flexible"])
ALL = [*BASELINES, *OURS]
CONTENDED = (1, 4)
LICENSES_CONTENDED = (1, 4, 6)
EFFICIENT = Region(low=90.0)
"""Usages of licences, in per cent, that are called efficient."""
NEAR_ONE = 1.1
"""A mean slowdown of at most so much is called very close to 1."""
BOUNDED = 5
"""The bound is computed for so many repetitions: it takes seconds each."""
NEAR_FULL = Region(low=95.0)
"""Usages, in per cent, that are called near 100 %: none is above it, so intervals may pass it."""
GOOD_GROWTH = 1.5
"""Good scalability: time grows with a power of the number of jobs that is at most so much."""
PLAN = "plan_seconds_mean_waiting"
"""Mean time of the plans that were made while a job waited."""
TOTAL = "plan_seconds_total"


def at(where: Where, interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])


def late(study: Study) -> Iterator[Part]:
    """CS2-1: below both at every time, and the gap widest where jobs contend most."""
    for time in times(study):
        for other in BASELINES:
            yield below(
                study, "late_percent", at(QUICKSORT, time), at(other, time),
                setting=f"Ta = {time} s", unit="% of jobs with a deadline",
                paper="fewer (Fig. 2)",
            )  # fmt: skip
    for other in BASELINES:
        for here in (time for time in times(study) if time in CONTENDED):
            for elsewhere in (time for time in times(study) if time not in CONTENDED):
                name = other["scheduler"]
                yield wider_gap(
                    study, "late_percent",
                    partial(pair, other),
                    here, elsewhere,
                    what=f"the gap to {name} at Ta = {here} s is wider than elsewhere",
                    setting=f"than at Ta = {elsewhere} s", unit="points",
                    paper="significantly better at 1 and 4",
                )  # fmt: skip
    yield from late_jobs_fall(study, ALL)
    yield from contention(study, QUICKSORT, "Fig. 1")


def pair(other: Where, interarrival: int) -> tuple[Where, Where]:
    """CS 2.0 and another scheduler at a mean inter-arrival time."""
    return at(QUICKSORT, interarrival), at(other, interarrival)


def slowdown(study: Study) -> Iterator[Part]:
    """CS2-2: below both baselines, and near one; impossible where the work itself forbids it."""
    for time in times(study):
        for other in BASELINES:
            yield below(
                study, "slowdown_mean", at(QUICKSORT, time), at(other, time),
                setting=f"Ta = {time} s", unit="slowdown", paper="lower (Fig. 3)",
            )  # fmt: skip
    may_be_bound = True
    for time in (time for time in times(study) if time > 1):
        part = within(
            study, "slowdown_mean", at(QUICKSORT, time), Region(high=NEAR_ONE),
            what=f"CS 2.0 at most {NEAR_ONE:g}", setting=f"Ta = {time} s", unit="slowdown",
            paper="equal or very close to 1",
        )  # fmt: skip
        # The less work arrives, the lower the bound.
        bound = least_slowdown(study, time) if may_be_bound else 1.0
        may_be_bound = bound > NEAR_ONE
        yield bounded(part, bound) if may_be_bound else part


def bounded(part: Comparison | Settled, bound: float) -> Settled:
    """The part as one that cannot hold, since no schedule at all has a mean slowdown below."""
    if isinstance(part, Settled):
        return part
    because = (
        "the jobs bring more work than the farm can do in time: no schedule at all, even one that "
        f"cuts jobs into pieces over all machines, has a mean slowdown below {bound:.2f} here "
        "(linear relaxation, grid/experiment/bound.py)"
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
    """CS2-3: Eq. 15 and 16, while jobs still arrive; above both baselines (abstract)."""
    for time in times(study):
        yield within(
            study, "machine_usage_arriving", at(QUICKSORT, time), NEAR_FULL,
            what="CS 2.0 at least 95 %", setting=f"Ta = {time} s", unit="%",
            paper="all machines always busy",
        )  # fmt: skip
        for other in BASELINES:
            yield below(
                study, "machine_usage_arriving", at(other, time), at(QUICKSORT, time),
                setting=f"Ta = {time} s", unit="%", paper="resources better exploited (abstract)",
            )  # fmt: skip


def license_usage(study: Study) -> Iterator[Part]:
    """CS2-4: Eq. 17 and 18, above both at the paper's three times; at the others all use them."""
    for time in times(study):
        if time not in LICENSES_CONTENDED:
            for where in ALL:
                yield within(
                    study, "license_usage", at(where, time), EFFICIENT,
                    what=f"{where['scheduler']} uses licences efficiently (at least 90 %)",
                    setting=f"Ta = {time} s", unit="% of licences",
                    paper="all algorithms use them efficiently as contention decreases",
                )  # fmt: skip
        else:
            for other in BASELINES:
                yield below(
                    study, "license_usage", at(other, time), at(QUICKSORT, time),
                    setting=f"Ta = {time} s", unit="% of licences", paper="lower (Fig. 5)",
                )  # fmt: skip


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
    """CS2-7: growth with the number of jobs, and who is faster at each."""
    sizes = sorted(study.axes["jobs"])
    span = f"{sizes[0]} to {sizes[-1]} jobs"
    for one in OURS:
        yield grows_at_most(
            growth(study, PLAN, one, "jobs"), GOOD_GROWTH, name=one["scheduler"], setting=span,
            paper="good scalability",
        )  # fmt: skip
    yield grows_less(
        growth(study, PLAN, COUNTING, "jobs"), growth(study, PLAN, QUICKSORT, "jobs"),
        what="CS 2.0 Cs grows less than CS 2.0", setting=span, paper="better scalability",
    )  # fmt: skip
    for jobs in sizes:
        yield below(
            study, PLAN, {**COUNTING, "jobs": jobs}, {**QUICKSORT, "jobs": jobs},
            setting=f"{jobs} jobs", unit="ms", factor=1000, paper="smaller (Fig. 8)",
        )  # fmt: skip


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 1 to 8."""
    time = "mean inter-arrival time (s)"
    if MAIN in studies.found:
        study = studies.found[MAIN]
        named = [(f"Ta = {value}", at(QUICKSORT, value)) for value in times(study)]
        caption = "CS2 Fig. 1 with our data: jobs in the system, under CS 2.0."
        labels = Labels("cs2-figure-1", caption, "time (s)", "jobs")
        yield from mean_courses(labels, study, "jobs_in_system", "time_s", named)
        for number, metric, label in (
            (2, "late_percent", "jobs late, of those with a deadline (%)"),
            (3, "slowdown_mean", "slowdown"),
            (4, "machine_usage_arriving", "machine usage (%)"),
            (5, "license_usage", "license usage (%)"),
        ):
            caption = f"CS2 Fig. {number} with our data: {label}."
            labels = Labels(f"cs2-figure-{number}", caption, time, label)
            yield from along_axis(labels, study, metric, AXIS, ALL)
        yield _makespans(studies)
    if TIMING in studies.found:
        for number, metric, label in (
            (6, PLAN, "time for a plan, mean (ms)"),
            (7, TOTAL, "time for all plans (ms)"),
        ):
            caption = f"CS2 Fig. {number} with our data: {label}."
            labels = Labels(f"cs2-figure-{number}", caption, time, label, log_y=True)
            yield from along_axis(labels, studies.found[TIMING], metric, AXIS, ALL, 1000.0)
    if SCALING in studies.found:
        caption = "CS2 Fig. 8 with our data: time for a plan by number of jobs."
        labels = Labels("cs2-figure-8", caption, "jobs", "time for a plan, mean (ms)")
        yield from along_axis(labels, studies.found[SCALING], PLAN, "jobs", ALL, 1000.0)


def _makespans(studies: Studies) -> Picture:
    """How the makespan hangs on the farm that was drawn; the paper's Fig. 1 ends at 25,000 s."""
    kinds = {"machines drawn anew": studies.found[MAIN]}
    if READING_RUNS in studies.found:
        kinds["one farm for all"] = studies.found[READING_RUNS].seen({"reading": "one farm"}, {})
    series = []
    first = max(min(times(study)) for study in kinds.values())
    for label, study in kinds.items():
        spans = sorted(study.values("makespan", at(QUICKSORT, first)).values())
        if spans:
            name = f"{label}, Ta = {first}"
            series.append(Series(name, list(range(1, len(spans) + 1)), spans))
    caption = (
        "CS2 Fig. 1, where it ends: the makespan of each repetition under CS 2.0, in rising order; "
        "25,000 s in the paper."
    )
    axes = ("repetition, by its makespan", "makespan (s)")
    return lines(Labels("cs2-makespan", caption, *axes), series)


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
            "fewer late jobs than Flexible backfilling, and than EASY, most clearly at Ta = 1, 4; "
            "late jobs fall as Ta rises, for contention falls",
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
            f"very close to 1: the interval wholly at or below {NEAR_ONE:g}",
        ),
        Claim(
            "CS2-3",
            "machine usage stays near 100 %, and resources are better used than by backfilling",
            "Fig. 4; Eq. 15, 16; abstract",
            (MAIN,),
            machine_usage,
            "near 100 %: the interval wholly at or above 95 %, while jobs still arrive",
        ),
        Claim(
            "CS2-4",
            "better licence usage at Ta = 1, 4, 6; all use licences efficiently at the others",
            "Fig. 5; Eq. 17, 18",
            (MAIN,),
            license_usage,
            f"efficiently: the interval wholly at or above {EFFICIENT.low:g} %",
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
            "better: fewer late jobs, lower slowdown; each on its own",
        ),
        Claim(
            "CS2-7",
            "plan time against the number of jobs, 100 to 1000: good scalability, that of CS 2.0 "
            "Cs the better",
            "Fig. 8, under 120 ms",
            (SCALING,),
            scaling,
            f"good: an exponent of at most {GOOD_GROWTH:g}; milliseconds are not judged, for any "
            "machine of today is far below 120",
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
