"""EG-EDF and tabu search: schedules against queues, on one grid of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from grid.lab.claims import Claim, Paper, Part, Settled, Source, Verdict, Where
from grid.lab.comparisons import (
    Values,
    above,
    at_most_times,
    below,
    close,
    compared,
    falling,
    grows_less,
    over,
    ratio,
)
from grid.lab.papers.eg_figures import figures
from grid.lab.papers.eg_points import (
    EASY,
    EG,
    FCFS,
    FLEXIBLE,
    MAIN,
    QUEUES,
    TABUS,
    seconds_by_queue,
)
from grid.lab.papers.eg_readings import LEFT_OUT, READINGS, WHY
from grid.lab.papers.points import at, times
from grid.lab.statistics import Region
from grid.lab.study import Study

SIGNIFICANT = 'conclusions: "significant improvement"; over whom is our reading'
OUTPERFORMS = '"outperforms all the other algorithms"'
VERY_LOW = '"very low w.r.t. to Easy and Flexible backfilling"'
SHORTER = '"shorter [...] w.r.t. the other algorithms" (4.1)'
THAN_FCFS = SHORTER + ", FCFS among them"
BOUND = "the bound of iterations of tabu search"
UNCONTENDED = 5
"""The paper's mean inter-arrival time at which the queue does not grow."""
CLOSE_PERCENT = 1.0
"""Late jobs at most so many points apart are nearly the same."""
MUCH = 0.8
"""Much better: at most so many times as many late jobs; very low: at most so many times as long."""
OURS = "our weaker form of it, where there is little to move (4.1)"
BETTER = '"the better results are obtained by Tabu search"'
SLIGHTLY = 1.05
"""Where contention is low, Tabu's slowdown is at most so many times EG-EDF's: our weaker form."""
STABLE = Region(0.5, 2.0)
"""A run time is called stable that at most doubles or halves from no contention to the highest."""
NEAR = 1.25
"""Flexible's run time is called a minimal growth of EASY's up to so many times of it; late jobs
nearly the same up to so many times."""
CLOSE = Region(1 / NEAR, NEAR)
"""Slowdowns are close of which one is so many times the other."""
PICTURE = "our reading of the picture"
QUICK_GROWTH = 0.5
"""Grows quickly: at least with the square root of the number of waiting jobs."""
LATE_UNIT = "% of jobs with a deadline"
QUEUE = "over the waiting jobs N"


def over_bounds(
    study: Study, what: str, setting: str, part: Callable[[Where], Part], paper: str = ""
) -> Part:
    """The comparison of tabu search with something, at each bound of its iterations that ran."""
    known = {
        bound: part(where)
        for bound, where in TABUS.items()
        if where["scheduler"] in study.axes["scheduler"]
    }
    return over(what, setting, BOUND, known, paper)


def tabu_below(
    study: Study,
    metric: str,
    time: int,
    other: Where,
    unit: str,
    *,
    factor: float = 1.0,
    margin: float | None = None,
    paper: str = "",
) -> Part:
    """Is tabu search below another scheduler, at each bound?"""
    setting = f"Ta = {time} s"
    what = f"Tabu below {other['scheduler']}"
    if margin is not None:
        what = f"Tabu no worse than {other['scheduler']} (by {margin:g} point)"

    def part(tabu: Where) -> Part:
        return below(
            study, metric, at(tabu, time), at(other, time), setting=setting, unit=unit,
            factor=factor, margin=margin,
        )  # fmt: skip

    return over_bounds(study, what, setting, part, paper)


def falling_over_all(
    study: Study, metric: str, name: str, margin: float, unit: str, paper: str
) -> Iterator[Part]:
    """Does the metric fall as the inter-arrival time rises, for every scheduler?"""

    def of(where: Where) -> list[Part]:
        what = f"{where['scheduler'].split(',')[0]}: {name} by Ta"
        parts = falling(
            study, metric, where, "interarrival", what=what, margin=margin, unit=unit, paper=paper
        )
        return list(parts)

    for where in (*QUEUES, EG):
        yield from of(where)
    ran = [where for where in TABUS.values() if where["scheduler"] in study.axes["scheduler"]]
    if ran:
        for number, one in enumerate(of(ran[0])):
            at_each = {bound: of(tabu)[number] for bound, tabu in TABUS.items() if tabu in ran}
            yield over(one.what, one.setting, BOUND, at_each, paper)


