"""A policy of this emulator as a scheduler for Batsim, protocol version 4.

The cluster engine simulates the cluster as in any run, but jobs end when Batsim reports it. After
each message the policy makes one plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grid.cluster.engine import Engine
from grid.model.errors import PluginFailed, RunFailed, input_error, shorten
from grid.model.fields import PluginRef
from grid.model.job import Job
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER, SECOND_US, Time
from grid.policies.batsim.messages import lowest, text_of
from grid.policies.batsim.policy import Batsim
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import ClusterView, Plan, Policy

Message = dict[str, Any]
NO_LIMIT_US = 365 * 24 * 3600 * SECOND_US
"""The estimate of a job without a wall time."""
UNKNOWN_US = NEVER // 4
"""The run time of all jobs, which is known only to Batsim."""


class ProtocolError(RunFailed):
    """A message that the protocol does not have, or that is inconsistent."""


class Server:
    """Answers the messages of one simulation, with decisions of `policy`, which is called `name`.

    Raises ProtocolError for what cannot be answered, InputError for a policy that cannot serve.
    """

    def __init__(self, policy: Policy | GangPolicy, name: str) -> None:
        if isinstance(policy, GangPolicy | Batsim):
            expected = "a policy that schedules the queue of one pool without preemption"
            raise input_error("policy", name, expected)
        self._policy = policy
        self.ignores = tuple(getattr(policy, "ignores", ()))
        self._name = name
        self._engine: _ExternalEngine | None = None
        self._called_us: Time = NEVER
        self._now: Time = 0
        self.is_over = False
        self._planned: tuple[ClusterView, Plan] | None = None
        self._resources = self._free = 0
        self._number = 0
        self._arriving: list[str] = []
        """Names of jobs that the policy has not seen."""
        self._names: dict[int, str] = {}
        """By slot, of the jobs that wait or run."""
        self._slots: dict[str, int] = {}
        self._held: dict[str, int] = {}
        """The resources of running jobs, as bit masks."""

    def answer(self, message: Any) -> Message:
        """The decisions that answer a message."""
        now, events = _read(message)
        if now < self._now:
            raise ProtocolError(f"found now {message['now']}, expected {self._now / SECOND_US} on")
        self._now = now
        answers: list[Message] = []
        for event in events:
            self._receive(event.get("type"), event.get("data") or {}, now, answers)
        if self._engine is not None and not self.is_over:
            self._planned = None
            called = any(event.get("type") == "REQUESTED_CALL" for event in events)
            self._engine.simulate_at(now, called=called)
            if self._planned is not None:
                answers += self._decisions(*self._planned)
        now_s = now / SECOND_US
        return {"now": now_s, "events": [{"timestamp": now_s, **answer} for answer in answers]}

    def _receive(
        self, kind: Any, data: Mapping[str, Any], now: Time, answers: list[Message]
    ) -> None:
        if kind == "SIMULATION_BEGINS":
            self._begin(_integer(data, "nb_compute_resources"))
            return
        if self._engine is None:
            raise ProtocolError(f"found {shorten(kind)}, expected SIMULATION_BEGINS first")
        match kind:
            case "SIMULATION_ENDS":
                self.is_over = True
            case "JOB_SUBMITTED":
                name = _text(data, "job_id")
                if not self._submit(self._engine, name, data.get("job"), now):
                    answers.append({"type": "REJECT_JOB", "data": {"job_id": name}})
            case "JOB_COMPLETED":
                self._end(self._engine, _text(data, "job_id"), now)
            case "JOB_KILLED":
                for name in data.get("job_progress") or {}:
                    self._end(self._engine, name, now)
            case "REQUESTED_CALL" | "NOTIFY":
                pass
            case _:
                raise ProtocolError(f"found {shorten(kind)}, expected an event of protocol 4")

    def _begin(self, resources: int) -> None:
        if self._engine is not None:
            raise ProtocolError("found a second SIMULATION_BEGINS, expected a single simulation")
        if resources < 1:
            raise ProtocolError(f"found {resources} resources, expected at least one")
        machines = (Machine("pool", resources),)
        pool = Cluster("batsim", machines, PluginRef("batsim"), overrun="extend")
        self._resources, self._free = resources, (1 << resources) - 1
        self._engine = _ExternalEngine(pool, self)

    def _submit(self, engine: _ExternalEngine, name: str, job: Any, now: Time) -> bool:
        """Submit a job; whether it could ever run here."""
        if not isinstance(job, Mapping):
            raise ProtocolError(f"found job {shorten(job)} in JOB_SUBMITTED, expected an object")
        if name in self._slots or name in self._arriving:
            raise ProtocolError(f"found the job {shorten(name)} again, expected a new job_id")
        processors = _integer(job, "res")
        if not 1 <= processors <= self._resources:
            return False
        limit_s = job.get("walltime")
        if limit_s is None:
            limit_s = -1
        if isinstance(limit_s, bool) or not isinstance(limit_s, int | float):
            raise ProtocolError(f"found walltime {shorten(limit_s)}, expected seconds")
        limited = 0 < limit_s * SECOND_US < NO_LIMIT_US
        estimate_us = max(1, round(limit_s * SECOND_US)) if limited else NO_LIMIT_US
        self._number += 1
        self._arriving.append(name)
        submitted = Job(
            number=self._number,
            vo="batsim",
            submit_us=now,
            processors=processors,
            estimate_us=estimate_us,
            run_us=UNKNOWN_US,
        )
        engine.submit(submitted, -1, now)
        return True

    def _end(self, engine: _ExternalEngine, name: str, now: Time) -> None:
        """A job that ran has ended."""
        slot = self._slots.get(name)
        if slot is None or name not in self._held:
            raise ProtocolError(f"found the end of {shorten(name)}, expected that of a running job")
        engine.end(slot, now)
        self._release(slot)

    def _release(self, slot: int) -> None:
        name = self._names.pop(slot)
        del self._slots[name]
        self._free |= self._held.pop(name)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan of the policy, which the engine carries out."""
        for slot in view.arrived.tolist():
            name = self._arriving.pop(0)
            self._names[slot], self._slots[name] = name, slot
        plan = self._policy.plan(view, now)
        self._planned = view, plan
        return plan

    def _decisions(self, view: ClusterView, plan: Plan) -> list[Message]:
        """The messages of a plan."""
        if plan.preempt:
            raise PluginFailed(
                f"policy {self._name} preempts jobs, which the protocol does not support"
            )
        names = self._names
        answers = [{"type": "REJECT_JOB", "data": {"job_id": names[slot]}} for slot in plan.reject]
        if plan.kill:
            killed = [names[slot] for slot in plan.kill]
            answers.append({"type": "KILL_JOB", "data": {"job_ids": killed}})
            # Batsim confirms that they have ended later.
            for slot in plan.kill:
                self._release(slot)
        for slot, _ in plan.start:
            held = lowest(self._free, int(view.jobs.processors[slot]))
            self._free &= ~held
            self._held[names[slot]] = held
            data = {"job_id": names[slot], "alloc": text_of(held)}
            answers.append({"type": "EXECUTE_JOB", "data": data})
        if plan.wake_us not in (NEVER, self._called_us):
            self._called_us = plan.wake_us
            later = {"timestamp": plan.wake_us / SECOND_US}
            answers.append({"type": "CALL_ME_LATER", "data": later})
        return answers


