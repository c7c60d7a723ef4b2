"""What agents are told of resources, and the best of each VO: compiled, and plain."""

from __future__ import annotations

import numpy as np
import pytest

from grid.integrations.learning.resource_agent import ResourceObservation, reachable
from grid.integrations.learning.resource_kernels import best_rows
from grid.model.arrays import Floats, Ints
from grid.model.job import Job
from grid.model.resources import OUT_OF_REACH, UNKNOWN, ResourceColumns, ResourceTable

VOS, HOUR_US = 4, 3.6e9


def drawn(seed: int) -> tuple[Job, ResourceTable, Floats]:
    """A job, what is known of some resources, and what they are worth; much of it is alike."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 14))
    cpus = rng.choice([4.0, 8.0, 16.0], count)
    zeros = np.zeros(count, np.int64)
    columns = ResourceColumns(
        vo=np.sort(rng.integers(0, VOS, count)), number=np.arange(count), cluster=zeros,
        machine=zeros, cpus=cpus, widest=cpus, mips=rng.choice([500.0, 1000.0, 1700.0], count),
        operating_system=zeros, architecture=zeros, ram_mb=zeros + 0.0, disk_mb=zeros + 0.0,
        most_ram_mb=zeros + np.inf, licenses=zeros,
    )  # fmt: skip
    assigned = np.floor(cpus * rng.choice([0.0, 0.5, 1.0, 1.5], count))
    assigned = np.where(rng.random(count) < 0.1, rng.choice([UNKNOWN, OUT_OF_REACH]), assigned)
    confirmed = rng.choice([-np.inf, 0.0, 5e8, 2e9], count) if rng.random() < 0.7 else np.empty(0)
    table = ResourceTable(columns, assigned, confirmed_us=confirmed, now=10**9)
    run_us = int(rng.integers(1, 10**10))
    job = Job(number=1, vo="a", submit_us=0, processors=int(rng.integers(1, 9)), run_us=run_us,
              estimate_us=run_us, reference_mips=float(rng.choice([900.0, 1000.0])))  # fmt: skip
    return job, table, rng.choice([0.0, 0.3, 0.7, 1.4], count)


def plain_places(job: Job, table: ResourceTable, worth: Floats, rows: Ints, own_vo: int) -> Floats:
    columns, told = table.columns, np.zeros((len(rows), 7))
    places = np.flatnonzero(rows >= 0)
    at = rows[places]
    load = table.assigned_cpus[at] / columns.cpus[at]
    known = np.isfinite(load)
    load = np.where(known, load, 0.0)
    age = table.age_us[at] if len(table.confirmed_us) else np.zeros(len(at))
    age = np.where(np.isfinite(age), np.maximum(age, 0.0), 0.0)
    run = job.estimate_us * job.reference_mips / columns.mips[at]
    told[places, 0] = 1.0
    told[places, 1] = np.where(known, load / (load + 1.0), 1.0)
    told[places, 2] = known & (table.lacking_cpus(job.processors)[at] <= 0)
    told[places, 3] = np.clip(worth[at], 0.0, 1.0)
    told[places, 4] = run / (run + HOUR_US)
    told[places, 5] = age / (age + HOUR_US)
    told[places, 6] = columns.vo[at] == own_vo
    return told


def plain_best(job: Job, table: ResourceTable, worth: Floats) -> list[int]:
    columns, best = table.columns, [-1] * VOS
    usable = np.flatnonzero(worth > 0.0)
    busy = table.lacking_cpus(job.processors)[usable] > 0
    load = table.assigned_cpus[usable] / columns.cpus[usable]
    for row in usable[np.lexsort((-usable, -load, worth[usable], ~busy))].tolist():
        best[columns.vo[row]] = row
    return best


@pytest.mark.parametrize("seed", range(200))
def test_compiled_code_tells_what_plain_code_tells(seed: int) -> None:
    job, table, worth = drawn(seed)
    columns, own_only, own_vo = table.columns, seed % 5 == 0, seed % VOS
    best, reached = np.empty(VOS, np.int64), np.empty(len(worth))
    found = best_rows(
        best, reached, job.processors, own_vo, own_only, worth, columns.vo, columns.cpus,
        columns.widest, table.assigned_cpus,
    )  # fmt: skip
    np.testing.assert_array_equal(reached, reachable(job, table, worth, own_vo, own_only))
    assert best.tolist() == plain_best(job, table, reached)
    assert found == np.count_nonzero(best >= 0)
    of_job = [
        min(1.0, job.processors / columns.widest.max()),
        job.estimate_us / (job.estimate_us + HOUR_US),
        2 / 3,
        1 / 2,
    ]
    for rows in (best, np.arange(len(worth))):
        seen = ResourceObservation(len(rows))(job, table, reached, rows, 1, ttl=2, hops=1)
        assert seen[:4].tolist() == np.array(of_job, np.float32).tolist()
        places = plain_places(job, table, reached, rows, 1).astype(np.float32)
        np.testing.assert_array_equal(seen[4:].reshape(-1, 7), places)
