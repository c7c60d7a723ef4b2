"""Schedules when events differ from plans: each repair by hand, on clusters of 1000 MIPS."""

from __future__ import annotations

from typing import Any

from grid.cluster import make_cluster
from grid.model.job import JobState
from grid.model.platform import Cluster, License, Machine, MachineOutage
from grid.model.time import NEVER
from grid.policies.schedule.policy import ScheduleBased
from tests.cluster.clusters import job

Arrival = tuple[int, int, int, int]
"""(submission, CPUs, estimate, run time)."""


def played(
    cpus: tuple[int, ...],
    *arrivals: Arrival,
    bound: dict[int, int] | None = None,
    licenses: dict[int, int] | None = None,
    deadline: dict[int, int] | None = None,
    moves: bool = True,
    outages: tuple[MachineOutage, ...] = (),
    usable: tuple[tuple[str, ...], ...] = ((), (), ()),
) -> list[tuple[int, int]]:
    """(machine, start) of each job; the dictionaries are by number of the job."""
    machines = tuple(Machine(f"m{n}", count, licenses=usable[n]) for n, count in enumerate(cpus))
    platform = Cluster("c", machines, licenses=(License("x", 1),), overrun="extend")
    cluster = make_cluster(platform, ScheduleBased(moves=moves), None, outages)
    for number, (submit, processors, estimate, run) in enumerate(arrivals):
        more: dict[str, Any] = {
            "licenses": (licenses or {}).get(number, 0),
            "deadline_us": (deadline or {}).get(number, NEVER),
        }
        one = job(number, submit, processors, estimate, run, **more)
        cluster.submit(one, (bound or {}).get(number, -1), submit)
    cluster.advance(NEVER)
    ended = sorted(cluster.take_ended())
    assert all(one.state == JobState.COMPLETED for _, one in ended)
    return [(one.machine, one.start_us) for _, one in ended]


def test_after_an_early_end_the_jobs_behind_move_up() -> None:
    assert played((1,), (0, 1, 10, 4), (0, 1, 5, 5), (0, 1, 5, 5)) == [(0, 0), (0, 4), (0, 9)]


def test_a_job_that_runs_longer_holds_up_those_behind_it() -> None:
    """The first is expected at 10, then at 20; without moves its successor waits for it."""
    arrivals = ((0, 1, 10, 15), (0, 1, 10, 10), (0, 1, 5, 5), (0, 1, 5, 5))
    bound = {2: 0, 3: 1}
    assert played((1, 1), *arrivals, bound=bound, moves=False)[2:] == [(0, 15), (1, 10)]


def test_with_moves_delayed_jobs_are_placed_again() -> None:
    """The third was to follow the first at 10; that is expected at 20 then, the second at 11."""
    arrivals = ((0, 1, 10, 20), (0, 1, 11, 11), (0, 1, 5, 5))
    assert played((1, 1), *arrivals)[2] == (1, 11)
    assert played((1, 1), *arrivals, moves=False)[2] == (0, 20)


def test_idle_cpus_after_an_early_end_go_to_a_job_of_another_machine() -> None:
    """Jobs 2 and 3 wait for the first until 10; the second ends at 3. Job 3 has a deadline."""
    arrivals = ((0, 1, 10, 10), (0, 1, 12, 3), (0, 1, 5, 5), (1, 1, 5, 5))
    assert played((1, 1), *arrivals, deadline={3: 100})[2:] == [(0, 10), (1, 3)]


def test_idle_cpus_go_to_a_job_of_the_same_machine_that_delays_no_other() -> None:
    """From 4 to 10 one CPU is idle in front of the wide job: 6 of the fifth fit, 7 do not."""
    arrivals = ((0, 1, 10, 10), (0, 1, 8, 4), (0, 2, 5, 5), (0, 1, 7, 7), (0, 1, 6, 6))
    assert played((2,), *arrivals)[2:] == [(0, 10), (0, 15), (0, 4)]


def test_jobs_of_a_machine_that_goes_down_are_placed_elsewhere_or_wait_for_it() -> None:
    """Job 0 is bound to the machine, and job 1 is too wide for the other one. Both jobs that ran
    there, 0 and 3, start again."""
    arrivals = ((0, 1, 10, 10), (0, 2, 5, 5), (0, 1, 20, 20), (0, 1, 4, 4))
    down = (MachineOutage(1, 2, 9),)
    found = played((1, 2), *arrivals, bound={0: 1, 2: 0}, outages=down)
    assert found == [(1, 0), (1, 19), (0, 0), (0, 0)]


def test_a_job_without_a_license_copy_waits_and_delays_no_other() -> None:
    """The only copy is held on the first machine until 10; jobs 2 and 3 go there meanwhile."""
    arrivals = ((0, 1, 10, 10), (0, 1, 5, 5), (2, 1, 4, 4), (2, 1, 4, 4))
    found = played(
        (3, 1), *arrivals, bound={0: 0, 1: 1, 2: 0, 3: 0}, licenses={0: 1, 1: 1, 2: 1},
        usable=(("x",), ("x",)),
    )  # fmt: skip
    assert found == [(0, 0), (1, 10), (0, 2), (0, 2)]
