"""A policy of this emulator as a scheduler for Batsim, protocol version 4.

The cluster engine simulates the cluster as in any run, but jobs end when Batsim reports it. After
each message the policy makes one plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
"""The run time of all jobs, which only Batsim knows."""


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
        self._policy = _Watched(policy)
        self._name = name
        self._cluster: _Cluster | None = None
        self._called_us: Time = NEVER
        self._now: Time = 0
        self.is_over = False

    def answer(self, message: Any) -> Message:
        """The decisions that answer a message."""
        now, events = _read(message)
        if now < self._now:
            raise ProtocolError(f"found now {message['now']}, expected {self._now / SECOND_US} on")
        self._now = now
        received = [(event.get("type"), event.get("data") or {}) for event in events]
        answers: list[Message] = []
        for kind, data in received:
            self._receive(kind, data, now, answers)
        if self._cluster is not None and not self.is_over:
            answers += self._plan(
                self._cluster, now, any(k == "REQUESTED_CALL" for k, _ in received)
            )
        now_s = now / SECOND_US
        return {"now": now_s, "events": [{"timestamp": now_s, **answer} for answer in answers]}

    def _receive(
        self, kind: Any, data: Mapping[str, Any], now: Time, answers: list[Message]
    ) -> None:
        if kind == "SIMULATION_BEGINS":
            if self._cluster is not None:
                raise ProtocolError(
                    "found a second SIMULATION_BEGINS, expected a single simulation"
                )
            self._cluster = _Cluster(_integer(data, "nb_compute_resources"), self._policy)
            return
        cluster = self._cluster
        if cluster is None:
            raise ProtocolError(f"found {shorten(kind)}, expected SIMULATION_BEGINS first")
        match kind:
            case "SIMULATION_ENDS":
                self.is_over = True
            case "JOB_SUBMITTED":
                name = _text(data, "job_id")
                if not cluster.submit(name, data.get("job"), now):
                    answers.append({"type": "REJECT_JOB", "data": {"job_id": name}})
            case "JOB_COMPLETED":
                cluster.end(_text(data, "job_id"), now)
            case "JOB_KILLED":
                for name in data.get("job_progress") or {}:
                    cluster.end(name, now)
            case "REQUESTED_CALL" | "NOTIFY":
                pass
            case _:
                raise ProtocolError(f"found {shorten(kind)}, expected an event of protocol 4")

    def _plan(self, cluster: _Cluster, now: Time, called: bool) -> list[Message]:
        plan, view = cluster.plan(now, called)
        if plan is None or view is None:
            return []
        if plan.preempt:
            raise PluginFailed(
                f"policy {self._name} preempts jobs, which the protocol does not support"
            )
        answers = [
            {"type": "REJECT_JOB", "data": {"job_id": cluster.names[slot]}} for slot in plan.reject
        ]
        if plan.kill:
            killed = [cluster.names[slot] for slot in plan.kill]
            answers.append({"type": "KILL_JOB", "data": {"job_ids": killed}})
            cluster.release(plan.kill)
        for slot, _ in plan.start:
            data = {"job_id": cluster.names[slot], "alloc": cluster.take(slot)}
            answers.append({"type": "EXECUTE_JOB", "data": data})
        if plan.wake_us not in (NEVER, self._called_us):
            self._called_us = plan.wake_us
            later = {"timestamp": plan.wake_us / SECOND_US}
            answers.append({"type": "CALL_ME_LATER", "data": later})
        return answers


class _Watched:
    """A policy, and what it planned last."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.ignores = tuple(getattr(policy, "ignores", ()))
        self.last: Plan | None = None
        self.seen: ClusterView | None = None
        self.names: Callable[[ClusterView], None] = lambda _: None

    def plan(self, view: ClusterView, now: Time) -> Plan:
        self.names(view)
        self.seen, self.last = view, self._policy.plan(view, now)
        return self.last


