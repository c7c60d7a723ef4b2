"""A file with a small plugin of every kind."""

from __future__ import annotations

from typing import Any

VALID = """
from typing import Annotated

import numpy as np
from pydantic import Field

from grid.protocol.forwarding import Destination
from grid.model.job_table import JobTable
from grid.model.platform import Machine
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Plan
from grid.protocol.selection import best_choice


class Largest:
    def __init__(self, *, most: Annotated[int, Field(ge=1)] = 10):
        self.most = most

    def plan(self, view, now):
        plan = Plan()
        for slot in sorted(view.queue.tolist(), key=lambda s: -view.jobs.processors[s])[:self.most]:
            machine = view.fastest(slot)
            if machine >= 0:
                view.take(slot, machine)
                plan.start.append((slot, machine))
        return plan


class StartsAsArray(Largest):
    def plan(self, view, now):
        plan = super().plan(view, now)
        return Plan(start=np.array(plan.start, np.int64).reshape(-1, 2))


class SmallestGang(GangPolicy):
    def __init__(self, *, mine: int = 1, **others):
        super().__init__(**others)

    def rank(self, size, serial):
        return size * 2**40 + serial


class Last:
    def choose(self, job, table, own_vo, own_only, more=1):
        rows = np.arange(1.0, len(table.columns) + 1)
        table.assigned_cpus[:] = 0.0
        return best_choice(rows, job, table, own_vo, own_only)


def stay(question):
    return Destination(question.choice.own, True)


class Fewest:
    def __init__(self, *, reverse: bool = True):
        self.reverse = reverse

    def __call__(self, size, queues, first):
        order = sorted(range(len(queues.up)), reverse=self.reverse)
        order.sort(key=lambda p: queues.waiting[p] + queues.busy[p])
        return [p for p in order if queues.up[p]][:size]


def even_jobs(names, vos, rng, *, count: int = 3):
    ones = np.full(count, 10_000_000)
    table = JobTable.of(
        number=np.arange(count), submit_us=np.arange(count), processors=np.ones(count),
        estimate_us=ones, run_us=ones,
    )
    return {name: table for name in names}


def even_machines(count, rng):
    return tuple(Machine(f"m{number}", 2) for number in range(count))


def double(results, directory):
    return results.processors * 2.0


def widest(results, directory):
    \"\"\"The most CPUs of a job.\"\"\"
    return int(results.processors.max(initial=0))


def seconds(results, directory, cluster, edges_us):
    return np.diff(edges_us) / 1e6
"""


def scenario(policy: Any = "mine.py:Largest", **more: Any) -> dict[str, Any]:
    """Three jobs on two machines under `policy`."""
    jobs = [{"run_s": 10, "cpus": number} for number in (1, 2, 2)]
    cluster = {"policy": policy, "machines": [{"count": 2, "cpus": 2}]}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": jobs}}
    return {"name": "small", "vos": [vo], **more}


def everything() -> dict[str, Any]:
    """A scenario with a plugin of the file for most kinds."""
    described = scenario(
        protocol={"forwarding": "mine.py:stay"},
        metrics={
            "job": ["mine.py:double"],
            "vo": ["mine.py:widest"],
            "cluster": ["mine.py:seconds"],
        },
    )
    (own,) = described["vos"]
    own["selection"] = "mine.py:Last"
    own["clusters"][0]["machines"] = {"generator": "mine.py:even_machines", "count": 2}
    own["workload"] = {"generator": "mine.py:even_jobs", "settings": {"count": 4}}
    gangs = {"policy": {"name": "mine.py:SmallestGang", "settings": {"mine": 2, "aging": 3}}}
    gangs["machines"] = [{"count": 2}]  # type: ignore[assignment]
    gangs["processor_choice"] = "mine.py:Fewest"
    work = {"jobs": [{"run_s": 1, "cpus": 2}]}
    described["vos"].append({"name": "two", "clusters": [gangs], "workload": work})
    return described
