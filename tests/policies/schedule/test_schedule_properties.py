"""Random histories: the compiled schedule against the plain one, and what must always hold."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grid.policies.interface import ClusterView, Plan
from grid.policies.schedule.policy import ScheduleBased
from grid.policies.schedule.search import figures
from grid.policies.schedule.timetable import Schedule
from tests.examples import examples
from tests.policies.schedule.hand_made import planned
from tests.policies.schedule.histories import History, crowds, failures, histories, play, reserved
from tests.policies.schedule.plain_schedule import PlainPolicy


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


HISTORIES = st.one_of(histories(), crowds())
HISTORIES |= failures(HISTORIES) | reserved(HISTORIES)
SEARCH = st.sampled_from([{}, {"iterations": 2, "tabu_list": 3}, {"iterations": 5}])
OVERRUN = st.sampled_from(["kill", "extend"])


@settings(max_examples=examples(90), deadline=None)
@given(HISTORIES, SEARCH, st.booleans(), st.booleans(), OVERRUN)
def test_the_compiled_policy_plans_what_the_plain_one_plans(
    history: History, search: dict[str, int], moves: bool, wide: bool, overrun: str
) -> None:
    play(history, Both(**search, moves=moves, wide_gaps=wide), overrun)


@settings(max_examples=20, deadline=None)
@given(st.one_of(histories(exact=True), crowds(exact=True)), SEARCH)
def test_with_exact_run_times_repair_moves_no_job(history: History, search: dict[str, int]) -> None:
    assert play(history, ScheduleBased(**search, moves=True)) == play(
        history, ScheduleBased(**search, moves=False)
    )


class Compared:
    """Tabu, beside EG-EDF from the same schedule at every instant."""

    def __init__(self, iterations: int, tabu_list: int) -> None:
        self.tabu = ScheduleBased(iterations, tabu_list)

    def plan(self, view: ClusterView, now: int) -> Plan:
        eg_edf = deepcopy(self.tabu)
        eg_edf.iterations = 0
        eg_edf.plan(view, now)
        plan = self.tabu.plan(view, now)
        assert objective(self.tabu.schedule, now) >= objective(eg_edf.schedule, now)
        return plan


def objective(schedule: Schedule, now: int) -> tuple[float, int]:
    """What a move of positive weight raises: jobs in time per makespan; then a short makespan."""
    makespan, in_time = figures(schedule, now)
    return in_time / max(makespan, 1), -makespan


@settings(max_examples=30, deadline=None)
@given(HISTORIES, st.integers(1, 40), st.integers(1, 5), OVERRUN)
def test_tabu_is_never_worse_than_eg_edf_on_what_it_optimises(
    history: History, iterations: int, tabu_list: int, overrun: str
) -> None:
    play(history, Compared(iterations, tabu_list), overrun)
