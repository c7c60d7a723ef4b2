"""What happened to one job, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from grid.model.event import Event
from grid.model.job import JobKey
from grid.model.time import SECOND_US, Time
from grid.results.history.waiting import listed


@dataclass(frozen=True, slots=True)
class Line:
    """One step of a job's story: when, the event that it is, and a sentence."""

    time_us: Time
    event: Event
    text: str


def job_story(key: JobKey, events: Iterable[Event]) -> list[Line]:
    """The steps of that job, in the order of `events`; empty where none is about it.

    What only follows from the step before is left out.
    """
    steps = (
        Line(event.time_us, event, _STEPS[event.event](event))
        for event in events_of(key, events)
        if event.event in _STEPS
    )
    # A Grid Dispatcher and the cluster hear the same, one after the other.
    return [next(same) for _, same in groupby(steps, lambda line: line.text)]


def events_of(key: JobKey, events: Iterable[Event]) -> Iterator[Event]:
    """The events about the job, calls for bids on its behalf included."""
    calls: set[str] = set()
    for event in events:
        if (event.vo, event.job) == key:
            if event.call is not None:
                calls.add(event.call)
            yield event
        elif event.job is None and event.call in calls:
            yield event


def whereabouts(key: JobKey, events: Iterable[Event], time_us: Time) -> str:
    """What the job does or waits for at that moment, in words; empty before it is submitted."""
    where = ""
    lines: list[str] = []
    for event in events_of(key, events):
        if event.time_us > time_us:
            break
        if event.event not in _PLACES:
            continue
        where = _PLACES[event.event](event)
        lines = [*lines, event.to_vo or ""] if _queues(event) else []
        if lines:
            wanted = _cpus(event.processors or 1)
            where = (
                f"It stands in line in {listed(lines)}; the first that has {wanted} free runs it."
            )
    return where


def _queues(event: Event) -> bool:
    """Whether a VO is asked to have the job stand in line there, and not for a bid only."""
    return event.event == "ask" and event.waits is True


def _ask(event: Event) -> str:
    if _queues(event):
        return f"{_vo(event)} has it stand in line in {event.to_vo}."
    return f"{_vo(event)} calls {event.to_vo} for a bid."


def _vo(event: Event) -> str:
    """The VO of who handled or decided."""
    return event.entity.partition("/")[0]


def _peer(event: Event) -> str:
    return (event.peer or "").partition("/")[0]


def _cpus(count: float) -> str:
    return f"{count:g} CPU" if count == 1 else f"{count:g} CPUs"


def _belief(event: Event) -> str:
    """What was believed of the resource, and how old that was."""
    if event.free_cpus is None:
        return ", of which it knew nothing"
    free = event.free_cpus
    promised = f"{_cpus(-free)} more promised, or waited for in line, than it has"
    found = f"{_cpus(free)} free" if free >= 0 else promised
    if not event.age_us:
        return f", which has {found}"
    return f", believed to have {found} (as of {event.age_us / SECOND_US:.6g} s ago)"


def _counted(event: Event) -> str:
    free = event.free_cpus or 0.0
    return f"{_cpus(free)} free" if free >= 0 else f"{_cpus(-free)} more promised than it has"


def _resource(event: Event) -> str:
    return "" if event.resource is None else f"resource {event.resource}"


def _forward(event: Event) -> str:
    belief = _belief(event) if event.free_cpus is not None else ""
    return f"{_vo(event)} forwards it to {_resource(event)} of {event.to_vo}{belief}."


def _choose(event: Event) -> str:
    queue = ", to wait in its queue" if event.waits else ""
    return f"{_vo(event)} chooses its own {_resource(event)}{_belief(event)}{queue}."


def _give_up(event: Event) -> str:
    return f"{_vo(event)} finds no place for it: {event.state}.{_most_free(event)}"


def _most_free(event: Event) -> str:
    """What was believed free where most is, when a job was given up."""
    if event.free_cpus is None:
        return ""
    if event.free_cpus <= 0:
        return " It believed no CPU free anywhere."
    if event.free_cpus < (event.processors or 1):
        return f" It believed {_cpus(event.free_cpus)} free at most."
    return f" It believed {_cpus(event.free_cpus)} free where it does not fit or may not go."


