"""Windows that play their rounds in one process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grid.kernel.network import Network
from grid.runtime.grants import Grants, News, earliest_events, is_over
from grid.runtime.ring import Parcel
from grid.runtime.window import Player


def grants_of(network: Network, process_of: Sequence[int], count: int = 0) -> Grants:
    """For `count` processes (default: all that have entities), of which `process_of` tells."""
    members: list[list[int]] = [[] for _ in range(count or max(process_of) + 1)]
    for entity, process in enumerate(process_of):
        members[process].append(entity)
    return Grants(network.lookahead(members))


def rounds(windows: Sequence[Player], grants: Grants) -> Iterator[list[News]]:
    """Before each round, what all told; everything that was sent has arrived then."""
    while True:
        told = _accepted(windows, [window.report() for window in windows])
        if is_over(told):
            return
        yield told
        earliest = earliest_events(told)
        for number, window in enumerate(windows):
            window.advance(grants.of(number, earliest))


def overlapping_rounds(windows: Sequence[Player], grants: Grants) -> Iterator[list[News]]:
    """After each round, what all told before it, as `play` has it; some is under way."""
    told = _accepted(windows, [window.report() for window in windows])
    if is_over(told):
        return
    firsts = [grants.first(number, told) for number in range(len(windows))]
    afters = [after for _, after in firsts]
    for window, (grant, _) in zip(windows, firsts, strict=True):
        window.advance(grant)
    while True:
        reports = [window.report() for window in windows]
        for window, after in zip(windows, afters, strict=True):
            window.advance(after)
        told = _accepted(windows, reports)
        if is_over(told):
            return
        yield told
        afters = [grants.next(number, told, after) for number, after in enumerate(afters)]


def _accepted(
    windows: Sequence[Player], reports: Sequence[tuple[News, list[Parcel]]]
) -> list[News]:
    """All windows take in what all told and sent."""
    told = [news for news, _ in reports]
    for number, window in enumerate(windows):
        parcels = [parcel for _, sent in reports for parcel in sent]
        window.accept(told, [batch for target, batch in parcels if target == number])
    return told
