"""Random histories: the compiled schedule against the plain one, and what must always hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_schedule import PlainPolicy

from grid.cluster.space_shared import SpaceSharedCluster
from grid.model.job import Job
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER
from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule import policy as policy_module
from grid.policies.schedule.arrays import JOBS, LATE, MAKESPAN_US, ORIGIN_US, Jobs, Schedule
from grid.policies.schedule.policy import ScheduleBased


@dataclass
class History:
    """Machines, and jobs that come to them, with the machine each is bound to."""

    machines: tuple[Machine, ...]
    jobs: list[tuple[Job, int]]


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
            number,
            "vo",
            0,
            now,
            draw(st.integers(1, 6)),
            estimate,
            run,
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
        job = Job(number, "vo", 0, submit, processors, estimate, run, deadline_us=due)
        jobs.append((job, -1))
    return History(machines, jobs)


def play(history: History, policy: Any, overrun: str = "kill") -> list[tuple[int, ...]]:
    """(number, machine, state, start, end) of each job."""
    cluster = SpaceSharedCluster(Cluster("c", history.machines, overrun=overrun), policy)
    for job, machine in history.jobs:
        cluster.submit(job, machine, job.submit_us)
    cluster.advance(NEVER)
    ended = cluster.take_ended()
    assert sorted(e.key[1] for e in ended) == [job.number for job, _ in history.jobs]
    return sorted((e.key[1], e.machine, e.state, e.start_us, e.end_us) for e in ended)


class Both:
    """The compiled policy, watched at every instant by the plain one."""

    def __init__(self, **settings: Any) -> None:
        self.compiled, self.plain = ScheduleBased(**settings), PlainPolicy(**settings)

    def plan(self, view: ClusterView, now: int) -> Plan:
        plan, expected = self.compiled.plan(view, now), self.plain.plan(view, now)
        assert sorted(plan.start) == sorted(expected.start)
        assert sorted(plan.reject) == sorted(expected.reject)
        assert self.plain.schedule is not None
        for machine, entries in enumerate(self.plain.schedule.all_timed(now)):
            assert sorted(planned(self.compiled.schedule, machine)) == sorted(entries)
        return plan


def planned(schedule: Schedule, machine: int) -> list[tuple[int, int, int]]:
    """(slot, start, end) of all jobs of a machine, in order."""
    count = schedule.planned[machine]
    columns = (schedule.slot, schedule.start_us, schedule.end_us)
    return list(zip(*(column[machine, :count].tolist() for column in columns), strict=True))


SEARCH = st.sampled_from([{}, {"iterations": 2, "tabu_list": 3}, {"iterations": 5}])
OVERRUN = st.sampled_from(["kill", "extend"])


@settings(max_examples=100, deadline=None)
@given(histories(), SEARCH, st.booleans(), OVERRUN)
def test_the_compiled_policy_plans_what_the_plain_one_plans(
    history: History, search: dict[str, int], moves: bool, overrun: str
) -> None:
    play(history, Both(**search, moves=moves), overrun)


@settings(max_examples=25, deadline=None)
@given(crowds(), SEARCH, OVERRUN)
def test_the_compiled_search_moves_whom_the_plain_one_moves(
    history: History, search: dict[str, int], overrun: str
) -> None:
    play(history, Both(**search), overrun)


@settings(max_examples=50, deadline=None)
@given(st.one_of(histories(), crowds()), SEARCH)
def test_a_plan_made_in_pieces_is_the_same(history: History, search: dict[str, int]) -> None:
    whole = play(history, ScheduleBased(**search))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy_module, "MOVES_AT_ONCE", 1)
        assert play(history, ScheduleBased(**search)) == whole


class Checked:
    """The policy, with everything that it keeps incrementally computed anew at every instant."""

    def __init__(self, policy: ScheduleBased) -> None:
        self.policy = policy

    def plan(self, view: ClusterView, now: int) -> Plan:
        plan = self.policy.plan(view, now)
        check(self.policy.schedule, self.policy.jobs, view, now)
        return plan


def check(schedule: Schedule, jobs: Jobs, view: ClusterView, now: int) -> None:
    """Nobody is over its CPUs, everybody is planned once, and all figures are right."""
    slots, late, makespan = [], 0, 0
    for machine, cpus in enumerate(view.machines.cpus.tolist()):
        entries = planned(schedule, machine)
        running = int(schedule.running[machine])
        slots += [slot for slot, _, _ in entries]
        starts = [start for _, start, _ in entries]
        assert starts == sorted(starts)
        assert all(start <= now for start in starts[:running])
        assert all(start > now for start in starts[running:])
        instants = sorted({now, *starts[running:], *(end for _, _, end in entries)})
        for time in instants:
            used = sum(int(view.jobs.processors[s]) for s, b, e in entries if b <= time < e)
            assert used <= cpus
            assert idle(schedule, machine, time) == cpus - used
        lates = [end > view.jobs.deadline_us[slot] for slot, _, end in entries]
        assert schedule.late[machine] == sum(lates[running:])
        assert schedule.completion_us[machine] == max((e for _, _, e in entries), default=0)
        late += sum(lates)
        makespan = max(makespan, int(schedule.completion_us[machine]))
    assert len(slots) == len(set(slots)) == schedule.totals[JOBS]
    assert schedule.totals[LATE] == late
    assert schedule.totals[MAKESPAN_US] == makespan
    assert all(jobs.machine[slot] >= 0 for slot in slots)


def idle(schedule: Schedule, machine: int, time: int) -> int:
    """CPUs idle at that time by the machine's profile."""
    edges = int(schedule.edges[machine])
    at = [e for e in range(edges) if schedule.edge_us[machine, e] <= time]
    return int(schedule.edge_free[machine, at[-1]] if at else schedule.cpus[machine])


