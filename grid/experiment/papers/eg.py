"""EG-EDF and tabu search: schedules against queues, on one grid of machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

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
    mean,
    not_above,
    ordered,
)
from grid.experiment.papers.drawing import along_axis, points
from grid.experiment.statistics import Interval, mean_interval
from grid.experiment.study import Study
from grid.report.charts import Labels, Series, lines
from grid.report.labels import shown
from grid.report.style import Picture

MAIN = "eg-edf-tabu"
ALL = points("scheduler", ["FCFS", "EASY", "Flexible", "EG-EDF", "Tabu"])
FCFS, EASY, FLEXIBLE, EG, TABU = ALL
QUEUES, SCHEDULES = ALL[:3], ALL[3:]
TOLD = (2, 16, 128, 1024)
"""Lengths of the queue of which a line tells; see `plan_costs`."""
UNCONTENDED = 5
"""The paper's mean inter-arrival time at which the queue does not grow."""
CLOSE_PERCENT = 1.0
STABLE = 2.0
"""A run time is called stable that changes by no more than this factor over all arrival rates."""
NEAR = 0.25
"""Flexible's slowdown is called close to Tabu's within this share of it."""


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes["interarrival"])


def at(where: dict[str, str], interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, "interarrival": interarrival}


def late(study: Study) -> Finding:
    """EG-1: the whole order at every inter-arrival time, and the tie at the last."""
    checks = []
    for time in times(study):
        tabu, eg, flexible, easy, fcfs = (at(w, time) for w in (TABU, EG, FLEXIBLE, EASY, FCFS))
        checks.append(not_above(study, "late_percent", tabu, eg))
        checks += ordered(study, "late_percent", [eg, flexible, easy, fcfs])
    last = times(study)[-1]
    checks.append(close(study, "late_percent", at(TABU, last), at(EG, last), CLOSE_PERCENT))
    ours = along(study, "late_percent", "interarrival", times(study), ALL)
    return all_hold(checks, ours=f"late % {ours}")


def usage(study: Study) -> Finding:
    """EG-2: both schedules above all queues where jobs contend, below them where they do not."""
    checks = []
    for time in times(study):
        for schedule in SCHEDULES:
            for queue in QUEUES:
                low, high = (queue, schedule) if time < UNCONTENDED else (schedule, queue)
                checks.append(below(study, "machine_usage", at(low, time), at(high, time)))
    ours = along(study, "machine_usage", "interarrival", times(study), ALL)
    return all_hold(checks, ours=f"usage % {ours}")


def run_time(study: Study) -> Finding:
    """EG-3: the mean time of a plan, in milliseconds."""
    metric = "plan_seconds_mean"
    first, last = times(study)[0], times(study)[-1]
    checks = [
        below(study, metric, at(FCFS, time), at(other, time), 1000)
        for time in times(study)
        for other in ALL[1:]
    ]
    for queue in (EASY, FLEXIBLE):
        checks.append(below(study, metric, at(queue, last), at(queue, first), 1000))
        checks += [
            below(study, metric, at(schedule, first), at(queue, first), 1000)
            for schedule in SCHEDULES
        ]
    for schedule in SCHEDULES:
        means = [mean(study, metric, at(schedule, time)).mean for time in times(study)]
        factor = max(means) / min(means)
        text = f"{schedule['scheduler']} changes by a factor of {factor:.2g}"
        checks.append(Check(text, factor <= STABLE))
    ours = f"ms {along(study, metric, 'interarrival', times(study), ALL, 1000)}"
    if queues := "; ".join(f"{where['scheduler']} {costs}" for where, costs in _told(study)):
        ours += f"; by jobs that wait: {queues}"
    return all_hold(checks, f"stable means: by a factor of at most {STABLE:g}", ours)


def _told(study: Study) -> Iterator[tuple[dict[str, str], str]]:
    """What a plan of each scheduler costs while so many jobs wait, in words, where it is known."""
    for where in ALL:
        costs = plan_costs(study, where)
        told = [
            f"{shown(costs[bound].mean * 1000)} ({bound // 2} or more)"
            for bound in TOLD
            if bound in costs
        ]
        if told:
            yield where, ", ".join(told)