def _wanted(event: Event) -> str:
    memory = f" and {event.ram_mb:g} MB of memory" if event.ram_mb else ""
    return f"{_cpus(event.processors or 1)}{memory}"


def _submit(event: Event) -> str:
    wanted = _wanted(event)
    estimate = "" if event.estimate_us is None else f" for {event.estimate_us / SECOND_US:.6g} s"
    # Not "submitted": a VO that was down hears of it later, and others after a message's latency.
    return f"It comes to {_vo(event)} from its user: it asks for {wanted}{estimate}."


def _held_back(event: Event) -> str:
    """Those of the priority that goes first may come later, and go first all the same."""
    return f"It waits at the Resource Manager of {_vo(event)} until CPUs are left over for it"


def _place(event: Event) -> str:
    name = event.cluster or event.entity.rpartition("/")[2]
    machine = "" if event.machine is None else f", machine {event.machine}"
    return f"cluster {name} of {_vo(event)}{machine}"


def _end(event: Event) -> str:
    """How often it was stopped is all that is known of what lies between its start and its end."""
    counts = (
        (event.preemptions, "was stopped"),
        (event.restarts, "began again from nothing"),
    )
    told = [f"{what} {_times(count)}" for count, what in counts if count]
    return f"It ends: {event.state}." + (f" On the way it {listed(told)}." if told else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


_STEPS: dict[str, Callable[[Event], str]] = {
    "submit": _submit,
    "submit_job": _submit,
    "ask": _ask,
    "bid": lambda e: f"{_vo(e)} hears from {_peer(e)}: {e.state}.",
    "choose": _choose,
    "forward": _forward,
    "forward_job": lambda e: f"It comes to {_vo(e)}, its hop number {e.hops}.",
    "admit": lambda e: f"{_vo(e)} assigns it {_resource(e)}, with {_counted(e)} after that.",
    "hold_back": lambda e: f"{_held_back(e)}.",
    "refuse": lambda e: f"{_vo(e)} refuses it: {_resource(e)} has {_counted(e)}.",
    "not_admit": lambda e: f"{_vo(e)} does not admit it.",
    "send_back": lambda e: f"{_vo(e)} sends it back to {_peer(e)}.",
    "return_job": lambda e: f"It is back in {_vo(e)}.",
    "in_line": lambda e: "It waits in line." if e.waits else "It leaves the line.",
    "withdrawn": lambda e: f"{_vo(e)} wants it back from its line: {e.state}.",
    "give_up": _give_up,
    "run_job": lambda e: f"It comes to {_place(e)}.",
    "move_gang": lambda e: f"It moves to {_place(e)}.",
    "start": lambda e: f"It starts in {_place(e)}.",
    "end": _end,
    "job_done": lambda e: f"{_vo(e)} hears how it ended in {_peer(e)}: {e.state}.",
}

_PLACES: dict[str, Callable[[Event], str]] = {
    "submit": lambda e: f"It waits in the queue of {_place(e)}.",
    "submit_job": lambda e: f"{_vo(e)} asks what resources there are.",
    "ask": lambda e: f"{_vo(e)} waits for bids.",
    "choose": lambda e: f"It is handed to the resource manager of {_vo(e)}.",
    "forward": lambda e: f"It is on its way from {_vo(e)} to {e.to_vo}.",
    "forward_job": lambda e: f"{_vo(e)} sees whether the resource is still free.",
    "admit": lambda e: f"It is assigned in {_vo(e)}, and not yet in its cluster.",
    "hold_back": lambda e: f"{_held_back(e)}.",
    "refuse": lambda e: f"{_vo(e)} looks for another resource.",
    "send_back": lambda e: f"It is on its way back to {_peer(e)}.",
    "return_job": lambda e: f"{_vo(e)} looks for another resource.",
    "give_up": lambda e: f"It has ended: {e.state}.",
    "run_job": lambda e: f"It waits in the queue of {_place(e)}.",
    "move_gang": lambda e: f"It waits in the queue of {_place(e)}.",
    "start": lambda e: f"It runs in {_place(e)}.",
    "end": lambda e: f"It has ended: {e.state}.",
}
