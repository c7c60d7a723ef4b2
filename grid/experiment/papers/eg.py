"""EG-EDF and tabu search: schedules against queues, on one grid of machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from grid.experiment.claims import Claim, Paper, Part, Settled, Source, Studies, Verdict, Where
from grid.experiment.comparisons import below, close, compared, over, ratio
from grid.experiment.papers.drawing import along_axis, points
from grid.experiment.papers.eg_readings import LEFT_OUT, READINGS, WHY
from grid.experiment.statistics import Interval, Region, mean_interval
from grid.experiment.study import Study
from grid.report.charts import Labels, Series, lines
from grid.report.style import Picture

MAIN = "eg-edf-tabu"
FCFS, EASY, FLEXIBLE, EG = points("scheduler", ["FCFS", "EASY", "Flexible", "EG-EDF"])
QUEUES = [FCFS, EASY, FLEXIBLE]
TABUS = {
    f"{count} iterations": {"scheduler": f"Tabu, {count} iterations"}
    for count in (3, 10, 30, 100, 300)
}
"""Tabu search by its bound of iterations for each job that comes, which the paper does not give."""
BOUND = "the bound of iterations of tabu search"
TABU = TABUS["100 iterations"]
SHOWN = [*QUEUES, EG, TABU]
UNCONTENDED = 5
"""The paper's mean inter-arrival time at which the queue does not grow."""
CLOSE_PERCENT = 1.0
"""Late jobs at most so many points apart are nearly the same."""
STABLE = Region(0.5, 2.0)
"""A run time is called stable that at most doubles or halves from no contention to the highest."""
NEAR = 1.25
"""Flexible's slowdown is called close to Tabu's up to so many times of it."""
QUICK_GROWTH = 0.5
"""Grows quickly: at least with the square root of the number of waiting jobs."""
LATE_UNIT = "% of jobs with a deadline"


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes["interarrival"])


def at(where: Where, interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, "interarrival": interarrival}


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


def late(study: Study) -> Iterator[Part]:
    """EG-1: the whole order at every inter-arrival time, and the tie at the last."""
    for time in times(study):
        yield tabu_below(study, "late_percent", time, EG, LATE_UNIT, margin=CLOSE_PERCENT)
        for better, worse in ((EG, FLEXIBLE), (FLEXIBLE, EASY), (EASY, FCFS)):
            yield below(
                study, "late_percent", at(better, time), at(worse, time),
                setting=f"Ta = {time} s", unit=LATE_UNIT,
            )  # fmt: skip
    last = times(study)[-1]
    setting = f"Ta = {last} s"

    def tied(tabu: Where) -> Part:
        return close(
            study, "late_percent", at(tabu, last), at(EG, last), CLOSE_PERCENT, setting=setting,
            unit="points",
        )  # fmt: skip

    what = f"Tabu close to EG-EDF (within {CLOSE_PERCENT:g} point)"
    yield over_bounds(study, what, setting, tied, "nearly the same")


def usage(study: Study) -> Iterator[Part]:
    """EG-2: both schedules above all queues where jobs contend, below them where they do not."""
    for time in times(study):
        for queue in QUEUES:
            yield used(study, time, queue, EG)
            word = "above" if time < UNCONTENDED else "below"
            what = f"Tabu {word} {queue['scheduler']}"
            yield over_bounds(study, what, f"Ta = {time} s", partial(used, study, time, queue))


def used(study: Study, time: int, queue: Where, schedule: Where) -> Part:
    """Is the usage of a schedule above that of a queue, or below it without contention?"""
    first, second = at(queue, time), at(schedule, time)
    if time >= UNCONTENDED:
        first, second = second, first
    return below(study, "machine_usage", first, second, setting=f"Ta = {time} s", unit="%")


def run_time(study: Study) -> Iterator[Part]:
    """EG-3: the mean time of a plan, in milliseconds, at every scheduling event."""
    metric = "plan_seconds_mean"
    for time in times(study):
        setting = f"Ta = {time} s"
        for first, second in (
            (FCFS, EASY), (FCFS, FLEXIBLE), (FCFS, EG), (EG, EASY), (EG, FLEXIBLE),
        ):  # fmt: skip
            yield below(
                study, metric, at(first, time), at(second, time), setting=setting, unit="ms",
                factor=1000,
            )  # fmt: skip
        for queue in (EASY, FLEXIBLE):
            yield tabu_below(study, metric, time, queue, "ms", factor=1000)
    for queue in (EASY, FLEXIBLE):
        yield grows_with_queue(study, queue)
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
    """Does the time of a plan grow quickly with the number of waiting jobs?

    The power of the number of jobs is fitted for each seed to the means by length of the queue,
    lengths from two to the next power of two on, all inter-arrival times together.
    """
    what = f"{where['scheduler']} grows quickly (at least as N^{QUICK_GROWTH:g})"
    setting = "over the waiting jobs N"
    powers = {}
    for seed, costs in seconds_by_queue(study, where).items():
        waiting = [bound for bound in costs if bound > 1]
        if len(waiting) > 1:
            seconds = [costs[bound] for bound in waiting]
            powers[seed] = float(np.polyfit(np.log(waiting), np.log(seconds), 1)[0])
    if not powers:
        why = "no run has queues of two lengths"
        return Settled(what, setting, Verdict.NOT_RUN, why)
    told = f"N^{sum(powers.values()) / len(powers):.2f}"
    return compared(powers, Region(low=QUICK_GROWTH), what, setting, "exponent", told)