def late(study: Study) -> Iterator[Part]:
    """EG-1: the whole order at every inter-arrival time, by how much, and the tie at the last."""
    for time in times(study):
        if time < UNCONTENDED:
            yield tabu_below(
                study, "late_percent", time, EG, LATE_UNIT, margin=CLOSE_PERCENT, paper=OUTPERFORMS
            )
        yield tabu_below(study, "late_percent", time, EG, LATE_UNIT, paper=OUTPERFORMS)
        for better, worse, words in (
            (EG, FLEXIBLE, "much better solutions"), (FLEXIBLE, EASY, PICTURE),
            (EASY, FCFS, PICTURE),
        ):  # fmt: skip
            yield below(
                study, "late_percent", at(better, time), at(worse, time),
                setting=f"Ta = {time} s", unit=LATE_UNIT, paper=words,
            )  # fmt: skip
        for queue in (EASY, FCFS):
            yield much_better(study, time, queue, FLEXIBLE, SIGNIFICANT)
        for queue in QUEUES:
            yield tabu_below(
                study, "late_percent", time, queue, LATE_UNIT,
                paper=OUTPERFORMS,
            )  # fmt: skip
            yield much_better(study, time, queue, EG)
            what = f"Tabu at most {MUCH:g} times {queue['scheduler']}"
            part = partial(much_better, study, time, queue)
            yield over_bounds(study, what, f"Ta = {time} s", part, "much better")
    yield from falling_over_all(
        study, "late_percent", "lateness", CLOSE_PERCENT, LATE_UNIT, "falls as Ta rises"
    )
    last = times(study)[-1]
    setting = f"Ta = {last} s"

    def tied(tabu: Where) -> Part:
        return close(
            study, "late_percent", at(tabu, last), at(EG, last), CLOSE_PERCENT, setting=setting,
            unit="points",
        )  # fmt: skip

    what = f"Tabu close to EG-EDF (within {CLOSE_PERCENT:g} point)"
    yield over_bounds(study, what, setting, tied, "nearly the same")

    def as_many(tabu: Where) -> Part:
        return at_most_times(
            study, "late_percent", at(EG, last), at(tabu, last), NEAR, setting=setting,
            unit=LATE_UNIT,
        )  # fmt: skip

    what = f"EG-EDF at most {NEAR:g} times Tabu"
    yield over_bounds(study, what, setting, as_many, "nearly the same")


def much_better(
    study: Study, time: int, queue: Where, schedule: Where, paper: str = "much better"
) -> Part:
    """Has a schedule far fewer late jobs than a queue?"""
    return at_most_times(
        study, "late_percent", at(schedule, time), at(queue, time), MUCH,
        setting=f"Ta = {time} s", unit=LATE_UNIT, paper=paper,
    )  # fmt: skip


def usage(study: Study) -> Iterator[Part]:
    """EG-2: both schedules above all queues where jobs contend, below them where they do not.

    And where they contend tabu search above EG-EDF, as the abstract has it.
    """
    for time in times(study):
        if time < UNCONTENDED:
            yield over_bounds(
                study, "Tabu above EG-EDF", f"Ta = {time} s", partial(used, study, time, EG),
                'abstract: "Tabu search optimization results in [...] higher machine usage"',
            )  # fmt: skip
        for queue in QUEUES:
            yield used(study, time, queue, EG)
            word = "above" if time < UNCONTENDED else "below"
            what = f"Tabu {word} {queue['scheduler']}"
            yield over_bounds(study, what, f"Ta = {time} s", partial(used, study, time, queue))


def used(study: Study, time: int, queue: Where, schedule: Where) -> Part:
    """Is the usage of a schedule above that of a queue, or below it without contention?"""
    judge, words = above, '"better exploit the system computational resources"'
    if time >= UNCONTENDED:
        judge, words = below, '"worse results than the other ones"'
    return judge(
        study, "machine_usage", at(schedule, time), at(queue, time), setting=f"Ta = {time} s",
        unit="%", paper=words,
    )  # fmt: skip


