"""Random machines and jobs, and machines that fail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from grid.cluster import make_cluster
from grid.model.job import Job
from grid.model.platform import Cluster, Machine, MachineOutage, Reservation
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import Policy


@dataclass
class History:
    """Machines, jobs that come to them, with the machine each is bound to, and what fails."""

    machines: tuple[Machine, ...]
    jobs: list[tuple[Job, int]]
    outages: tuple[MachineOutage, ...] = ()
    reservations: tuple[Reservation, ...] = ()


@st.composite
def histories(draw: st.DrawFn, exact: bool = False) -> History:
    machines = tuple(
        Machine(f"m{n}", draw(st.integers(1, 5)), draw(st.sampled_from([500.0, 1000.0, 1500.0])))
        for n in range(draw(st.integers(1, 4)))
    )
    jobs, now = [], 0
    for number in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 0, 1, 2, 5]))
        estimate = draw(st.integers(1, 12))
        run = estimate if exact else draw(st.integers(1, 14))
        due = draw(st.one_of(st.none(), st.integers(1, 40)))
        job = Job(
            number=number,
            vo="vo",
            user=draw(st.integers(1, 2)),
            submit_us=now,
            processors=draw(st.integers(1, 6)),
            estimate_us=estimate,
            run_us=run,
            deadline_us=NEVER if due is None else now + due,
        )
        bound = draw(st.sampled_from([-1, -1, -1, *range(len(machines))]))
        jobs.append((job, bound))
    return History(machines, jobs)


@st.composite
def crowds(draw: st.DrawFn, exact: bool = False) -> History:
    """So many jobs at once that tabu search finds moves in half of the histories, and in most of
    the others has to try in vain. Drawn from a seed, as Hypothesis does not make such long ones."""
    stream = np.random.default_rng(draw(st.integers(0, 2**32)))
    machines = tuple(
        Machine(f"m{n}", int(stream.integers(2, 7)), float(stream.choice([500, 1000, 1500])))
        for n in range(3)
    )
    jobs = []
    for number in range(35):
        submit, estimate = number // 20, int(stream.integers(1, 30))
        run = estimate if exact else int(stream.integers(1, 35))
        due = submit + int(estimate * stream.uniform(1, 6)) if stream.random() < 0.7 else NEVER
        processors = int(stream.integers(1, 6))
        job = Job(
            number=number,
            vo="vo",
            user=number % 2 + 1,
            submit_us=submit,
            processors=processors,
            estimate_us=estimate,
            run_us=run,
            deadline_us=due,
        )
        jobs.append((job, -1))
    return History(machines, jobs)


def play(history: History, policy: Policy, overrun: str = "kill") -> list[tuple[int, ...]]:
    """(number, machine, state, start, end) of each job."""
    machines, reserved = history.machines, history.reservations
    platform = Cluster("c", machines, overrun=overrun, reservations=reserved)
    cluster = make_cluster(platform, policy, None, history.outages)
    for job, machine in history.jobs:
        cluster.submit(job, machine, job.submit_us)
    cluster.advance(NEVER)
    ended = cluster.take_ended()
    assert sorted(e.key[1] for e in ended) == [job.number for job, _ in history.jobs]
    return sorted((e.key[1], *e.outcome[:4]) for e in ended)


@st.composite
def failures(draw: st.DrawFn, of: st.SearchStrategy[History]) -> History:
    """A history in which machines go down, for short and for long, several at a time perhaps."""
    history = draw(of)
    outages = []
    for machine in range(len(history.machines)):
        down_until = 0
        for _ in range(draw(st.integers(0, 2))):
            begin = down_until + draw(st.integers(1, 30))
            down_until = begin + draw(st.integers(1, 20))
            outages.append(MachineOutage(machine, begin, down_until))
    history.outages = tuple(outages)
    return history


@st.composite
def reserved(draw: st.DrawFn, of: st.SearchStrategy[History]) -> History:
    """A history with reservations for maintenance, or for users."""
    history = draw(of)
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, 40))
        machine = draw(st.sampled_from(history.machines))
        cpus = draw(st.none() | st.integers(1, machine.cpus))
        end_s = (begin + draw(st.integers(1, 30))) / SECOND_US
        users = draw(st.sampled_from(((), (1,), (2,))))
        name = (str(machine.name),)
        history.reservations += (Reservation(begin / SECOND_US, end_s, name, cpus, users),)
    return history
