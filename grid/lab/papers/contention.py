"""What both Convergent Scheduling papers say of contention: it falls, and late jobs with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grid.lab.claims import Part, Where
from grid.lab.comparisons import falling, within
from grid.lab.papers.points import AXIS
from grid.lab.statistics import Region
from grid.lab.study import Study

LATE_CLOSE = 1.0
"""Percentages of late jobs at most so many points apart are called very close."""
CONSTANT = Region(0.8, 1.25)
"""Contention is almost constant if so many times as many jobs are in the system in the last quarter
of the arrivals as in the second."""
CONSTANT_FROM = 12
"""The inter-arrival time from which on both papers call contention almost constant."""
CRITERION = (
    f"falls: no step to the next larger Ta raises it by more than {LATE_CLOSE:g} point, and it is "
    f"lower at the largest Ta than at the smallest; almost constant: {CONSTANT.low:g} to "
    f"{CONSTANT.high:g} times as many jobs in the last quarter of the arrivals as in the second "
    "(our margin: the papers give none)"
)


def late_jobs_fall(study: Study, wheres: Sequence[Where]) -> Iterator[Part]:
    """Has each scheduler the fewer late jobs, the longer the inter-arrival time is?"""
    for where in wheres:
        yield from falling(
            study, "late_percent", where, AXIS, what=f"{where['scheduler']}: lateness by Ta",
            margin=LATE_CLOSE, unit="% of jobs with a deadline", paper="falls as Ta rises",
        )  # fmt: skip


def contention(study: Study, where: Where, figure: str) -> Iterator[Part]:
    """Does contention fall as the inter-arrival time rises, and is it constant from 12 on?"""
    yield from falling(
        study, "jobs_in_system_mean", where, AXIS, what=f"contention by Ta ({figure})", margin=0.0,
        unit="jobs in the system", paper="falls as Ta rises",
    )  # fmt: skip
    for time in sorted(study.axes[AXIS]):
        if time >= CONSTANT_FROM:
            yield within(
                study, "jobs_in_system_growth", {**where, AXIS: time}, CONSTANT,
                what=f"contention almost constant ({figure})", setting=f"Ta = {time} s",
                unit="times as many jobs in the last quarter of the arrivals as in the second",
                paper="almost constant",
            )  # fmt: skip
