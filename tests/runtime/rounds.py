"""Windows that play their rounds in one process, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from grid.kernel.network import Network
from grid.runtime.grants import Grants, News, is_over
from grid.runtime.ring import Parcel


class Player(Protocol):
    """What a round needs of a window."""

    def report(self) -> tuple[News, list[Parcel]]: ...
    def accept(self, told: Sequence[News], batches: Sequence[bytes]) -> None: ...
    def go_on(self, grants: Grants, told: Sequence[News]) -> None: ...


def grants_of(network: Network, process_of: Sequence[int], count: int = 0) -> Grants:
    """For `count` processes (default: all that have entities), of which `process_of` tells."""
    members: list[list[int]] = [[] for _ in range(count or max(process_of) + 1)]
    for entity, process in enumerate(process_of):
        members[process].append(entity)
    return Grants(network.lookahead(members))


def rounds(windows: Sequence[Player], grants: Grants) -> Iterator[list[News]]:
    """Before each round, what all told; everything that was sent has arrived then."""
    while True:
        reports = [window.report() for window in windows]
        told = [news for news, _ in reports]
        for number, window in enumerate(windows):
            parcels = [parcel for _, sent in reports for parcel in sent]
            window.accept(told, [batch for target, batch in parcels if target == number])
        if is_over(told):
            return
        yield told
        for window in windows:
            window.go_on(grants, told)
