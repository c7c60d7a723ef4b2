"""Errors that a verification must find, as plugins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grid.model.job import Job
from grid.model.job_table import JobTable
from grid.model.resources import ResourceTable
from grid.policies.interface import ClusterView, Plan
from grid.protocol.information import GossipMessage, View
from grid.protocol.information.overlays import Gossip
from grid.protocol.selection import Choice
from grid.protocol.selection.by_load import PowerOfD
from grid.workload.stochastic import StochasticJobs, stochastic_jobs


def slower_servers(
    names: Sequence[str], vos: Sequence[Any], rng: np.random.Generator, settings: StochasticJobs
) -> dict[str, JobTable]:
    """Every job takes one percent longer than its load accounts for."""
    tables = stochastic_jobs(names, vos, rng, settings)
    return {name: _longer(table) for name, table in tables.items()}


def _longer(table: JobTable) -> JobTable:
    run_us = np.rint(table.run_us * 1.01).astype(np.int64)
    return replace(table, run_us=run_us, estimate_us=run_us)


class OnePeriodOlder(PowerOfD):
    """Draws two and goes by the board before the one that it is shown."""

    def __init__(self) -> None:
        super().__init__(d=2, ties="random", by_utility=False)
        self._observed_at_us = -1.0
        self._before: Any = None
        self._last: Any = None

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        others = table.columns.vo != own_vo
        observed_at_us = float(table.observed_at_us[others].max(initial=-1.0))
        if observed_at_us > self._observed_at_us:
            self._before, self._observed_at_us = self._last, observed_at_us
            self._last = table.assigned_cpus
        if self._before is not None and not own_only:
            table = replace(table, assigned_cpus=self._before)
        return super().choose(job, table, own_vo, own_only, rng)


class NearGossip(Gossip):
    """Writes to one of the next four VOs only."""

    def __init__(self) -> None:
        super().__init__(
            mode="push_pull", fan_out=1, period_s=1000.0, view_size=1, times="shuffled"
        )

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[GossipMessage]:
        (message,) = super().every_period(view, rng)
        near = (view.vo + 1 + int(rng.integers(4))) % (len(view.peers) + 1)
        return [message._replace(to=near)]


class LastComeFirstServed:
    """Starts the youngest jobs that fit."""

    def plan(self, view: ClusterView, now: int) -> Plan:
        plan = Plan()
        for slot in reversed(view.queue.tolist()):
            machine = view.fastest(slot)
            if machine >= 0:
                view.take(slot, machine)
                plan.start.append((slot, machine))
        return plan
