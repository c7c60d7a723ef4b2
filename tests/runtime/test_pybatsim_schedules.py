"""The schedules of pybatsim's FCFS and EASY through the protocol, against ours: why they differ.

Four things make them differ, and here each is taken away or foreseen:

- the schedulers that pybatsim maintains give a job consecutive resources, and wait where those that
  are free are scattered; ours count CPUs;
- its EASY reserves a rectangle, and lets jobs that take too long start on resources in the middle
  of it, between others that run: the first job may then be late, as EASY says it must not;
- they decide after each event of an instant, ours once all are known;
- they reckon in floating seconds. Times here are whole seconds, where that rounds nothing.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.model.job_table import JobTable
from grid.model.time import SECOND_US
from grid.policies.queue import easy, fcfs
from tests.policies.batsim.asked_functions import CPUS, drawn_jobs, schedule

pytest.importorskip("zmq", reason="needs the extra `batsim`")
if importlib.util.find_spec("batsim") is None:
    pytest.skip("needs pybatsim, which is no dependency", allow_module_level=True)

from scripts.schedules import (
    FORGOTTEN,
    LATER,
    RESERVED,
    SCATTERED,
    UNEXPLAINED,
    Heard,
    backfilling,
    count_reasons,
    in_turn,
    longest_run,
    of_pybatsim,
    reasons,
)

Starts = list[int]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers of pybatsim write a log where they are started."""
    monkeypatch.chdir(tmp_path)


def of_own(policy: Any, jobs: JobTable) -> Starts:
    return schedule(policy, jobs)[0]


def never_together(count: int, seed: int) -> JobTable:
    """Jobs of which no two events fall on one instant, as times have no seconds in common."""
    jobs = drawn_jobs(count, seed)
    spread = np.arange(count) * 1_000_003
    jobs.submit_us[:] = np.arange(count) * 29 * SECOND_US
    jobs.run_us[:] = jobs.run_us // SECOND_US * SECOND_US + 1 + 2 * np.arange(count)
    jobs.estimate_us[:] = jobs.run_us + spread
    return jobs


def halves(jobs: JobTable) -> JobTable:
    """The jobs, each as wide as the pool, or half as wide: what is free is one half, or all."""
    jobs.processors[:] = np.where(jobs.processors >= 4, CPUS, CPUS // 2)
    return jobs


def test_fcfs_of_pybatsim_on_any_resources_is_our_fcfs(tmp_path: Path) -> None:
    """Its algorithm without the filter for consecutive resources, as its users write one."""
    file = tmp_path / "anyFcfs.py"
    file.write_text(
        "from batsim.sched.algorithms.filling import filler_sched\n\n\n"
        "def AnyFcfs(scheduler):\n"
        "    return filler_sched(scheduler, abort_on_first_nonfitting=True)\n"
    )
    for seed in range(2):
        jobs = drawn_jobs(100, seed)
        assert of_pybatsim(str(file), jobs).starts == of_own(fcfs(), jobs)


def test_fcfs_of_pybatsim_waits_for_consecutive_resources_and_for_nothing_else() -> None:
    jobs = drawn_jobs(120, 3)
    starts, said, allocations, _ = of_pybatsim("schedFcfs", jobs)
    assert starts != of_own(fcfs(), jobs)
    assert set(count_reasons(reasons(jobs, CPUS, said, in_turn))) == {SCATTERED}
    for row, mask in allocations.items():
        assert longest_run(mask) == jobs.processors[row]


def test_each_decision_of_easy_of_pybatsim_that_is_not_ours_has_a_reason() -> None:
    found: Counter[str] = Counter()
    for seed in range(3):
        jobs = drawn_jobs(250, seed)
        starts, said, _, _ = of_pybatsim("easyBackfill", jobs)
        assert starts != of_own(easy(), jobs)
        found += count_reasons(reasons(jobs, CPUS, said, backfilling))
    assert found.keys() == {SCATTERED, RESERVED, LATER, FORGOTTEN}


def in_minutes(jobs: JobTable) -> JobTable:
    """The jobs, with whole minutes only: so that several events fall together."""
    minute_us = 60 * SECOND_US
    jobs.submit_us[:] = jobs.submit_us // minute_us * minute_us
    for column in (jobs.run_us, jobs.estimate_us):
        column[:] = (column // minute_us + 1) * minute_us
    return jobs


@pytest.mark.thorough
def test_simultaneous_events_have_a_reason_too() -> None:
    jobs = in_minutes(drawn_jobs(250, 1))
    said = of_pybatsim("easyBackfill", jobs).said
    assert sum(len(heard.events) > 1 for heard in said) > 50
    found = count_reasons(reasons(jobs, CPUS, said, backfilling))
    assert found.keys() <= {SCATTERED, RESERVED, LATER, FORGOTTEN}
    assert found.total() > 20


def test_easy_of_pybatsim_is_our_easy_where_nothing_is_scattered_or_falls_together() -> None:
    for seed in range(2):
        # Its EASY forgets a reservation only where what is free has jobs on both sides.
        jobs = halves(never_together(150, seed))
        starts = of_pybatsim("easyBackfill", jobs).starts
        assert starts == of_own(easy(), jobs)
        assert starts != of_own(fcfs(), jobs)


def test_a_decision_without_a_reason_is_found() -> None:
    """Two jobs hold the first and the last two of eight processors, the one between has ended."""

    def found(estimates: tuple[tuple[int, int], ...], *said: Heard) -> list[tuple[int, int, str]]:
        processors, estimate = (np.array(column) for column in zip(*estimates, strict=True))
        zeros, numbers = 0 * estimate, np.arange(1, len(estimate) + 1)
        jobs = JobTable.of(
            number=numbers, submit_us=zeros, processors=processors, estimate_us=estimate,
            run_us=estimate,
        )  # fmt: skip
        return list(reasons(jobs, 8, list(said), backfilling))

    def came(*rows: int) -> list[tuple[str, int]]:
        return [("submit", row) for row in rows]

    apart = Heard(0, came(0, 1, 2), [(0, 0b11), (1, 0b0011_1100), (2, 0b1100_0000)])
    four = ((2, 9), (4, 5), (2, 9), (4, 3))
    assert not found(four, apart, Heard(5, [("end", 1), *came(3)], [(3, 0b0011_1100)]))
    idle = apart, Heard(5, [("end", 1)], []), Heard(6, came(3), [])
    assert found(four, *idle) == [(6, 3, UNEXPLAINED)]
    first = Heard(0, came(0, 1), [(0, 0b1111), (1, 0b1111_0000)])
    late = Heard(5, [("end", 1), *came(2, 3)], [(3, 0b1111_0000)])
    assert found(((4, 9), (4, 5), (8, 3), (4, 50)), first, late) == [(5, 3, UNEXPLAINED)]
