"""What interventions come to in the actors of a live run: pure functions of the list so far.

Every actor has the same list, and hears of each entry a little before it takes effect. So an
intervention is to them what the faults of a scenario are: settled beforehand. An actor that starts
anew has the list from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from grid.cluster.outages import disjoint_outages
from grid.kernel.event import Order, Resume, Stop
from grid.kernel.faults import Faults, Partition
from grid.model.interventions import (
    CUT_OFF,
    GO_ON,
    HEAL,
    PAUSE,
    TAKE_MACHINE_DOWN,
    TAKE_VO_DOWN,
    Intervention,
)
from grid.model.messages import Repair, TakeDown
from grid.model.platform import MachineOutage, Outage
from grid.model.time import NEVER, Time
from grid.results.machines import Directory

Interventions = tuple[Intervention, ...]
"""All of a run so far, in order."""
Pauses = tuple[tuple[float, float], ...]
"""Seconds of the real clock since the beginning, from when until when; the last may not end."""


def pauses(done: Sequence[Intervention]) -> Pauses:
    """When the clock stands still."""
    found: list[tuple[float, float]] = []
    begun: float | None = None
    for one in done:
        if one.wish.what == PAUSE and begun is None:
            begun = one.real_s
        elif one.wish.what == GO_ON and begun is not None:
            found.append((begun, one.real_s))
            begun = None
    if begun is not None:
        found.append((begun, float("inf")))
    return tuple(found)


def orders(
    done: Sequence[Intervention], vo: str, cluster: str | None
) -> Iterator[tuple[Time, Order]]:
    """What an entity of `vo` hears of, and when; that of a Local Dispatcher's `cluster`, too."""
    is_stopped = breaks = False
    for one in done:
        wish, number = one.wish, one.number
        if wish.what == TAKE_VO_DOWN and wish.vo == vo and not is_stopped:
            is_stopped = True
            yield one.time_us, Order(number, Stop())
        elif wish.what == TAKE_MACHINE_DOWN and (wish.vo, wish.cluster) == (vo, cluster):
            breaks = True
            yield one.time_us, Order(number, TakeDown(wish.machine))
        elif wish.what == HEAL:
            if is_stopped:
                yield one.time_us, Order(number, Resume())
            if breaks:
                yield one.time_us, Order(number, Repair())
            is_stopped = breaks = False


def with_outages(directory: Directory, done: Sequence[Intervention]) -> Directory:
    """The directory, in which the machines that were taken down were so, like those of faults."""
    clusters = []
    for entry in directory.clusters:
        outages = list(entry.outages)
        since: dict[int, Time] = {}
        for one in done:
            wish = one.wish
            if wish.what == HEAL:
                outages += [MachineOutage(*down, one.time_us) for down in since.items()]
                since = {}
            elif (wish.what, wish.vo, wish.cluster) == (
                TAKE_MACHINE_DOWN, directory.vos[entry.vo], entry.name,
            ):  # fmt: skip
                since.setdefault(wish.machine, one.time_us)
        outages += [MachineOutage(*down, NEVER) for down in since.items()]
        clusters.append(replace(entry, outages=disjoint_outages(outages)))
    return replace(directory, clusters=tuple(clusters))


def is_about_stops(order: Order) -> bool:
    """Whether it stops an entity or lets it go on."""
    return isinstance(order.content, Stop | Resume)


def is_stopped(done: Sequence[Intervention], vo: str, now: Time) -> bool:
    """Whether the entities of the VO are stopped then."""
    about = [order for due, order in orders(done, vo, None) if due <= now]
    return bool(about) and isinstance(about[-1].content, Stop)


def with_cuts(
    faults: Faults | None, seed: int, vos: Sequence[str], done: Sequence[Intervention]
) -> Faults:
    """The faults of messages of a grid of these `vos`, and the VOs that are cut off besides."""
    before = faults if faults is not None else Faults(seed)
    cuts: list[Partition] = []
    for one in done:
        if one.wish.what == CUT_OFF:
            sides = (frozenset([vos.index(name)]) for name in (one.wish.vo, one.wish.other))
            cuts.append(Partition(Outage(one.time_us, NEVER), *sides))
        elif one.wish.what == HEAL:
            cuts = [_until(cut, one.time_us) for cut in cuts]
    return replace(before, partitions=(*before.partitions, *cuts))


def _until(cut: Partition, end_us: Time) -> Partition:
    return replace(cut, outage=replace(cut.outage, end_us=min(cut.outage.end_us, end_us)))
