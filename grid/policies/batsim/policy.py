"""The local policy `batsim`: an external scheduler receives events and decides.

The policy is pure: it makes messages as data and reads answers; the runtime passes the connection
that transfers them to `connect`.

Protocol: https://batsim.readthedocs.io/en/latest/protocol.html, version 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from grid.model.arrays import Floats
from grid.model.errors import InvalidPlugin, PluginFailed
from grid.model.time import NEVER, SECOND_US, Time, to_seconds
from grid.policies.batsim.messages import (
    CALL,
    EXECUTE,
    REJECT,
    Decision,
    job_of,
    jobs_of,
    mask_of,
    microseconds,
    read_answer,
    text_of,
)
from grid.policies.interface import ClusterView, MachineColumns, Plan

Message = dict[str, Any]
Converse = Callable[[Message], Any]
"""Carries a message to the scheduler and brings back its answer. Raises PluginFailed."""

WORKLOAD = "grid"
CLOCK_US = SECOND_US
"""The scheduler's clock at the beginning of virtual time. SIMULATION_BEGINS is one second earlier,
since some schedulers treat a time of 0 as none."""
_ENDPOINT = re.compile(r"tcp://[^\s/*]+:\d{1,5}|ipc://\S.*")
MOST_IDLE_CALLS, MOST_ROUNDS = 100_000, 1000
"""How often a scheduler may ask to be called and do nothing, and be asked at one instant."""


class Scheduler(NamedTuple):
    """How to reach a scheduler: by the command that starts it, or at the endpoint where it is."""

    command: str
    endpoint: str
    patience_s: float


class _Known(NamedTuple):
    """A job that was sent to the scheduler."""

    slot: int
    name: str
    processors: int


class Batsim:
    """Decisions of a scheduler that speaks Batsim's protocol, version 4.

    The resources of the protocol are the CPUs of the pool. Amounts of others are in the field
    `resources` of a job and of the configuration: starting a job that lacks them is an error. Once
    an instant the scheduler receives all events of it: ends first, then arrivals, then the calls
    that it requested. Decisions with a later time than the message take effect then; until then the
    scheduler is busy, and receives later events when it is ready.
    """

    ignores = (
        "several machines",
        "machine outages",
        "reservations",
        "licenses",
        "one job per machine",
        "preemption costs",
        "processor placement",
        "switching machines off",
        "overrunning jobs",
        "predicted estimates",
        "cancellations",
    )

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._converse: Converse | None = None
        self._place = ""
        self._has_begun = False
        self._busy = 0
        """Bit mask of the resources that hold jobs."""
        self._held: dict[str, int] = {}
        self._waiting: dict[str, _Known] = {}
        self._running: dict[str, _Known] = {}
        self._names: dict[int, str] = {}
        """By slot, of the jobs that are in the cluster."""
        self._events: list[Message] = []
        self._decisions: list[Decision] = []
        self._calls: list[Time] = []
        self._ready_us: Time = -CLOCK_US
        self._idle_calls = 0

    def connect(self, converse: Converse, place: str = "") -> None:
        """Set the connection that transfers messages; `place` names the cluster in errors."""
        self._converse = converse
        self._place = place

    def plan(self, view: ClusterView, now: Time) -> Plan:
        plan = Plan()
        try:
            if not self._has_begun:
                self._has_begun = True
                self._event(-CLOCK_US, "SIMULATION_BEGINS", _beginning(view.machines))
                self._carry_on(view, -CLOCK_US, plan)
            while not self._here() and (before := self._next_us()) < now:
                self._carry_on(view, before, plan)
            self._notice(view, now)
            self._carry_on(view, now, plan)
        except ValueError as error:
            raise PluginFailed(f"{self._shown} {error}") from None
        # Calls wait while there are no jobs, or a run would never end.
        wanted = self._here() or self._events or self._decisions
        plan.wake_us = self._next_us() if wanted else NEVER
        return plan

    def _here(self) -> bool:
        """Whether there are jobs in the cluster."""
        return bool(self._waiting or self._running)

    def _next_us(self) -> Time:
        """When to act even if no event occurs."""
        next_us = self._decisions[0].time_us if self._decisions else NEVER
        if self._events:
            return min(next_us, self._ready_us)
        if self._calls:
            return min(next_us, max(self._ready_us, self._calls[0]))
        return next_us

    @property
    def _shown(self) -> str:
        place = f"cluster {self._place}: " if self._place else ""
        return f"{place}the scheduler {(self.scheduler.command or self.scheduler.endpoint)!r}"

    # What happened

    def _notice(self, view: ClusterView, now: Time) -> None:
        """Record the completions and arrivals of this instant."""
        jobs = view.jobs
        for slot in view.ended.tolist():
            name = self._names.pop(slot)
            if name not in self._running:
                continue  # The scheduler has killed it.
            timed_out = now >= int(jobs.expected_end_us[slot])
            state = "COMPLETED_WALLTIME_REACHED" if timed_out else "COMPLETED_SUCCESSFULLY"
            self._ended(name, now, state)
        for slot in view.arrived.tolist():
            known = _Known(slot, f"{WORKLOAD}!{int(jobs.serial[slot])}", int(jobs.processors[slot]))
            self._names[slot] = known.name
            self._waiting[known.name] = known
            mips = float(view.machines.mips[0])
            limit_us = round(int(jobs.estimate_us[slot]) * float(jobs.reference_mips[slot]) / mips)
            held = _amounts(view.machines, jobs.resources[:, slot])
            job = _job(known, max(1, limit_us), int(jobs.submit_us[slot]), held)
            self._event(now, "JOB_SUBMITTED", job)

    def _ended(self, name: str, now: Time, state: str) -> None:
        alloc = text_of(self._release(name))
        code = 0 if state == "COMPLETED_SUCCESSFULLY" else 1
        data = {"job_id": name, "job_state": state, "return_code": code, "alloc": alloc}
        self._event(now, "JOB_COMPLETED", data)

    def _release(self, name: str) -> int:
        """The job runs no more; returns the resources that it held."""
        held = self._held.pop(name)
        del self._running[name]
        self._busy &= ~held
        return held

    def _event(self, now: Time, kind: str, data: Message) -> None:
        self._events.append({"timestamp": _clock_s(now), "type": kind, "data": data})

    # What is decided

    def _carry_on(self, view: ClusterView, now: Time, plan: Plan) -> None:
        """Carry out due decisions, and send events whenever the scheduler is ready."""
        for _ in range(MOST_ROUNDS):
            while self._decisions and self._decisions[0].time_us <= now:
                self._carry_out(self._decisions.pop(0), view, now, plan)
            if self._ready_us > now:
                return
            self._call(now)
            if not self._events:
                return
            self._ask(now)
        raise ValueError(f"keeps making decisions for the same instant, {to_seconds(now):g} s")

    def _call(self, now: Time) -> None:
        """Note the calls that are due."""
        while self._calls and self._calls[0] <= now:
            heappop(self._calls)
            self._event(now, "REQUESTED_CALL", {})

    def _ask(self, now: Time) -> None:
        """Send the events to the scheduler, and keep its decisions."""
        if self._converse is None:
            raise ValueError("is not connected: this run cannot start schedulers")
        events, self._events = self._events, []
        message = {"now": _clock_s(now), "events": events}
        answer = read_answer(self._converse(message), now + CLOCK_US)
        self._ready_us = answer.ready_us - CLOCK_US
        self._decisions = [one._replace(time_us=one.time_us - CLOCK_US) for one in answer.decisions]
        called = all(event["type"] == "REQUESTED_CALL" for event in events)
        stuck = called and self._waiting and not self._running
        acts = any(decision.kind in (EXECUTE, REJECT) for decision in answer.decisions)
        self._idle_calls = self._idle_calls + 1 if stuck and not acts else 0
        if self._idle_calls >= MOST_IDLE_CALLS:
            jobs = f"{len(self._waiting)} waiting jobs, although no job is running"
            calls = f"{MOST_IDLE_CALLS:,} calls in a row"
            raise ValueError(f"requests {calls}, but starts none of {jobs}")

    def _carry_out(self, decision: Decision, view: ClusterView, now: Time, plan: Plan) -> None:
        match decision.kind:
            case "EXECUTE_JOB":
                self._execute(decision, view, plan)
            case "REJECT_JOB":
                known = self._take_waiting(job_of(decision.data), "rejects")
                plan.reject.append(known.slot)
                del self._names[known.slot]
            case "KILL_JOB":
                self._kill(jobs_of(decision.data), view, now, plan)
            case "CALL_ME_LATER":
                at = microseconds(decision.data.get("timestamp"), f"{CALL} for") - CLOCK_US
                if at <= now:
                    raise ValueError(
                        f"requests a call at {to_seconds(at):g} s, which is in the past"
                    )
                heappush(self._calls, at)

    def _execute(self, decision: Decision, view: ClusterView, plan: Plan) -> None:
        known = self._take_waiting(job_of(decision.data), "starts")
        resources = decision.data.get("alloc")
        if not isinstance(resources, str):
            raise ValueError(f"starts job {known.name} on {resources!r}, expected text")
        try:
            held = mask_of(resources, _resources(view))
        except ValueError as error:
            raise ValueError(f"starts job {known.name} on {error}") from None
        if held & self._busy:
            taken = text_of(held & self._busy)
            raise ValueError(f"starts job {known.name} on resources {taken}, which are busy")
        if held.bit_count() != known.processors:
            found = f"{held.bit_count()} resources, expected {known.processors}"
            raise ValueError(f"starts job {known.name} on {found}")
        self._busy |= held
        self._held[known.name] = held
        self._running[known.name] = known
        plan.start.append((known.slot, 0))

    def _kill(self, names: list[str], view: ClusterView, now: Time, plan: Plan) -> None:
        """End those that still run, and report that at once."""
        progress = {}
        for name in names:
            if name in self._waiting:
                raise ValueError(f"kills job {name}, which is waiting")
            known = self._running.get(name)
            if known is None:
                continue  # It has ended.
            if (known.slot, 0) in plan.start:
                raise ValueError(f"kills job {name} at the instant at which it starts it")
            plan.kill.append(known.slot)
            start_us = int(view.jobs.start_us[known.slot])
            whole_us = max(1, int(view.jobs.expected_end_us[known.slot]) - start_us)
            progress[name] = {"profile": name, "progress": (now - start_us) / whole_us}
            self._release(name)
        self._event(now, "JOB_KILLED", {"job_ids": names, "job_progress": progress})

    def _take_waiting(self, name: str, what: str) -> _Known:
        known = self._waiting.pop(name, None)
        if known is None:
            why = "which runs" if name in self._running else "which is not waiting here"
            raise ValueError(f"{what} job {name[:40]}, {why}")
        return known


def _clock_s(now: Time) -> float:
    """A time on the scheduler's clock."""
    return (now + CLOCK_US) / SECOND_US


