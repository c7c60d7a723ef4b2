"""One machine at a time: gaps against every instant tried, and what moves when a job leaves."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.time import NEVER
from tests.examples import examples
from tests.policies.compiled_parts import earliest_gap, insert_in_gap, take_out
from tests.policies.schedule.hand_made import HandMade

CPUS = 4
JOBS = st.lists(st.tuples(st.integers(1, CPUS), st.integers(1, 9)), min_size=1, max_size=12)


def machine(jobs: list[tuple[int, int]]) -> HandMade:
    """One machine with these jobs, (processors, length), planned in this order."""
    made = HandMade((CPUS, 1000.0))
    for number, (processors, length) in enumerate(jobs):
        made.planned(0, str(number), processors, length)
    return made


def idle(made: HandMade, jobs: list[tuple[int, int]], time: int) -> int:
    """CPUs that no job holds at that time."""
    drawn = made.drawn().items()
    return CPUS - sum(jobs[int(name)][0] for name, (_, b, e) in drawn if b <= time < e)


@settings(max_examples=examples(90), deadline=None)
@given(JOBS, st.integers(1, CPUS), st.integers(1, 15), st.integers(0, 20), st.integers(0, 60))
def test_the_earliest_gap_is_the_first_instant_from_which_it_fits(
    jobs: list[tuple[int, int]], processors: int, length: int, now: int, latest_end: int
) -> None:
    made = machine(jobs)
    plan = made.schedule
    found = earliest_gap(
        plan.edge_us[0], plan.edge_free[0], plan.edges[0], processors, length, now, latest_end
    )
    end = int(plan.completion_us[0])
    tried = [
        start
        for start in range(now, min(latest_end, end) - length + 1)
        if all(idle(made, jobs, t) >= processors for t in range(start, start + length))
    ]
    # The profile is that of a machine with a last job; behind its end, all is idle for ever.
    if latest_end <= end:
        assert found == (tried[0] if tried else NEVER)
    elif tried:
        assert found == tried[0]


@settings(max_examples=examples(60), deadline=None)
@given(JOBS, st.integers(1, CPUS), st.integers(1, 6))
def test_a_job_in_a_gap_moves_no_other(
    jobs: list[tuple[int, int]], processors: int, length: int
) -> None:
    made = machine(jobs)
    before, plan = made.drawn(), made.schedule
    last_start = int(plan.start_us[0, plan.planned[0] - 1])
    start = earliest_gap(
        plan.edge_us[0], plan.edge_free[0], plan.edges[0], processors, length, 0, last_start
    )
    if start != NEVER:
        insert_in_gap(plan, made.jobs, made.job("new", processors, length), 0, start, length)
        assert made.drawn() == before | {"new": (0, start, start + length)}


@settings(max_examples=examples(60), deadline=None)
@given(JOBS, st.data())
def test_when_a_job_leaves_or_ends_early_no_job_starts_later(
    jobs: list[tuple[int, int]], data: st.DataObject
) -> None:
    made = machine(jobs)
    before = made.drawn()
    leaving = data.draw(st.sampled_from(sorted(before)))
    now = data.draw(st.integers(0, min(end for _, _, end in before.values()) - 1))
    take_out(made.schedule, made.names.index(leaving), now)
    after = made.drawn()
    assert sorted(after) == sorted(set(before) - {leaving})
    for name, (_, start, end) in after.items():
        assert start <= before[name][1]
        assert end - start == before[name][2] - before[name][1]