class _ExternalEngine(Engine):
    """An engine whose jobs end, and whose policy plans, when a message arrives."""

    _due_us: Time = NEVER

    def end(self, slot: int, now: Time) -> None:
        """The job of `slot` has ended."""
        self.end_at(slot, now)
        self._due_us = now

    def simulate_at(self, now: Time, *, called: bool) -> bool:
        """Simulate this instant if anything happened, or the policy asked to be `called`."""
        happened = now in (self._due_us, self._arrivals.next_us)
        if not happened and not (called and self.wake_us == now):
            return False
        self._due_us = now
        self._simulate(now + 1)
        return True

    def _ask(self, now: Time) -> Plan:
        self._due_us = NEVER
        return super()._ask(now)


class _Cluster:
    """The resources of a simulation as one pool, and its jobs by their names there."""

    def __init__(self, resources: int, policy: _Watched) -> None:
        if resources < 1:
            raise ProtocolError(f"found {resources} resources, expected one at least")
        platform = Cluster(
            "batsim", (Machine("pool", resources),), PluginRef("batsim"), overrun="extend"
        )
        self._resources = resources
        self._policy = policy
        policy.names = self._name_arrivals
        self._engine = _ExternalEngine(platform, policy)
        self._free = (1 << resources) - 1
        self._number = 0
        self._coming: list[str] = []
        self.names: dict[int, str] = {}
        """By slot, of the jobs that wait or run."""
        self._slots: dict[str, int] = {}
        self._held: dict[str, int] = {}

    def submit(self, name: str, job: Any, now: Time) -> bool:
        """A job comes; whether it could ever run here."""
        if not isinstance(job, Mapping):
            raise ProtocolError(f"found job {shorten(job)} in JOB_SUBMITTED, expected an object")
        if name in self._slots or name in self._coming:
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
        self._coming.append(name)
        submitted = Job(
            number=self._number,
            vo="batsim",
            submit_us=now,
            processors=processors,
            estimate_us=estimate_us,
            run_us=UNKNOWN_US,
        )
        self._engine.submit(submitted, -1, now)
        return True

    def end(self, name: str, now: Time) -> None:
        """A job that ran has ended."""
        slot = self._slots.get(name)
        if slot is None or name not in self._held:
            raise ProtocolError(f"found the end of {shorten(name)}, expected that of a running job")
        self._engine.end(slot, now)
        self._forget(slot)

    def plan(self, now: Time, called: bool) -> tuple[Plan | None, ClusterView | None]:
        """What the policy plans, if it is asked; see `_ExternalEngine.simulate_at`."""
        self._policy.last = None
        if self._engine.simulate_at(now, called=called):
            return self._policy.last, self._policy.seen
        return None, None

    def take(self, slot: int) -> str:
        """The resources that the job gets."""
        assert self._policy.seen is not None
        held = lowest(self._free, int(self._policy.seen.jobs.processors[slot]))
        self._free &= ~held
        self._held[self.names[slot]] = held
        return text_of(held)

    def release(self, slots: list[int]) -> None:
        """Free the resources of killed jobs; Batsim confirms them later."""
        for slot in slots:
            self._forget(slot)

    def _forget(self, slot: int) -> None:
        name = self.names.pop(slot)
        del self._slots[name]
        self._free |= self._held.pop(name)

    def _name_arrivals(self, view: ClusterView) -> None:
        for slot in view.arrived.tolist():
            name = self._coming.pop(0)
            self.names[slot] = name
            self._slots[name] = slot


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
        raise ProtocolError(f"found {name} {shorten(value)}, expected a text")
    return value


def _port(endpoint: str) -> str:
    return endpoint.rpartition(":")[2]


def serve(server: Server, endpoint: str) -> None:
    """Answer at the endpoint until the simulation is over. Raises InputError for a wrong one."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.linger = 1000
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise input_error("endpoint", f"{endpoint} ({error})", "one to listen at") from None
        # ZeroMQ takes a port above 65535 modulo 65536.
        if _port(endpoint) not in ("0", "*", _port(socket.getsockopt_string(zmq.LAST_ENDPOINT))):
            raise input_error("endpoint", endpoint, "one with a port of 1 to 65535")
        while not server.is_over:
            text = socket.recv()
            try:
                message = json.loads(text)
            except (ValueError, RecursionError):
                raise ProtocolError(f"found {shorten(text)}, expected JSON") from None
            socket.send(json.dumps(server.answer(message)).encode())