@settings(max_examples=100, deadline=None)
@given(st.one_of(histories(), crowds()), SEARCH, st.booleans(), OVERRUN)
def test_every_figure_kept_is_the_figure_computed_anew(
    history: History, search: dict[str, int], moves: bool, overrun: str
) -> None:
    play(history, Checked(ScheduleBased(**search, moves=moves)), overrun)


@settings(max_examples=50, deadline=None)
@given(st.one_of(histories(exact=True), crowds(exact=True)), SEARCH)
def test_with_exact_run_times_repair_moves_nobody(history: History, search: dict[str, int]) -> None:
    assert play(history, ScheduleBased(**search, moves=True)) == play(
        history, ScheduleBased(**search, moves=False)
    )


class Compared:
    """EG-EDF and tabu on the very same jobs, of which all came at once."""

    def __init__(self, iterations: int) -> None:
        self.eg_edf, self.tabu = ScheduleBased(), ScheduleBased(iterations, 2)
        self.plans = 0

    def plan(self, view: ClusterView, now: int) -> Plan:
        plan = self.tabu.plan(view, now)
        self.plans += 1
        if self.plans == 1:
            self.eg_edf.plan(view, now)
            assert objective(self.tabu.schedule, now) >= objective(self.eg_edf.schedule, now)
        return plan


def objective(schedule: Schedule, now: int) -> tuple[float, int]:
    """What a move of positive weight raises: jobs in time per makespan; then a short makespan."""
    makespan = max(int(schedule.totals[MAKESPAN_US]), now) - int(schedule.totals[ORIGIN_US])
    in_time = int(schedule.totals[JOBS] - schedule.totals[LATE])
    return in_time / max(makespan, 1), -makespan


@settings(max_examples=100, deadline=None)
@given(st.one_of(histories(exact=True), crowds(exact=True)), st.integers(1, 40))
def test_tabu_is_never_worse_than_eg_edf_on_what_it_optimises(
    history: History, iterations: int
) -> None:
    at_once = [
        (Job(j.number, "vo", 0, 0, j.processors, j.estimate_us, j.run_us, 1000.0, j.deadline_us), m)
        for j, m in history.jobs
    ]
    play(History(history.machines, at_once), Compared(iterations))
