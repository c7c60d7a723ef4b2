"""Windows that play their rounds in one process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count as counted
from itertools import cycle

from grid.kernel.network import Network
from grid.model.time import Time
from grid.runtime.connections import Parcel
from grid.runtime.safe_times import ProcessReport, RoundReports, SafeTimes, is_over
from grid.runtime.window import Player, WindowSchedule


def grants_of(network: Network, process_of: Sequence[int], count: int = 0) -> SafeTimes:
    """For `count` processes (default: all that have entities), of which `process_of` tells."""
    members: list[list[int]] = [[] for _ in range(count or max(process_of) + 1)]
    for entity, process in enumerate(process_of):
        members[process].append(entity)
    return SafeTimes(network.lookahead(members))


def rounds(windows: Sequence[Player], grants: SafeTimes) -> Iterator[RoundReports]:
    """Before each round, the reports of all windows; everything that was sent has arrived."""
    return _rounds(windows, grants, lambda _: False)


def overlapping_rounds(windows: Sequence[Player], grants: SafeTimes) -> Iterator[RoundReports]:
    """Before each round, the reports before the last ones; some messages are under way."""
    return _rounds(windows, grants, lambda _: True)


def mixed_rounds(windows: Sequence[Player], grants: SafeTimes) -> Iterator[RoundReports]:
    """Rounds of both kinds."""
    kinds = cycle((False, False, True, False, True, True, True, True))
    return _rounds(windows, grants, lambda _: next(kinds))


def _rounds(
    windows: Sequence[Player], grants: SafeTimes, pays: Callable[[RoundReports], bool]
) -> Iterator[RoundReports]:
    """As `play` has it."""
    of_round: list[bool] = []

    def same_for_all() -> Callable[[RoundReports], bool]:
        asked = counted()

        def answer(every_report: RoundReports) -> bool:
            turn = next(asked)
            if turn == len(of_round):
                of_round.append(pays(every_report))
            return of_round[turn]

        return answer

    courses = [
        WindowSchedule(_Seat(windows, number), number, grants, same_for_all())
        for number in range(len(windows))
    ]
    while True:
        reports = [window.report() for window in windows]
        for course in courses:
            course.go_on()
        every_report = _accepted(windows, reports)
        if is_over(every_report):
            return
        yield every_report
        for course in courses:
            course.follow(every_report)


class _Seat:
    """A window by its number: another one may take its place between two rounds."""

    def __init__(self, windows: Sequence[Player], number: int) -> None:
        self._windows, self._number = windows, number

    def report(self) -> tuple[ProcessReport, list[Parcel]]:
        return self._windows[self._number].report()

    def accept(self, every_report: RoundReports, batches: Sequence[bytes]) -> None:
        self._windows[self._number].accept(every_report, batches)

    def advance(self, grant: Time) -> None:
        self._windows[self._number].advance(grant)


def _accepted(
    windows: Sequence[Player], reports: Sequence[tuple[ProcessReport, list[Parcel]]]
) -> RoundReports:
    """All windows accept the reports and messages of all."""
    every_report = [report for report, _ in reports]
    for number, window in enumerate(windows):
        parcels = [parcel for _, sent in reports for parcel in sent]
        window.accept(every_report, [batch for target, batch in parcels if target == number])
    return every_report