def seconds_by_queue(study: Study, where: Where) -> dict[int, dict[int, float]]:
    """By seed and N, the mean seconds of a plan while fewer than N jobs wait, and at least N / 2.

    Over all inter-arrival times.
    """
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for bound in (2**power for power in range(32)):
        seconds: dict[int, float] = defaultdict(float)
        plans: dict[int, float] = defaultdict(float)
        for time in times(study):
            point = at(where, time)
            counts = study.values(f"plan_seconds_count_below_{bound}", point)
            for seed, mean_s in study.values(f"plan_seconds_mean_below_{bound}", point).items():
                seconds[seed] += mean_s * counts[seed]
                plans[seed] += counts[seed]
        for seed, count in plans.items():
            found[seed][bound] = seconds[seed] / count
    return found


def plan_costs(study: Study, where: Where) -> dict[int, Interval]:
    """The same as intervals over seeds, by N."""
    by_seed = seconds_by_queue(study, where).values()
    bounds = sorted({bound for costs in by_seed for bound in costs})
    return {
        bound: mean_interval([costs[bound] for costs in by_seed if bound in costs], study.level)
        for bound in bounds
    }


def slowdown(study: Study) -> Iterator[Part]:
    """EG-4: Tabu below all others, Flexible not far from it."""
    for time in times(study):
        for other in (FCFS, EASY, FLEXIBLE, EG):
            yield tabu_below(study, "slowdown_mean", time, other, "slowdown")
        what = f"Flexible at most {NEAR:g} times Tabu"
        near = partial(not_far, study, time)
        yield over_bounds(study, what, f"Ta = {time} s", near, "close enough")


def not_far(study: Study, time: int, tabu: Where) -> Part:
    """Is the slowdown of Flexible backfilling close to that of tabu search?"""
    return ratio(
        study, "slowdown_mean", at(FLEXIBLE, time), at(tabu, time), Region(high=NEAR),
        what="Flexible close to Tabu", setting=f"Ta = {time} s",
    )  # fmt: skip


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 1 and 2, left and right; and what Fig. 2 (left) says of queues, over their length."""
    if MAIN not in studies.found:
        return
    study = studies.found[MAIN]
    for number, metric, label in (
        ("1-left", "late_percent", "jobs late, of those with a deadline (%)"),
        ("1-right", "machine_usage", "system usage (%)"),
        ("2-left", "plan_seconds_mean", "time for a plan, mean (s)"),
        ("2-right", "slowdown_mean", "slowdown"),
    ):
        is_time = metric.startswith("plan")
        name, side = number.split("-")
        caption = f"EG Fig. {name} ({side}) with our data: {label}."
        x = "mean inter-arrival time (s)"
        labels = Labels(f"eg-figure-{number}", caption, x, label, log_y=is_time)
        yield from along_axis(labels, study, metric, "interarrival", SHOWN)
    yield from _queue_figure(study)
    yield from _bound_figures(study)


def _queue_figure(study: Study) -> Iterator[Picture]:
    series = []
    for where in SHOWN:
        # No place on the axis for plans without a waiting job.
        costs = {bound: cost for bound, cost in plan_costs(study, where).items() if bound > 1}
        if costs:
            waiting = [bound // 2 for bound in costs]
            mean, low, high = zip(*((c.mean, c.low, c.high) for c in costs.values()), strict=True)
            series.append(Series(where["scheduler"], waiting, mean, low, high))
    if series:
        caption = (
            "EG Fig. 2 (left), over the queue: time for a plan while so many jobs wait, or up to "
            "twice as many."
        )
        axes = ("waiting jobs, from", "time for a plan, mean (s)")
        labels = Labels("eg-figure-2-queue", caption, *axes, log_x=True, log_y=True)
        yield lines(labels, series)


def _bound_figures(study: Study) -> Iterator[Picture]:
    """What hangs on the bound of iterations, which the paper does not give."""
    for name, metric, label in (
        ("late", "late_percent", "jobs late, of those with a deadline (%)"),
        ("slowdown", "slowdown_mean", "slowdown"),
        ("time", "plan_seconds_mean", "time for a plan, mean (s)"),
    ):
        caption = f"EG, over the iterations of tabu search, which the paper leaves open: {label}."
        axes = ("mean inter-arrival time (s)", label)
        labels = Labels(f"eg-iterations-{name}", caption, *axes, log_y=name == "time")
        yield from along_axis(labels, study, metric, "interarrival", [EG, *TABUS.values()])


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
            "late jobs: Tabu <= EG-EDF < Flexible < EASY < FCFS; Tabu close to EG-EDF at 5",
            "Fig. 1 left",
            (MAIN,),
            late,
            f"<= and close: within {CLOSE_PERCENT:g} point of late jobs",
        ),
        Claim(
            "EG-2",
            "system usage: schedule-based policies are better under contention, worse without",
            "Fig. 1 right",
            (MAIN,),
            usage,
            f"without contention: Ta = {UNCONTENDED} s",
        ),
        Claim(
            "EG-3",
            "run time: FCFS lowest; EASY and Flexible grow with the queue; EG-EDF and Tabu stay "
            "stable and lower",
            "Fig. 2 left",
            (MAIN,),
            run_time,
            f"stable: within a factor of {STABLE.high:g} from the highest contention to none; "
            f"quickly: an exponent of at least {QUICK_GROWTH:g} of the waiting jobs",
        ),
        Claim(
            "EG-4",
            "slowdown: Tabu best, Flexible close",
            "Fig. 2 right",
            (MAIN,),
            slowdown,
            f"close: at most {NEAR:g} times as high",
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
