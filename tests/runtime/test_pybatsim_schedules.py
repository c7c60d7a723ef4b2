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
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.model.job_table import JobTable
from grid.model.time import SECOND_US
from grid.policies.batsim.policy import Batsim, Scheduler
from grid.policies.batsim.resources import mask_of
from grid.policies.queue import easy, fcfs
from tests.policies.batsim.asked_functions import CPUS, drawn_jobs, schedule

pytest.importorskip("zmq", reason="needs the extra `batsim`")
if importlib.util.find_spec("batsim") is None:
    pytest.skip("needs pybatsim, which is no dependency", allow_module_level=True)

from grid.runtime.schedulers import Conversation

PYBATSIM = shlex.quote(str(Path(sys.executable).with_name("pybatsim")))
Starts = list[int]
Allocations = dict[int, int]
"""Bit mask of its resources by a job's row."""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers of pybatsim write a log where they are started."""
    monkeypatch.chdir(tmp_path)


def of_pybatsim(scheduler: str, jobs: JobTable) -> tuple[Starts, Allocations]:
    """The starts of the jobs under a scheduler of pybatsim's, and what each ran on."""
    command = f"{PYBATSIM} {scheduler} -s {{endpoint}} -t 0 -v error"
    conversation = Conversation("tests/pool", Scheduler(command, "", 60.0))
    policy, allocations = Batsim(Scheduler(command, "", 60.0)), Allocations()

    def converse(message: dict[str, Any]) -> Any:
        answer = conversation.ask(message)
        for event in answer["events"]:
            if event["type"] == "EXECUTE_JOB":
                row = int(event["data"]["job_id"].partition("!")[2])
                allocations[row] = mask_of(event["data"]["alloc"], CPUS)
        return answer

    policy.connect(converse)
    try:
        starts, _, _ = schedule(policy, jobs)
        conversation.say_farewell()
    finally:
        conversation.close()
    return starts, allocations


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


def longest_run(free: int) -> int:
    """How many consecutive resources of `free` there are at most."""
    length = 0
    while free:
        free &= free << 1
        length += 1
    return length


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
        assert of_pybatsim(str(file), jobs)[0] == of_own(fcfs(), jobs)


def test_fcfs_of_pybatsim_waits_for_consecutive_resources_and_for_nothing_else() -> None:
    """Each job starts at the first instant, once its turn has come, with a run of its width."""
    jobs = drawn_jobs(120, 3)
    starts, allocations = of_pybatsim("schedFcfs", jobs)
    assert starts != of_own(fcfs(), jobs)
    turn = 0
    for row, start in enumerate(starts):
        turn = max(turn, int(jobs.submit_us[row]))
        width = int(jobs.processors[row])
        assert longest_run(allocations[row]) == width
        for instant in instants(jobs, starts, turn, start):
            assert longest_run(free_at(jobs, starts, allocations, row, instant)) < width
        turn = start
    assert starts == sorted(starts)


def instants(jobs: JobTable, starts: Starts, first: int, last: int) -> Iterator[int]:
    """When jobs ended, from `first` to before `last`, and `first` itself."""
    ends = {start + took(jobs, row) for row, start in enumerate(starts)}
    yield from (time for time in sorted({first, *ends}) if first <= time < last)


def took(jobs: JobTable, row: int) -> int:
    return int(min(jobs.run_us[row], jobs.estimate_us[row]))


def free_at(jobs: JobTable, starts: Starts, held: Allocations, row: int, instant: int) -> int:
    """What is free for the job of that row, whose turn it is."""
    free = (1 << CPUS) - 1
    for other in range(row):
        if starts[other] <= instant < starts[other] + took(jobs, other):
            free &= ~held[other]
    return free


def test_easy_of_pybatsim_is_our_easy_where_nothing_is_scattered_or_falls_together() -> None:
    for seed in range(2):
        # Its EASY forgets a reservation only where what is free has jobs on both sides.
        jobs = halves(never_together(150, seed))
        starts, _ = of_pybatsim("easyBackfill", jobs)
        assert starts == of_own(easy(), jobs)
        assert starts != of_own(fcfs(), jobs)


def test_easy_of_pybatsim_without_topology_is_our_easy_where_nothing_falls_together() -> None:
    import schedulers

    file = Path(schedulers.__file__).parent / "unMaintained" / "easyBackfillNotopo.py"
    for seed in range(2):
        jobs = never_together(120, seed)
        starts, _ = of_pybatsim(str(file), jobs)
        assert starts == of_own(easy(), jobs)
        assert starts != of_own(fcfs(), jobs)
