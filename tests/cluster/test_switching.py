"""Machines that are switched off: when they are off, and which starts wait for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.cluster import ClusterState
from grid.model.job import Job
from grid.model.job_results import direct_results
from grid.model.platform import Cluster, Machine, MachineOutage, SwitchOff
from grid.model.records import ClusterHistory
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import Plan
from grid.results.energy import cluster_energy
from grid.results.machines import ClusterEntry, Directory
from tests.cluster.clusters import Timed, general, general_cluster, job, table
from tests.examples import examples

S = SECOND_US
OFF = SwitchOff(0.000005, 0.00001)
"""After 5 microseconds; it boots for 10."""


def test_machines_that_are_never_switched_off_are_not_logged() -> None:
    """A boot continues without its job, and the next job waits for the rest of it."""
    machines = (Machine("a", 1), Machine("b", 1, switch_off=OFF))
    plans = {100: Plan(start=[(0, 1), (1, 0)]), 104: Plan(preempt=[0]), 107: Plan(start=[(0, 1)])}
    cluster = general_cluster(Cluster("c", machines), Timed(plans))
    for number in range(2):
        cluster.submit(job(number, 100, 1, 4, 4), -1, 100)
    cluster.advance(NEVER)
    levels = cluster.take_history()
    assert levels is not None and levels.held is not None
    assert [column.tolist() for column in levels.held] == [[1], [100], [110], [114]]
    assert cluster.figures()["boots"] == 1


def test_preempted_while_its_machine_boots() -> None:
    """At 8,000 the machine has been off for 2,000 (idle from 1,000 on). It boots until 11,000, with
    the job until 9,000 and again from 10,000 on; then the job takes 1,000."""
    machine = Machine("m", 1, 100.0, switch_off=SwitchOff(0.005, 0.003))
    plans = {0: Plan(start=[(0, 0)]), 8_000: Plan(start=[(0, 0)]), 9_000: Plan(preempt=[0])}
    plans[10_000] = Plan(start=[(0, 0)])
    cluster = general_cluster(Cluster("c", (machine,)), Timed(plans))
    for number, submit in enumerate((0, 8_000)):
        one = job(number, submit, 1, 1_000, 1_000, reference_mips=100.0)
        cluster.submit(one, -1, submit)
    cluster.advance(NEVER)
    first, second = (outcome for _, outcome in sorted(cluster.take_ended()))
    assert (first.start_us, first.end_us, first.lost_us) == (0, 1_000, 0)
    assert (second.start_us, second.end_us) == (8_000, 12_000)
    assert (second.lost_us, second.held_us) == (2_000, 3_000)
    assert cluster.figures()["boots"] == 1


def test_an_estimate_counts_from_when_the_machine_has_booted() -> None:
    machine = Machine("m", 1, switch_off=SwitchOff(5, 100))
    cluster = general(Cluster("c", (machine,)), "easy")
    cluster.submit(job(0, 20 * S, 1, 10 * S, 10 * S), -1, 20 * S)
    cluster.advance(21 * S)
    assert cluster.horizon() == 130 * S
    cluster.advance(NEVER)
    ((_, outcome),) = cluster.take_ended()
    assert outcome.state == 3


# Whatever happens, joules are those of a count second by second.


@st.composite
def machines(draw: st.DrawFn) -> tuple[Machine, ...]:
    watts = st.sampled_from((0.0, 1.0, 3.0, 10.0))
    return tuple(
        Machine(
            f"m{number}",
            draw(st.integers(1, 3)),
            watts_idle=draw(watts),
            watts_busy=draw(watts),
            switch_off=draw(
                st.none() | st.builds(SwitchOff, st.integers(0, 4), st.integers(0, 3), watts, watts)
            ),
        )
        for number in range(draw(st.integers(1, 3)))
    )


@st.composite
def arriving(draw: st.DrawFn) -> list[Job]:
    jobs, now = [], 0
    for number in range(draw(st.integers(1, 8))):
        now += draw(st.integers(0, 6)) * S
        run = draw(st.integers(1, 5)) * S
        jobs.append(job(number, now, 1, run, run))
    return jobs


def slow_joules(
    machine: Machine, down: list[tuple[int, int]], runs: list[tuple[int, int, int]], end: int
) -> float:
    """What the machine draws from 0 to `end`, second by second.

    `runs` of jobs are their start, their end and their CPUs; all are in seconds.
    """
    joules, idle_since, ready = 0.0, 0, 0
    after = machine.switch_off.after_us // S if machine.switch_off else end + 1
    for now in range(end):
        held = sum(cpus for start, stop, cpus in runs if start <= now < stop)
        if any(start <= now < stop for start, stop in down):
            idle_since, ready = now + 1, 0
            continue
        off = machine.switch_off
        if held and off is not None:
            if now - idle_since > after:
                ready = now + off.boot_us // S
            idle_since = now + 1
        if off is not None and now < ready:
            joules += machine.cpus * off.watts_boot
            idle_since = now + 1
        elif off is not None and not held and now - idle_since >= after:
            joules += machine.cpus * off.watts_off
        else:
            joules += held * machine.watts_busy + (machine.cpus - held) * machine.watts_idle
    return joules


def played(platform: Cluster, outages: tuple[MachineOutage, ...], jobs: list[Job]) -> ClusterState:
    from grid.cluster import make_cluster
    from grid.policies.registry import make_policy

    cluster = make_cluster(platform, make_policy("fcfs", {}), None, outages, pool=False)
    cluster.submit_rows(table(jobs))
    cluster.advance(NEVER)
    return cluster


@given(machines=machines(), jobs=arriving(), down=st.none() | st.integers(1, 20))
@settings(max_examples=examples(60))
def test_joules_are_those_of_a_count_second_by_second(
    machines: tuple[Machine, ...], jobs: list[Job], down: int | None
) -> None:
    """Machine 0 may go down for 3 s; jobs that it stops then are left out, with their cluster."""
    outages = () if down is None else (MachineOutage(0, down * S, (down + 3) * S),)
    cluster = played(Cluster("c", machines), outages, jobs)
    rows, outcome = cluster.take_ended_rows()
    if outcome.preemptions.any():
        return
    cpus = tuple(machine.cpus for machine in machines)
    directory = Directory(("v",), (ClusterEntry(0, "c", cpus, False, machines, outages),))
    levels = cluster.take_history()
    assert levels is not None
    results = direct_results(table(jobs).take(rows), 0, 0, outcome)
    found = cluster_energy(results, directory, [ClusterHistory(0, sum(cpus), levels)])
    if not any(machine.has_watts for machine in machines):
        assert np.isnan(found).all()
        return
    first, end = min(one.submit_us for one in jobs), int(outcome.end_us.max())
    expected = 0.0
    for number, machine in enumerate(machines):
        mine = outcome.machine == number
        starts, stops = outcome.start_us[mine] // S, outcome.end_us[mine] // S
        runs = [(int(a), int(b), 1) for a, b in zip(starts, stops, strict=True)]
        times = [(one.start_us // S, one.end_us // S) for one in outages if one.machine == number]
        until_end = slow_joules(machine, times, runs, end // S)
        expected += until_end - slow_joules(machine, times, runs, first // S)
    assert sum(float(joules[0]) for joules in found) == pytest.approx(expected, abs=1e-6)
