"""What an information overlay decides, and what it is told.

Each VO's Information Service has the overlay's decisions made by an object of its own. The service
itself keeps the entries, the newest of each VO, and carries letters. An overlay is pure: chance
comes from the stream that it is given, and the clock is in the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from grid.model.time import SECOND_US, Time


class View(NamedTuple):
    """What the Information Service of VO number `vo` sees at `now`.

    `peers` are the other VOs that it knows to be in the grid, in ascending order. `confirmed_us`
    holds the VOs that it has an entry of, its own included, and until when each was surely true.
    """

    vo: int
    now: Time
    peers: tuple[int, ...]
    confirmed_us: Mapping[int, Time]


class GossipMessage(NamedTuple):
    """To the Information Service of VO number `to`: the entries of these VOs, as they are here.

    With `asks`, the receiver is asked for what it knows: see `Overlay.answer`.
    """

    to: int
    entries: tuple[int, ...] = ()
    asks: bool = False


PeerLists = Sequence[Sequence[int]]
"""For each VO by its number, the numbers of other VOs, in ascending order."""


class Overlay:
    """An overlay that tells nobody anything. Others inherit from it and say what differs.

    - `period_us`: how often `every_period` is called; None: never. See `wait_us`, too.
    - `view_size`: of so many other VOs an entry is kept, those confirmed last; None: of all.
    - `starts_known`: VOs take those that are there at the beginning for idle.
    - `probes_first`: `probes` is called for every job, and answers are waited for until
      `timeout_us` after it. With `keeps_probes` they are known to later jobs, too.
    """

    period_us: Time | None = None
    view_size: int | None = None
    starts_known: bool = False
    probes_first: bool = False
    timeout_us: Time = SECOND_US
    keeps_probes: bool = False

    def subscribers(self, vos: int, rng: np.random.Generator) -> PeerLists:
        """Who hears the status snapshots of each of the `vos` VOs. All VOs draw the same."""
        return [()] * vos

    def known_peers(self, subscribers: PeerLists) -> PeerLists:
        """Who knows that each VO is in the grid, and may send it jobs: everybody."""
        return all_others(len(subscribers))

    def rounds(self, peers: int) -> int:
        """How often `every_period` is called after the last news, once all jobs are submitted."""
        return 0

    def wait_us(self, now: Time, rng: np.random.Generator) -> Time:
        """How long after a round at `now` the next one begins: at least a microsecond."""
        assert self.period_us is not None
        return self.period_us

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[GossipMessage]:
        """What to send now."""
        return ()

    def answer(self, view: View, sender: int, rng: np.random.Generator) -> Iterable[GossipMessage]:
        """What to send when VO number `sender` asks, with its entries taken in before."""
        return (GossipMessage(sender, tuple(view.confirmed_us)),)

    def probes(self, view: View, rng: np.random.Generator) -> Sequence[int]:
        """Which VOs to ask how they are before a job is placed."""
        return ()


def all_others(vos: int) -> PeerLists:
    """Everybody else, for each VO."""
    return [tuple(other for other in range(vos) if other != vo) for vo in range(vos)]
