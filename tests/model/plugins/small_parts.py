"""A file with a small part of every kind, some of which fail."""

from __future__ import annotations

SMALL_PARTS = """
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


class SmallestGang(GangPolicy):
    def __init__(self, *, mine: int = 1, **others):
        super().__init__(**others)

    def rank(self, size, serial):
        return size * 2**40 + serial


class Last:
    def choose(self, job, table, own_vo, own_only):
        rows = np.arange(1.0, len(table.columns) + 1)
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
    return int(results.processors.max(initial=0))


def seconds(results, directory, cluster, edges_us):
    return np.diff(edges_us) / 1e6


def stretch(results, directory):
    return results.processors * 2.0


class Raises(Largest):
    def plan(self, view, now):
        return 1 // 0


class NoPlan(Largest):
    def plan(self, view, now):
        return None


class Lazy(Largest):
    def plan(self, view, now):
        return Plan()


class Nothing:
    pass


broken_jobs = lambda names, vos, rng: {}
"""