def _resources(view: ClusterView) -> int:
    return int(view.machines.cpus.sum())


def _amounts(machines: MachineColumns, of: Floats) -> Message:
    """Amounts above zero of resources besides CPUs, by name; of a job, or in the configuration."""
    named = zip(machines.resource_names, of.tolist(), strict=True)
    held = {name: amount for name, amount in named if 0 < amount < inf}
    return {"resources": held} if held else {}


def _job(known: _Known, limit_us: Time, submit_us: Time, held: Message) -> Message:
    """A job as sent to the scheduler: its profile is a delay as long as the estimate."""
    limit_s = limit_us / SECOND_US
    job = {
        "id": known.name,
        "profile": known.name,
        "res": known.processors,
        "subtime": _clock_s(submit_us),
        "walltime": limit_s,
        **held,
    }
    return {"job_id": known.name, "job": job, "profile": {"type": "delay", "delay": limit_s}}


def _beginning(machines: MachineColumns) -> Message:
    """The data of SIMULATION_BEGINS."""
    resources = int(machines.cpus.sum())
    return {
        "nb_resources": resources,
        "nb_compute_resources": resources,
        "nb_storage_resources": 0,
        "allow_compute_sharing": False,
        "allow_storage_sharing": False,
        "allow_time_sharing_on_compute": False,
        "allow_time_sharing_on_storage": False,
        "config": {
            "redis-enabled": False,
            "profiles-forwarded-on-submission": True,
            "dynamic-jobs-enabled": False,
            "dynamic-jobs-acknowledged": False,
            "profile-reuse-enabled": False,
            "forward-unknown-events": False,
            "sched-config": "",
            **_amounts(machines, machines.resources[:, 0]),
        },
        "compute_resources": [
            {"id": number, "name": f"cpu{number}", "state": "idle", "properties": {}}
            for number in range(resources)
        ],
        "storage_resources": [],
        "workloads": {WORKLOAD: WORKLOAD},
        "profiles": {WORKLOAD: {}},
    }


def batsim(
    *,
    command: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1000,
            description="command that starts the scheduler; {endpoint} is replaced by its endpoint",
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        Field(
            max_length=200,
            description="endpoint on which the scheduler listens, such as tcp://localhost:28000",
        ),
    ] = None,
    patience_s: Annotated[
        float, Field(gt=0, le=86400, description="timeout for a reply, in real time")
    ] = 60.0,
) -> Batsim:
    """An external scheduler that speaks Batsim's protocol, version 4."""
    if (command is None) == (endpoint is None):
        given = "both a command and an endpoint" if command is not None else "neither"
        raise InvalidPlugin(given, "a command or an endpoint", ("command",))
    if command is not None and "{endpoint}" not in command:
        expected = "a command with {endpoint}, on which the scheduler listens"
        raise InvalidPlugin(repr(command[:60]), expected, ("command",))
    if endpoint is not None and not _ENDPOINT.fullmatch(endpoint):
        raise InvalidPlugin(repr(endpoint[:60]), "tcp://HOST:PORT or ipc://FILE", ("endpoint",))
    return Batsim(Scheduler(command or "", endpoint or "", patience_s))