def run_time(study: Study) -> Iterator[Part]:
    """EG-3: the mean time of a plan, in milliseconds, at every scheduling event."""
    metric = "plan_seconds_mean"
    for time in times(study):
        setting = f"Ta = {time} s"
        for first, second, words in (
            (FCFS, EASY, VERY_LOW), (FCFS, FLEXIBLE, VERY_LOW), (FCFS, EG, PICTURE),
            (EG, FCFS, THAN_FCFS), (EG, EASY, SHORTER), (EG, FLEXIBLE, SHORTER),
        ):  # fmt: skip
            yield below(
                study, metric, at(first, time), at(second, time), setting=setting, unit="ms",
                factor=1000, paper=words,
            )  # fmt: skip
        for queue in QUEUES:
            words = THAN_FCFS if queue is FCFS else SHORTER
            yield tabu_below(study, metric, time, queue, "ms", factor=1000, paper=words)
        for queue in (EASY, FLEXIBLE):
            yield ratio(
                study, metric, at(FCFS, time), at(queue, time), Region(high=MUCH),
                what=f"FCFS at most {MUCH:g} times {queue['scheduler']}", setting=setting,
                paper=VERY_LOW,
            )  # fmt: skip
        yield ratio(
            study, metric, at(FLEXIBLE, time), at(EASY, time), Region(high=NEAR),
            what=f"Flexible at most {NEAR:g} times EASY", setting=setting,
            paper="minimal growth",
        )  # fmt: skip
    for queue in (EASY, FLEXIBLE):
        yield grows_with_queue(study, queue)
        yield grows_slower(study, queue, EG)
        what = f"Tabu grows less than {queue['scheduler']}"
        part = partial(grows_slower, study, queue)
        yield over_bounds(study, what, QUEUE, part, "queues grow more quickly (conclusions)")
    yield stable(study, EG)
    ends = f"Ta = {times(study)[0]} s against {times(study)[-1]} s"
    what = f"Tabu stable (within a factor of {STABLE.high:g})"
    yield over_bounds(study, what, ends, partial(stable, study))


def stable(study: Study, schedule: Where) -> Part:
    """Is the run time at the highest contention within a factor of that at the lowest?"""
    first, last = times(study)[0], times(study)[-1]
    return ratio(
        study, "plan_seconds_mean", at(schedule, first), at(schedule, last), STABLE,
        what=f"{schedule['scheduler']} stable (within a factor of {STABLE.high:g})",
        setting=f"Ta = {first} s against {last} s",
    )  # fmt: skip


def grows_with_queue(study: Study, where: Where) -> Part:
    """Does the time of a plan grow quickly with the number of waiting jobs?"""
    what = f"{where['scheduler']} grows quickly (at least as N^{QUICK_GROWTH:g})"
    powers = queue_powers(study, where)
    if not powers:
        why = "no run has queues of two lengths"
        return Settled(what, QUEUE, Verdict.NOT_RUN, why)
    measured = f"N^{sum(powers.values()) / len(powers):.2f}"
    return compared(powers, Region(low=QUICK_GROWTH), what, QUEUE, "exponent", measured)


def grows_slower(study: Study, queue: Where, schedule: Where) -> Part:
    """Does the time of a schedule's plan grow less with the waiting jobs than that of a queue's?"""
    return grows_less(
        queue_powers(study, schedule), queue_powers(study, queue),
        what=f"{schedule['scheduler']} grows less than {queue['scheduler']}", setting=QUEUE,
        paper="queues grow more quickly (conclusions)",
    )  # fmt: skip


def queue_powers(study: Study, where: Where) -> Values:
    """The power of the number of waiting jobs that the time of a plan grows with, by seed.

    Fitted to the means by length of the queue, lengths from two to the next power of two on, all
    inter-arrival times together.
    """
    powers = {}
    for seed, costs in seconds_by_queue(study, where).items():
        waiting = [bound for bound in costs if bound > 1]
        if len(waiting) > 1:
            seconds = [costs[bound] for bound in waiting]
            powers[seed] = float(np.polyfit(np.log(waiting), np.log(seconds), 1)[0])
    return powers


