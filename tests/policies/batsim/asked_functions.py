"""Schedulers of Batsim's protocol as functions, without a process, and clusters that ask them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from grid.cluster import make_cluster
from grid.model.fields import PluginRef
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine
from grid.policies.batsim.policy import batsim
from grid.policies.interface import Policy

Message = dict[str, Any]
CPUS = 16


def drawn_jobs(count: int, seed: int) -> JobTable:
    """Jobs that are too many for `CPUS`; half of the estimates are right, some are too short."""
    rng = np.random.default_rng(seed)
    run_us = rng.integers(1, 400, count) * 1_000_000 + rng.integers(0, 3, count)
    factor = rng.choice([1.0, 1.0, 2.5, 0.5], count)
    return JobTable.of(
        number=np.arange(1, count + 1),
        submit_us=np.cumsum(rng.integers(0, 60, count)) * 1_000_000,
        processors=rng.choice([1, 2, 3, 4, 8, 16], count, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05]),
        estimate_us=np.maximum(1, (run_us * factor).astype(np.int64)),
        run_us=run_us,
    )


def schedule(
    policy: Policy, jobs: JobTable, processors: int = CPUS, **resources: float
) -> tuple[list[int], list[int], list[int]]:
    """Start, end and state of each job of a pool of so many processors under `policy`, by row."""
    machine = Machine("pool", processors, resources=resources)
    cluster = make_cluster(Cluster("pool", (machine,), PluginRef("batsim")), policy)
    cluster.submit_rows(jobs)
    cluster.advance(2**60)
    rows, outcome = cluster.take_ended_rows()
    assert sorted(rows.tolist()) == list(range(len(jobs)))
    order = np.argsort(rows)
    columns = outcome.start_us, outcome.end_us, outcome.state
    start, end, state = (column[order].tolist() for column in columns)
    return start, end, state


def asked(scheduler: Callable[[Message], Any], log: list[Message] | None = None) -> Policy:
    """The policy `batsim` that asks a function, in JSON, as it would be asked over a socket."""
    policy = batsim(endpoint="tcp://nowhere:1")

    def converse(message: Message) -> Any:
        text = json.dumps(message)
        if log is not None:
            log.append(json.loads(text))
        answer = scheduler(json.loads(text))
        return answer if answer is None else json.loads(json.dumps(answer))

    policy.connect(converse)
    return policy


class InTurn:
    """First come, first served, on the lowest free resources; what is decided takes `delay_s`."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s
        self.queue: list[tuple[str, int]] = []
        self.free: list[int] = []
        self.held: dict[str, list[int]] = {}

    def __call__(self, message: Message) -> Message:
        for heard in message["events"]:
            data = heard["data"]
            if heard["type"] == "SIMULATION_BEGINS":
                self.free = list(range(data["nb_compute_resources"]))
            elif heard["type"] == "JOB_SUBMITTED":
                self.queue.append((data["job_id"], data["job"]["res"]))
            elif heard["type"] == "JOB_COMPLETED":
                self.free = sorted(self.free + self.held.pop(data["job_id"]))
        now = message["now"] + self.delay_s
        return {"now": now, "events": [event(now, *one) for one in self.starts()]}

    def starts(self) -> list[tuple[str, dict[str, Any]]]:
        started = []
        while self.queue and self.queue[0][1] <= len(self.free):
            name, count = self.queue.pop(0)
            self.held[name], self.free = self.free[:count], self.free[count:]
            alloc = " ".join(map(str, self.held[name]))
            started.append(("EXECUTE_JOB", {"job_id": name, "alloc": alloc}))
        return started


def event(now: float, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": now, "type": kind, "data": data}
