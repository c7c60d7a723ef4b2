"""Errors that a verification must find, as parts that plug in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grid.model.job_table import JobTable
from grid.policies.interface import ClusterView, Plan
from grid.workload.stochastic import StochasticJobs, stochastic_jobs


def slower_servers(
    names: Sequence[str], vos: Sequence[Any], rng: np.random.Generator, settings: StochasticJobs
) -> dict[str, JobTable]:
    """Every job takes one percent longer than what its load was reckoned with."""
    tables = stochastic_jobs(names, vos, rng, settings)
    return {name: _longer(table) for name, table in tables.items()}


def _longer(table: JobTable) -> JobTable:
    run_us = np.rint(table.run_us * 1.01).astype(np.int64)
    return replace(table, run_us=run_us, estimate_us=run_us)


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