def slowdown(study: Study) -> Iterator[Part]:
    """EG-4: Tabu below all others (without contention: or no worse than EG-EDF), Flexible close."""
    for time in times(study):
        setting = f"Ta = {time} s"
        for other in (*QUEUES, EG):
            yield tabu_below(study, "slowdown_mean", time, other, "slowdown", paper=BETTER)
        if time >= UNCONTENDED:
            what = f"Tabu at most {SLIGHTLY:g} times EG-EDF"
            yield over_bounds(study, what, setting, partial(no_worse, study, time), OURS)
        what = f"Flexible {CLOSE.low:g} to {CLOSE.high:g} times Tabu"
        yield over_bounds(study, what, setting, partial(not_far, study, time), "close enough")
    yield from falling_over_all(
        study, "slowdown_mean", "slowdown", 0.0, "slowdown",
        "the greater the contention, the greater the slowdown",
    )  # fmt: skip


def no_worse(study: Study, time: int, tabu: Where) -> Part:
    """Is the slowdown of tabu search hardly above that of EG-EDF, if at all?"""
    return at_most_times(
        study, "slowdown_mean", at(tabu, time), at(EG, time), SLIGHTLY, setting=f"Ta = {time} s",
        unit="slowdown",
    )  # fmt: skip


def not_far(study: Study, time: int, tabu: Where) -> Part:
    """Is the slowdown of Flexible backfilling close to that of tabu search?"""
    return ratio(
        study, "slowdown_mean", at(FLEXIBLE, time), at(tabu, time), CLOSE,
        what="Flexible close to Tabu", setting=f"Ta = {time} s",
    )  # fmt: skip


PAPER = Paper(
    "EG",
    "EG-EDF and tabu search",
    Source(),
    "EG-EDF puts every new job into the earliest gap of a schedule, or by its deadline, and tabu "
    "search moves jobs into earlier gaps. They are compared with FCFS, EASY and Flexible "
    "backfilling on 150 machines.",
    (
        Claim(
            "EG-1",
            "late jobs: Tabu <= EG-EDF < Flexible < EASY < FCFS, the first two far fewer than the "
            "queues; Tabu close to EG-EDF at 5; fewer as Ta rises",
            "Fig. 1 left",
            (MAIN,),
            late,
            f"no worse, close, falls from one Ta to the next: within {CLOSE_PERCENT:g} point of "
            f"late jobs; nearly the same also: at most {NEAR:g} times as many; much better, "
            f"significant: at most {MUCH:g} times as many. At Ta = {UNCONTENDED} s hardly any job "
            "is late under the schedules, so that 1 point says nothing: the ratio does",
        ),
        Claim(
            "EG-2",
            "system usage: schedule-based policies are better under contention, Tabu more than "
            "EG-EDF, and worse without",
            "Fig. 1 right",
            (MAIN,),
            usage,
            f"without contention: Ta = {UNCONTENDED} s",
            {
                "machine_usage_arriving": "usage while jobs arrive (%)",
                "utilization_percent": "plain utilisation (%)",
                "makespan": "makespan (s)",
            },
        ),
        Claim(
            "EG-3",
            "run time: FCFS lowest; EASY and Flexible grow with the queue, Flexible hardly more; "
            "EG-EDF and Tabu stay stable and lower, by the words of 4.1 than FCFS, too",
            "Fig. 2 left",
            (MAIN,),
            run_time,
            f"stable: within a factor of {STABLE.high:g} from the highest contention to none; "
            f"quickly: an exponent of at least {QUICK_GROWTH:g} of the waiting jobs; very low: at "
            f"most {MUCH:g} times; minimal growth, of the run time against EASY's: Flexible at "
            f"most {NEAR:g} times EASY; how each grows with its own queue stands beside it",
        ),
        Claim(
            "EG-4",
            "slowdown: Tabu best, Flexible close; lower as Ta rises",
            "Fig. 2 right",
            (MAIN,),
            slowdown,
            f"close: {CLOSE.low:g} to {CLOSE.high:g} times as high; at Ta = {UNCONTENDED} s also "
            f"a weaker form of ours: Tabu at most {SLIGHTLY:g} times EG-EDF",
            {"wait_mean": "wait, mean (s)"},
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
