"""Windows that run their rounds in one process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

from grid.kernel.network import Network
from grid.runtime.connections import Parcel
from grid.runtime.safe_times import ProcessReport, RoundReports, SafeTimes, is_over
from grid.runtime.window import WindowSchedule


def grants_of(network: Network, process_of: Sequence[int], count: int = 0) -> SafeTimes:
    """For `count` processes (default: all that have entities), of which `process_of` tells."""
    members: list[list[int]] = [[] for _ in range(count or max(process_of) + 1)]
    for entity, process in enumerate(process_of):
        members[process].append(entity)
    return SafeTimes(network.lookahead(members))


def rounds(windows: Sequence[Any], safe_times: SafeTimes) -> Iterator[RoundReports]:
    """Before each round, the reports of all windows; everything that was sent has arrived."""
    return _rounds(windows, safe_times, lambda _: False)


def overlapping_rounds(windows: Sequence[Any], safe_times: SafeTimes) -> Iterator[RoundReports]:
    """Before each round, the reports before the last ones; some messages are under way."""
    return _rounds(windows, safe_times, lambda _: True)


def mixed_rounds(windows: Sequence[Any], safe_times: SafeTimes) -> Iterator[RoundReports]:
    """Rounds of both kinds."""
    kinds = cycle((False, False, True, False, True, True, True, True))
    return _rounds(windows, safe_times, lambda _: next(kinds))


def _rounds(
    windows: Sequence[Any], safe_times: SafeTimes, pays: Callable[[RoundReports], bool]
) -> Iterator[RoundReports]:
    """As `run_rounds` does. A window may be replaced between two rounds."""
    overlaps = False
    schedules = [
        WindowSchedule(window, number, safe_times, lambda _: overlaps)
        for number, window in enumerate(windows)
    ]
    while True:
        reports = [window.report() for window in windows]
        for schedule in schedules:
            schedule.overlap()
        every_report = _accepted(windows, reports)
        if is_over(every_report):
            return
        yield every_report
        overlaps = pays(every_report)
        for schedule, window in zip(schedules, windows, strict=True):
            schedule._window = window
            schedule.follow(every_report)


def _accepted(
    windows: Sequence[Any], reports: Sequence[tuple[ProcessReport, list[Parcel]]]
) -> RoundReports:
    """All windows accept the reports and messages of all."""
    every_report = [report for report, _ in reports]
    for number, window in enumerate(windows):
        parcels = [parcel for _, sent in reports for parcel in sent]
        window.accept(every_report, [batch for target, batch in parcels if target == number])
    return every_report