class _ExternalEngine(Engine):
    """An engine whose jobs end, and whose policy plans, when a message arrives."""

    _due_us: Time = NEVER

    def end(self, slot: int, now: Time) -> None:
        """The job of `slot` has ended."""
        self.end_at(slot, now)
        self._due_us = now

    def simulate_at(self, now: Time, *, called: bool) -> None:
        """Simulate this instant if anything happened, or the policy asked to be `called`."""
        happened = now in (self._due_us, self._arrivals.next_us)
        if happened or (called and self.wake_us == now):
            self._due_us = now
            self._simulate(now + 1)

    def _ask(self, now: Time) -> Plan:
        self._due_us = NEVER
        return super()._ask(now)


def _read(message: Any) -> tuple[Time, list[Mapping[str, Any]]]:
    if not isinstance(message, Mapping) or not isinstance(message.get("events"), list):
        raise ProtocolError(f"found {shorten(message)}, expected an object with now and events")
    now = message.get("now")
    if isinstance(now, bool) or not isinstance(now, int | float) or not 0 <= now < NO_LIMIT_US:
        raise ProtocolError(f"found now {shorten(now)}, expected seconds")
    wrong = [event for event in message["events"] if not isinstance(event, Mapping)]
    if wrong:
        raise ProtocolError(f"found the event {shorten(wrong[0])}, expected an object")
    return round(now * SECOND_US), message["events"]


def _integer(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProtocolError(f"found {name} {shorten(value)}, expected an integer")
    return value


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise ProtocolError(f"found {name} {shorten(value)}, expected text")
    return value


def serve(server: Server, endpoint: str) -> None:
    """Answer at the endpoint until the simulation is over. Raises InputError for a wrong one."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.linger = 1000
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            found = f"{endpoint} ({error})"
            raise input_error("endpoint", found, "an endpoint to listen on") from None
        # ZeroMQ takes a port above 65535 modulo 65536.
        bound = socket.getsockopt_string(zmq.LAST_ENDPOINT)
        ports = [one.rpartition(":")[2] for one in (endpoint, bound)]
        if ports[0] not in ("0", "*", ports[1]):
            raise input_error("endpoint", endpoint, "an endpoint with a port from 1 to 65535")
        while not server.is_over:
            text = socket.recv()
            try:
                message = json.loads(text)
            except (ValueError, RecursionError):
                raise ProtocolError(f"found {shorten(text)}, expected JSON") from None
            socket.send(json.dumps(server.answer(message)).encode())
