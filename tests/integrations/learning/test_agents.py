"""Agents on clusters of machines, and what they observe of resources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grid.cluster import make_cluster
from grid.integrations.learning.agents import AgentPolicy, ResourceObservation, reachable
from grid.model.arrays import Floats, Ints
from grid.model.job import Job
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine
from grid.model.resources import OUT_OF_REACH, UNKNOWN, ResourceColumns, ResourceTable

VOS, HOUR_US = 4, 3.6e9


def drawn(seed: int) -> tuple[Job, ResourceTable, Floats]:
    """A job, known states of resources, and utilities, with many ties."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 14))
    cpus = rng.choice([4.0, 8.0, 16.0], count)
    zeros = np.zeros(count, np.int64)
    columns = ResourceColumns(
        vo=np.sort(rng.integers(0, VOS, count)), number=np.arange(count), cluster=zeros,
        machine=zeros, cpus=cpus, widest=cpus, mips=rng.choice([500.0, 1000.0, 1700.0], count),
        operating_system=zeros, architecture=zeros, ram_mb=zeros + 0.0, disk_mb=zeros + 0.0,
        licenses=zeros,
    )  # fmt: skip
    assigned = np.floor(cpus * rng.choice([0.0, 0.5, 1.0, 1.5], count))
    assigned = np.where(rng.random(count) < 0.1, rng.choice([UNKNOWN, OUT_OF_REACH]), assigned)
    confirmed = rng.choice([-np.inf, 0.0, 5e8, 2e9], count) if rng.random() < 0.7 else np.empty(0)
    table = ResourceTable(columns, assigned, confirmed_us=confirmed, now=10**9)
    run_us = int(rng.integers(1, 10**10))
    job = Job(number=1, vo="a", submit_us=0, processors=int(rng.integers(1, 9)), run_us=run_us,
              estimate_us=run_us, reference_mips=float(rng.choice([900.0, 1000.0])))  # fmt: skip
    return job, table, rng.choice([0.0, 0.3, 0.7, 1.4], count)


def plain_places(
    job: Job, table: ResourceTable, utility: Floats, rows: Ints, own_vo: int
) -> Floats:
    columns, out = table.columns, np.zeros((len(rows), 7))
    for place, row in enumerate(rows.tolist()):
        if row < 0:
            continue
        load = table.assigned_cpus[row] / columns.cpus[row]
        known = bool(np.isfinite(load))
        age = max(0.0, float(table.age_us[row])) if len(table.confirmed_us) else 0.0
        run = job.estimate_us * job.reference_mips / columns.mips[row]
        out[place] = (
            1.0,
            load / (load + 1.0) if known else 1.0,
            known and table.assigned_cpus[row] + job.processors <= columns.cpus[row],
            min(max(utility[row], 0.0), 1.0),
            run / (run + HOUR_US),
            age / (age + HOUR_US) if np.isfinite(age) else 0.0,
            columns.vo[row] == own_vo,
        )
    return out


@pytest.mark.parametrize("seed", range(20))
def test_observed_places_equal_their_definition(seed: int) -> None:
    job, table, utility = drawn(seed)
    columns, own_only, own_vo = table.columns, seed % 5 == 0, seed % VOS
    reached = reachable(job, table, utility, own_vo, own_only)
    of_job = [
        min(1.0, job.processors / columns.widest.max()),
        job.estimate_us / (job.estimate_us + HOUR_US),
        2 / 3,
        1 / 2,
    ]
    rows = np.where(np.arange(len(utility)) % 3 == 1, -1, np.arange(len(utility)))
    seen = ResourceObservation(len(rows))(job, table, reached, rows, 1, ttl=2, hops=1)
    assert seen[:4].tolist() == np.array(of_job, np.float32).tolist()
    places = plain_places(job, table, reached, rows, 1).astype(np.float32)
    np.testing.assert_array_equal(seen[4:].reshape(-1, 7), places)


def test_jobs_start_on_the_machines_on_which_they_fit() -> None:
    masks = []

    def decide(_: Any, is_open: Any) -> int:
        masks.append(is_open.tolist())
        return int(is_open.argmax())

    cluster = make_cluster(
        Cluster("farm", (Machine("slow", 4, 500.0), Machine("fast", 2, 1000.0))),
        AgentPolicy(decide, offered=2),
    )
    ones = np.ones(3, np.int64)
    cluster.submit_rows(
        JobTable.of(
            number=[1, 2, 3],
            submit_us=0 * ones,
            processors=[2, 3, 2],
            estimate_us=100 * ones,
            run_us=100 * ones,
        )
    )
    cluster.advance(1000)
    _, outcome = cluster.take_ended_rows()
    # The first job on the fast machine, the second on the slow one; the third after the first.
    assert outcome.machine.tolist() == [1, 0, 1]
    assert outcome.start_us.tolist() == [0, 0, 100]
    assert masks == [[True, True, False], [True, True, True], [True, False, True]]
