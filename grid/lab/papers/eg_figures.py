"""EG's figures with our data."""

from __future__ import annotations

from collections.abc import Iterator

from grid.lab.claims import Studies, Where
from grid.lab.papers.drawing import along_axis, scaled
from grid.lab.papers.eg_points import EG, MAIN, SHOWN, TABUS, seconds_by_queue
from grid.lab.report.charts import Labels, Series, lines
from grid.lab.report.style import Picture
from grid.lab.statistics import Interval, mean_interval
from grid.lab.study import Study


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 1 and 2, left and right; and what Fig. 2 (left) says of queues, over their length."""
    if MAIN not in studies.found:
        return
    study = studies.found[MAIN]
    for number, metric, label in (
        ("1-left", "late_percent", "jobs late, of those with a deadline (%)"),
        ("1-right", "machine_usage", "system usage (%)"),
        ("2-left", "plan_seconds_mean", "time for a plan, mean (ms)"),
        ("2-right", "slowdown_mean", "slowdown"),
    ):
        is_time = metric.startswith("plan")
        name, side = number.split("-")
        caption = f"EG Fig. {name} ({side}) with our data: {label}."
        x = "mean inter-arrival time (s)"
        labels = Labels(f"eg-figure-{number}", caption, x, label, log_y=is_time)
        factor = 1000.0 if is_time else 1.0
        yield from along_axis(labels, study, metric, "interarrival", SHOWN, factor)
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
            series.append(scaled(Series(where["scheduler"], waiting, mean, low, high), 1000.0))
    if series:
        caption = "EG Fig. 2 (left), over the queue: time for a plan while N to 2N jobs wait."
        axes = ("waiting jobs, from", "time for a plan, mean (ms)")
        labels = Labels("eg-figure-2-queue", caption, *axes, log_x=True, log_y=True)
        yield lines(labels, series)


def _bound_figures(study: Study) -> Iterator[Picture]:
    """What hangs on the bound of iterations, which the paper does not give."""
    for name, metric, label in (
        ("late", "late_percent", "jobs late, of those with a deadline (%)"),
        ("slowdown", "slowdown_mean", "slowdown"),
        ("time", "plan_seconds_mean", "time for a plan, mean (ms)"),
    ):
        caption = f"EG, over the iterations of tabu search, which the paper leaves open: {label}."
        axes = ("mean inter-arrival time (s)", label)
        labels = Labels(f"eg-iterations-{name}", caption, *axes, log_y=name == "time")
        factor = 1000.0 if name == "time" else 1.0
        yield from along_axis(labels, study, metric, "interarrival", [EG, *TABUS.values()], factor)


def plan_costs(study: Study, where: Where) -> dict[int, Interval]:
    """The same as intervals over seeds, by N."""
    by_seed = seconds_by_queue(study, where).values()
    bounds = sorted({bound for costs in by_seed for bound in costs})
    return {
        bound: mean_interval([costs[bound] for costs in by_seed if bound in costs], study.level)
        for bound in bounds
    }
