"""History of one job, and why it waits: pure functions of the events of a run.

Events are `grid.model.records.Event`, in the order of the run; those about other jobs are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from grid.model.job import MEMORY, JobKey, rounded, unlisted
from grid.model.records import ClusterFacts, Event, resources_of
from grid.model.time import NEVER, SECOND_US, Time
from grid.results.definitions import EVENT_TEXTS

NOT_KEPT = (
    "This run was stopped before all jobs had ended. Its events do not show which jobs were still "
    "running, so the reasons for waits are unknown."
)
NAMED = 3
"""Jobs that are named; the others are counted."""

_ARRIVALS = ("submit", "run_job", "move_gang")
"""Events with which a job arrives at a cluster."""


class Line(NamedTuple):
    """One step in the history of a job: when, the event, and a sentence."""

    time_us: Time
    event: Event
    text: str


def job_history(key: JobKey, events: Iterable[Event]) -> list[Line]:
    """The steps of that job, in the order of `events`; empty if no event is about it."""
    lines = []
    for event in events_of(key, events):
        text = _texts(event)[0]
        if text:
            lines.append(Line(event.time_us, event, text.format_map(_fields(event))))
    # A Grid Dispatcher and the cluster receive the same, one after the other.
    return [next(same) for _, same in groupby(lines, lambda line: line.text)]


def events_of(key: JobKey, events: Iterable[Event]) -> Iterator[Event]:
    """The events about the job, including calls for bids on its behalf."""
    calls: set[str] = set()
    for event in events:
        if (event.vo, event.job) == key:
            if event.call is not None:
                calls.add(event.call)
            yield event
        elif event.job is None and event.call in calls:
            yield event


def whereabouts(key: JobKey, events: Iterable[Event], time_us: Time) -> str:
    """What the job does or waits for at that time; empty before it is submitted."""
    now = ""
    queues: list[str] = []
    for event in events_of(key, events):
        if event.time_us > time_us:
            break
        if event.event == "ask" and event.waits:
            queues.append(event.to_vo or "")
            first = f"the first with {_cpus(event.processors or 1)} free runs it"
            now = f"It has queued reservations in {_listed(queues)}; {first}."
        elif text := _texts(event)[1]:
            now, queues = text.format_map(_fields(event)), []
    return now


def _texts(event: Event) -> tuple[str, str]:
    waiting = EVENT_TEXTS.get(f"{event.event} and wait") if event.waits else None
    return waiting or EVENT_TEXTS.get(event.event, ("", ""))


def _fields(event: Event) -> dict[str, str]:
    vo = event.entity.partition("/")[0]
    wanted = _cpus(event.processors or 1)
    held = "".join(f" and {_amount(*one)}" for one in resources_of(event.resources).items())
    estimate = "" if event.estimate_us is None else f" for {event.estimate_us / SECOND_US:.6g} s"
    machine = "" if event.machine is None else f", machine {event.machine}"
    cluster = event.cluster or event.entity.rpartition("/")[2]
    stops = ((event.preemptions, "preempted"), (event.restarts, "restarted"))
    counted = [f"{what} {'once' if n == 1 else f'{n:,} times'}" for n, what in stops if n]
    view = most = ""
    if event.free_cpus is not None:
        view = f" with {_free(event.free_cpus)}"
        view += f", as of {event.age_us / SECOND_US:.6g} s ago" if event.age_us else ""
        most = f" According to the known state, {_cpus(event.free_cpus)} were free, but on "
        most += "resources that are unsuitable or barred for the job."
        if event.free_cpus <= 0:
            most = " According to the known state, no CPU was free."
        elif event.free_cpus < (event.processors or 1):
            most = f" According to the known state, at most {_cpus(event.free_cpus)} were free."
    elif event.event == "choose":
        view = ", whose state is unknown"
    return {
        "vo": vo,
        "peer": (event.peer or "").partition("/")[0],
        "to_vo": event.to_vo or "",
        "state": event.state or "",
        "hops": "1 hop" if event.hops == 1 else f"{event.hops} hops",
        "request": f"{wanted}{held}{estimate}",
        "resource": "" if event.resource is None else f"resource {event.resource}",
        "place": f"cluster {cluster} of {vo}{machine}",
        "queue": ", where it queues" if event.waits else "",
        "free": _free(event.free_cpus or 0.0),
        "view": view,
        "most_free": most,
        "stops": f" It was {_listed(counted)}." if counted else "",
    }


def _free(cpus: float) -> str:
    return f"{_cpus(cpus)} free" if cpus >= 0 else f"{_cpus(-cpus)} over-committed"


def _cpus(count: float) -> str:
    return f"{count:g} CPU" if count == 1 else f"{count:g} CPUs"


def _amount(name: str, amount: float) -> str:
    return f"{amount:g} MB of memory" if name == MEMORY else f"{amount:g} {name}"


def _listed(things: list[str]) -> str:
    *most, last = things
    return f"{', '.join(most)} and {last}" if most else last


# Clusters


@dataclass(slots=True)
class Stay:
    """A job in a cluster: arrived, started, and ended or moved to another cluster; NEVER: not yet.

    It may be bound to the machine `bound` (-1: any), and ran on `machine`.
    """

    key: JobKey
    came_us: Time
    processors: int
    resources: Mapping[str, float]
    licenses: int
    bound: int = -1
    machine: int = -1
    start_us: Time = NEVER
    end_us: Time = NEVER


class ClusterState(NamedTuple):
    """A cluster at one time: its running and its waiting jobs, in order of arrival.

    `down` are its machines that are down.
    """

    facts: ClusterFacts
    running: tuple[Stay, ...]
    waiting: tuple[Stay, ...]
    down: frozenset[int]


class ClusterLog:
    """The jobs of the cluster of these `facts`, from its `events` in the order of the run.

    Events do not show when a job was preempted: it counts as running from its first start to its
    end. A gang that moves to another cluster counts here until it arrives there. Machines that an
    intervention took down are among the outages of the log's own `facts`.
    """

    def __init__(self, facts: ClusterFacts, events: Iterable[Event]) -> None:
        self.stays: dict[JobKey, Stay] = {}
        """The last stay of each job."""
        self._earlier: list[Stay] = []
        down: list[tuple[int, Time, Time]] = []
        for event in events:
            key = (event.vo or "", event.job or 0)
            if event.entity != facts.entity:
                if event.event == "move_gang" and event.peer == facts.entity and key in self.stays:
                    self.stays[key].end_us = min(self.stays[key].end_us, event.time_us)
            elif event.vo is not None and event.job is not None:
                self._add(key, event)
            elif event.event == "take_down" and event.machine is not None:
                down.append((event.machine, event.time_us, NEVER))
            elif event.event == "repair":
                down = [(machine, start, min(end, event.time_us)) for machine, start, end in down]
        self.facts = replace(facts, outages=(*facts.outages, *down))

    def _add(self, key: JobKey, event: Event) -> None:
        stay = self.stays.get(key)
        machine = -1 if event.machine is None else event.machine
        if event.event in _ARRIVALS:
            if stay is not None:
                self._earlier.append(self.stays.pop(key))
            self.stays[key] = Stay(
                key,
                event.time_us,
                event.processors or 1,
                resources_of(event.resources),
                event.licenses or 0,
                machine,
            )
        elif stay is not None and event.event == "start":
            stay.start_us = event.time_us
            stay.machine = machine if machine >= 0 else stay.machine
        elif stay is not None and event.event == "end":
            stay.end_us = event.time_us

    def at(self, time_us: Time) -> ClusterState:
        stays = sorted((*self._earlier, *self.stays.values()), key=lambda one: one.came_us)
        here = [one for one in stays if one.came_us <= time_us < one.end_us]
        running = tuple(one for one in here if one.start_us <= time_us)
        waiting = tuple(one for one in here if one.start_us > time_us)
        outages = self.facts.outages
        down = frozenset(machine for machine, start, end in outages if start <= time_us < end)
        return ClusterState(self.facts, running, waiting, down)


# Why a job waits


class Lack(NamedTuple):
    """Something that the job needs and that is not free: `cpus`, a resource, `license NAME`,
    `machine` (down), or `cpus_up` (CPUs of a cluster for gangs that are up)."""

    what: str
    needed: float
    free: float


@dataclass(frozen=True, slots=True)
class WhyWaiting:
    """Why a job waits in the cluster of these `facts`.

    `machine` comes closest to what it needs; -1 if no machine of the cluster can ever run it. The
    machine `lacks` something, or nothing: then the policy's order or a reservation keeps the job
    waiting. `holders` run on that machine, by start; none while it is down. `ahead` arrived before
    the job and wait, too: many policies do not start jobs in that order. A cluster for gangs counts
    as one machine.
    """

    job: Stay
    facts: ClusterFacts
    machine: int
    lacks: tuple[Lack, ...]
    holders: tuple[JobKey, ...]
    ahead: tuple[JobKey, ...]

    def sentences(self) -> list[str]:
        job, facts = self.job, self.facts
        place = "The cluster" if facts.gangs else f"Machine {self.machine}"
        needs = [_cpus(job.processors), *(_amount(*one) for one in job.resources.items())]
        names = (name for bit, (name, _) in enumerate(facts.licenses) if job.licenses >> bit & 1)
        needs += [f"license {name}" for name in names]
        where = "in the cluster" if facts.gangs else "on one machine"
        lines = [f"It needs {_listed(needs)} {where}."]
        if self.machine < 0:
            lines.append("No machine of the cluster can ever run it.")
        elif self.lacks:
            closest = place if facts.gangs else f"{place}, the closest match,"
            lines += [_sentence(one, self.machine, closest) for one in self.lacks]
            if self.holders:
                runs = "runs" if len(self.holders) == 1 else "run"
                lines.append(f"There {runs} {_named(self.holders)}.")
        else:
            other = "has not considered this job yet" if self.ahead else "plans at another time"
            first = "" if self.ahead else ", and no waiting job arrived before it"
            lines.append(
                f"{place} has enough free{first}: the {facts.policy} policy reserves it for "
                f"other jobs, or {other}."
            )
        if self.ahead:
            wait = "waits" if len(self.ahead) == 1 else "wait"
            named = _named(self.ahead)
            lines.append(
                f"{named[:1].upper()}{named[1:]} arrived before it and also {wait}; the "
                f"{facts.policy} policy decides the order."
            )
        return lines


def why_waiting(key: JobKey, state: ClusterState) -> WhyWaiting | None:
    """Why the job waits in that cluster; None if it does not.

    Of several machines that can run it: the one that lacks the fewest things besides CPUs and
    resources, then the fewest CPUs, then the least of resources, then the first.
    """
    place = next((at for at, one in enumerate(state.waiting) if one.key == key), None)
    if place is None:
        return None
    job, facts = state.waiting[place], state.facts
    bound = range(len(facts.cpus)) if job.bound < 0 else (job.bound,)

    def fits(machine: int) -> bool:
        """Whether the machine can run the job when nothing else runs."""
        if job.processors > facts.cpus[machine]:
            return False
        enough = all(held <= _most(facts, name, machine) for name, held in job.resources.items())
        return enough and (facts.gangs or job.licenses & ~facts.machine_licenses[machine] == 0)

    def distance(machine: int) -> tuple[float, ...]:
        amounts = {one.what: one.needed - one.free for one in lacks[machine]}
        others = len(amounts.keys() - {"cpus", *job.resources})
        lacking = sum(amounts.get(name, 0.0) for name in job.resources)
        return others, amounts.get("cpus", 0.0), lacking

    lacks = {machine: _lacks(job, state, machine) for machine in bound if fits(machine)}
    closest = min(lacks, key=distance, default=-1)
    # Events do not show which gangs ran on the CPUs that are down.
    is_down = bool(state.down) if facts.gangs else closest in state.down
    holders = [one for one in state.running if facts.gangs or one.machine == closest]
    return WhyWaiting(
        job,
        facts,
        closest,
        lacks.get(closest, ()),
        tuple(one.key for one in sorted(holders, key=lambda one: one.start_us) if not is_down),
        tuple(one.key for one in state.waiting[:place]),
    )


def _lacks(job: Stay, state: ClusterState, machine: int) -> tuple[Lack, ...]:
    facts, cpus = state.facts, state.facts.cpus[machine]
    if facts.gangs and state.down:
        up = cpus - sum(facts.cpus_of[one] for one in state.down)
        return (Lack("cpus_up", cpus, up),)
    if machine in state.down and not facts.gangs:
        return (Lack("machine", 1, 0), *_missing_licenses(job, state, machine))
    here = [one for one in state.running if facts.gangs or one.machine == machine]
    found = []
    busy = sum(one.processors for one in here)
    free = 0 if facts.one_job_per_machine and here else max(0, cpus - busy)
    if free < job.processors:
        found.append(Lack("cpus", job.processors, free))
    for name, needed in job.resources.items():
        holders = state.running if name in facts.shared else here
        left = rounded(_most(facts, name, machine))
        left -= sum(rounded(one.resources.get(name, 0.0)) for one in holders)
        if left < rounded(needed):
            found.append(Lack(name, needed, max(0.0, float(left))))
    return (*found, *_missing_licenses(job, state, machine))


def _missing_licenses(job: Stay, state: ClusterState, machine: int) -> Iterator[Lack]:
    """Licenses without a free copy; jobs on one machine share its copy."""
    for number, (name, copies) in enumerate(state.facts.licenses):
        if job.licenses >> number & 1:
            users = {one.machine for one in state.running if one.licenses >> number & 1}
            if machine not in users and len(users) >= copies:
                yield Lack(f"license {name}", 1, 0)


def _most(facts: ClusterFacts, name: str, machine: int) -> float:
    """The most of a resource that a job may hold there."""
    if name in facts.shared:
        return facts.shared[name]
    given = facts.resources[name][machine] if name in facts.resources else -1.0
    return unlisted(name) if given < 0 else given


def _named(jobs: tuple[JobKey, ...]) -> str:
    """The first of the jobs by name, and how many more there are."""
    named = ", ".join(f"job {number} of {vo}" for vo, number in jobs[:NAMED])
    return f"{named} and {len(jobs) - NAMED} more" if len(jobs) > NAMED else named


def _sentence(lack: Lack, machine: int, closest: str) -> str:
    if lack.what.startswith("license "):
        text = f"No copy of {lack.what} is free."
    else:
        needed, free = _amount(lack.what, lack.needed), _amount(lack.what, lack.free)
        text = f"It needs {needed}; machine {machine} has {free} free."
    return {
        "machine": f"{closest} is down.",
        "cpus_up": f"Of its {lack.needed:g} CPUs, {lack.free:g} are up.",
        "cpus": f"{closest} has {_cpus(lack.free)} free.",
    }.get(lack.what, text)
