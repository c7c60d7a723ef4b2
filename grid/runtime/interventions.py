"""Interventions in a live run: the observer's requests, and their effects on each actor.

Each actor receives each intervention before it takes effect, like the faults of a scenario; an
actor that restarts receives all of them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from grid.cluster.state import disjoint_outages
from grid.kernel.event import Order, Resume, Stop
from grid.kernel.faults import Faults, Partition
from grid.model.interventions import (
    CUT_OFF,
    GO_ON,
    HEAL,
    KILL,
    PAUSE,
    TAKE_MACHINE_DOWN,
    TAKE_VO_DOWN,
    Action,
    Intervention,
    why_idle,
)
from grid.model.job_results import JobResults
from grid.model.messages import Repair, TakeDown
from grid.model.platform import MachineOutage, Outage
from grid.model.time import NEVER, Time
from grid.results.look import Look, Observer, ProcessLook
from grid.results.machines import Directory
from grid.runtime.clock import Clock, Lateness, Pauses
from grid.runtime.observers import Status

Done = tuple[Intervention, ...]
"""All of a run so far, in order."""


def pauses(done: Sequence[Intervention]) -> Pauses:
    """The intervals in which the clock is stopped."""
    found: list[tuple[float, float]] = []
    begun: float | None = None
    for one in done:
        if one.action.what == PAUSE and begun is None:
            begun = one.real_s
        elif one.action.what == GO_ON and begun is not None:
            found.append((begun, one.real_s))
            begun = None
    if begun is not None:
        found.append((begun, float("inf")))
    return tuple(found)


def orders(
    done: Sequence[Intervention], vo: str, cluster: str | None
) -> Iterator[tuple[Time, Order]]:
    """The orders to an entity of `vo`, or of a Local Dispatcher's `cluster`, and their times."""
    is_stopped = breaks = False
    for one in done:
        action, number = one.action, one.number
        if action.what == TAKE_VO_DOWN and action.vo == vo and not is_stopped:
            is_stopped = True
            yield one.time_us, Order(number, Stop())
        elif action.what == TAKE_MACHINE_DOWN and (action.vo, action.cluster) == (vo, cluster):
            breaks = True
            yield one.time_us, Order(number, TakeDown(action.machine))
        elif action.what == HEAL:
            if is_stopped:
                yield one.time_us, Order(number, Resume())
            if breaks:
                yield one.time_us, Order(number, Repair())
            is_stopped = breaks = False


def with_outages(directory: Directory, done: Sequence[Intervention]) -> Directory:
    """The directory, with the outages of machines that were taken down."""
    clusters = []
    for entry in directory.clusters:
        outages = list(entry.outages)
        since: dict[int, Time] = {}
        for one in done:
            action = one.action
            if action.what == HEAL:
                outages += [MachineOutage(*down, one.time_us) for down in since.items()]
                since = {}
            elif (action.what, action.vo, action.cluster) == (
                TAKE_MACHINE_DOWN, directory.vos[entry.vo], entry.name,
            ):  # fmt: skip
                since.setdefault(action.machine, one.time_us)
        outages += [MachineOutage(*down, NEVER) for down in since.items()]
        clusters.append(replace(entry, outages=disjoint_outages(outages)))
    return replace(directory, clusters=tuple(clusters))


def is_about_stops(order: Order) -> bool:
    """Whether it stops or resumes an entity."""
    return isinstance(order.content, Stop | Resume)


def is_stopped(done: Sequence[Intervention], vo: str, now: Time) -> bool:
    """Whether the entities of the VO are stopped then."""
    about = [order for due, order in orders(done, vo, None) if due <= now]
    return bool(about) and isinstance(about[-1].content, Stop)


def with_cuts(
    faults: Faults | None, seed: int, vos: Sequence[str], done: Sequence[Intervention]
) -> Faults:
    """The message faults of a grid of these `vos`, and the VOs that were cut off."""
    before = faults if faults is not None else Faults(seed)
    cuts: list[Partition] = []
    for one in done:
        if one.action.what == CUT_OFF:
            sides = (frozenset([vos.index(name)]) for name in (one.action.vo, one.action.other))
            cuts.append(Partition(Outage(one.time_us, NEVER), *sides))
        elif one.action.what == HEAL:
            cuts = [_until(cut, one.time_us) for cut in cuts]
    return replace(before, partitions=(*before.partitions, *cuts))


