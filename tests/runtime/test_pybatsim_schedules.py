"""Schedules of pybatsim's FCFS and EASY through the protocol, compared with ours.

They differ for four reasons, each of which is excluded or predicted here:

- the maintained schedulers of pybatsim allocate consecutive resources; ours count CPUs;
- its EASY reserves a rectangle, and lets long jobs start inside it between running jobs;
- they decide after each event of an instant, ours after all of them;
- they compute times in floating point. Times here are whole seconds, which are exact.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from grid.model.time import SECOND_US
from grid.policies.queue import easy, fcfs
from tests.policies.batsim.asked_functions import CPUS, drawn_jobs, schedule

pytest.importorskip("zmq", reason="needs the extra `batsim`")
if importlib.util.find_spec("batsim") is None:
    pytest.skip("needs pybatsim, which is no dependency", allow_module_level=True)

from scripts.pybatsim_comparison import (
    FORGOTTEN,
    LATER,
    RESERVED,
    SCATTERED,
    count_reasons,
    differences,
    easy_starts,
    fcfs_starts,
    longest_run,
    run_pybatsim,
)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers of pybatsim write a log to the current folder."""
    monkeypatch.chdir(tmp_path)


def test_fcfs_of_pybatsim_on_any_resources_is_our_fcfs(tmp_path: Path) -> None:
    """Its algorithm without the filter for consecutive resources."""
    file = tmp_path / "anyFcfs.py"
    file.write_text(
        "from batsim.sched.algorithms.filling import filler_sched\n\n\n"
        "def AnyFcfs(scheduler):\n"
        "    return filler_sched(scheduler, abort_on_first_nonfitting=True)\n"
    )
    jobs = drawn_jobs(100, 0)
    assert run_pybatsim(str(file), jobs).starts == schedule(fcfs(), jobs)[0]


def test_fcfs_of_pybatsim_differs_by_consecutive_resources_only() -> None:
    jobs = drawn_jobs(120, 3)
    starts, exchanges, allocations, _ = run_pybatsim("schedFcfs", jobs)
    assert starts != schedule(fcfs(), jobs)[0]
    assert set(count_reasons(differences(jobs, CPUS, exchanges, fcfs_starts))) == {SCATTERED}
    for row, mask in allocations.items():
        assert longest_run(mask) == jobs.processors[row]


def test_each_different_decision_of_easy_of_pybatsim_has_a_reason() -> None:
    """Also if several events are simultaneous: the last jobs have whole minutes only."""
    found: Counter[str] = Counter()
    minute_us = 60 * SECOND_US
    for seed in range(4):
        jobs = drawn_jobs(250, min(seed, 2))
        if seed == 3:
            jobs.submit_us[:] = jobs.submit_us // minute_us * minute_us
            for column in (jobs.run_us, jobs.estimate_us):
                column[:] = (column // minute_us + 1) * minute_us
        starts, exchanges, _, _ = run_pybatsim("easyBackfill", jobs)
        assert starts != schedule(easy(), jobs)[0]
        found += count_reasons(differences(jobs, CPUS, exchanges, easy_starts))
    assert found.keys() == {SCATTERED, RESERVED, LATER, FORGOTTEN}


def test_easy_of_pybatsim_is_our_easy_without_scattered_resources_and_simultaneous_events() -> None:
    for seed in range(2):
        jobs, row = drawn_jobs(150, seed), np.arange(150)
        jobs.submit_us[:] = row * 29 * SECOND_US
        jobs.run_us[:] = jobs.run_us // SECOND_US * SECOND_US + 1 + 2 * row
        jobs.estimate_us[:] = jobs.run_us + row * 1_000_003
        # Jobs take half of the pool or all of it.
        jobs.processors[:] = np.where(jobs.processors >= 4, CPUS, CPUS // 2)
        starts = run_pybatsim("easyBackfill", jobs).starts
        assert starts == schedule(easy(), jobs)[0]
        assert starts != schedule(fcfs(), jobs)[0]