def plan_costs(study: Study, where: dict[str, str]) -> dict[int, Interval]:
    """The mean seconds of a plan while fewer than N jobs wait, and at least half as many, by N.

    Over all inter-arrival times, with the interval over seeds.
    """
    found = {}
    for bound in (2**power for power in range(32)):
        seconds: dict[int, float] = defaultdict(float)
        plans: dict[int, float] = defaultdict(float)
        for time in times(study):
            counts = study.values(f"plan_seconds_count_below_{bound}", at(where, time))
            for seed, mean_s in study.values(
                f"plan_seconds_mean_below_{bound}", at(where, time)
            ).items():
                seconds[seed] += mean_s * counts[seed]
                plans[seed] += counts[seed]
        if plans:
            means = [seconds[seed] / plans[seed] for seed in plans]
            found[bound] = mean_interval(means, study.level)
    return found


def slowdown(study: Study) -> Finding:
    """EG-4: Tabu below all others, Flexible not far from it."""
    checks = []
    for time in times(study):
        best = at(TABU, time)
        for other in ALL[:4]:
            checks.append(below(study, "slowdown_mean", best, at(other, time)))
        margin = NEAR * mean(study, "slowdown_mean", best).mean
        checks.append(close(study, "slowdown_mean", at(FLEXIBLE, time), best, margin))
    ours = along(study, "slowdown_mean", "interarrival", times(study), ALL)
    return all_hold(checks, f"close means: within {100 * NEAR:g} %", ours)


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 1 and 2, left and right; and what Fig. 2 (left) says of queues, over their length."""
    if MAIN not in studies.found:
        return
    study = studies.of(MAIN)
    for number, metric, label in (
        ("1-left", "late_percent", "late jobs (%)"),
        ("1-right", "machine_usage", "system usage (%)"),
        ("2-left", "plan_seconds_mean", "time for a plan, mean (s)"),
        ("2-right", "slowdown_mean", "slowdown"),
    ):
        is_time = metric.startswith("plan")
        name, side = number.split("-")
        caption = f"EG Fig. {name} ({side}) with our data: {label}."
        x = "mean inter-arrival time (s)"
        labels = Labels(f"eg-figure-{number}", caption, x, label, log_y=is_time)
        yield from along_axis(labels, study, metric, "interarrival", ALL)
    yield from _queue_figure(study)


def _queue_figure(study: Study) -> Iterator[Picture]:
    series = []
    for where in ALL:
        # No place on the axis for plans without a waiting job.
        costs = {bound: cost for bound, cost in plan_costs(study, where).items() if bound > 1}
        if costs:
            waiting = [bound // 2 for bound in costs]
            mean, low, high = zip(*((c.mean, c.low, c.high) for c in costs.values()), strict=True)
            series.append(Series(where["scheduler"], waiting, mean, low, high))
    if series:
        caption = (
            "EG Fig. 2 (left) over the queue: time for a plan while so many jobs wait, or up to "
            "twice as many."
        )
        axes = ("waiting jobs, from", "time for a plan, mean (s)")
        labels = Labels("eg-figure-2-queue", caption, *axes, log_x=True, log_y=True)
        yield lines(labels, series)


PAPER = Paper(
    "EG",
    "EG-EDF and tabu search",
    (
        Claim(
            "EG-1",
            "late jobs: Tabu ≤ EG-EDF < Flexible < EASY < FCFS; Tabu ≈ EG-EDF at 5",
            "Fig. 1 left",
            (MAIN,),
            late,
        ),
        Claim(
            "EG-2",
            "system usage: schedule-based policies are better under contention, worse without",
            "Fig. 1 right",
            (MAIN,),
            usage,
        ),
        Claim(
            "EG-3",
            "run time: FCFS lowest; EASY and Flexible grow with the queue; EG-EDF and Tabu stay "
            "stable and lower",
            "Fig. 2 left",
            (MAIN,),
            run_time,
        ),
        Claim("EG-4", "slowdown: Tabu best, Flexible close", "Fig. 2 right", (MAIN,), slowdown),
    ),
    figures,
)