def _until(cut: Partition, end_us: Time) -> Partition:
    return replace(cut, outage=replace(cut.outage, end_us=min(cut.outage.end_us, end_us)))


NOTICE_SECONDS = 0.6
"""Time between a request and its effect, so that all actors receive it before."""
MILLISECONDS = 1000


class LiveWatch:
    """Calls the observer of a live run; `kill` ends the actor of an entity, if there is one."""

    def __init__(self, observer: Observer, kill: Callable[[str], bool]) -> None:
        self._observer = observer
        self._kill = kill
        self.done: Done = ()
        self._undone: tuple[str, ...] = ()
        self._looks: dict[str, ProcessLook] = {}
        self._news: list[JobResults] = []
        self._known: set[tuple[int, int]] = set()
        self._gone: Counter[str] = Counter()

    def take(self, host: str, look: ProcessLook) -> None:
        """Store the state of an actor. A restarted one reports all jobs of its journals again."""
        before = self._looks.get(host)
        if before is not None and look.cpu_s < before.cpu_s:
            self._gone.update(before.messages)
        self._news += [new for chunk in look.ended if len(new := self._unknown(chunk))]
        self._looks[host] = look._replace(ended=[])

    def step(
        self,
        clock: Clock,
        status: Mapping[str, Status],
        past: Sequence[Status],
        *,
        is_over: bool = False,
    ) -> None:
        """Carry out the observer's requests, and call it if it is due."""
        for action in () if is_over else self._observer.requests():
            self._do(action, clock)
        if not (is_over or self._observer.is_due()):
            return
        looks = list(self._looks.values())
        # Totals go with the first process.
        messages = Counter(looks[0].messages) + self._gone
        looks[0] = looks[0]._replace(ended=self._news, messages=messages)
        self._news = []
        real_s = clock.real_s()
        more = _figures([*status.values(), *past], len(past), clock)
        look = Look(clock.now(), max(0.0, real_s), 0, tuple(looks), is_over=is_over)
        self._observer.look(look._replace(more=more, done=self.done, undone=self._undone))

    def _unknown(self, chunk: JobResults) -> JobResults:
        """The rows of jobs that were not reported yet."""
        keys = list(zip(chunk.vo.tolist(), chunk.number.tolist(), strict=True))
        rows = np.array([key not in self._known for key in keys], np.bool_)
        self._known.update(keys)
        return chunk.take(np.flatnonzero(rows))

    def _do(self, action: Action, clock: Clock) -> None:
        """Carry out a request, unless it would have no effect."""
        why = why_idle(self.done, action)
        if action.what == KILL and not self._kill(action.entity):
            why = f"the actor of {action.entity} was not killed: it is being restarted"
        if why:
            self._undone = (*self._undone, why)
            return
        notice_s = 0.0 if action.what == KILL else NOTICE_SECONDS
        real_s = max(0.0, clock.real_s() + notice_s)
        new = Intervention(len(self.done) + 1, clock.at(real_s), real_s, action)
        self.done = (*self.done, new)
        clock.pauses = pauses(self.done)


def _figures(status: Iterable[Status], restarts: int, clock: Clock) -> dict[str, float]:
    """Metrics of actors and of the lateness of messages and timers, for the page."""
    nodes: set[str] = set()
    late = {"messages": Lateness(), "timers": Lateness()}
    for one in status:
        nodes.add(one.node)
        late["messages"].merge(one.messages)
        late["timers"].merge(one.timers)
    figures: dict[str, float] = {"Ray nodes": len(nodes), "actors restarted": restarts}
    for what, of in late.items():
        report = of.report(clock.speedup)
        for name in ("p50", "p99"):
            figures[f"{what} late, {name} (ms)"] = MILLISECONDS * report[f"{name}_s"]
    return figures
