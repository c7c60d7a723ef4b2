"""The checker of other schedulers' decisions: what it explains, and what it does not let pass."""

from __future__ import annotations

import numpy as np
import pytest

from grid.model.job_table import JobTable
from grid.policies.queue import easy, fcfs
from tests.policies.batsim.asked_functions import drawn_jobs, schedule
from tests.runtime.explained_starts import (
    FORGOTTEN,
    SCATTERED,
    UNEXPLAINED,
    Heard,
    State,
    backfilling,
    in_turn,
    reasons,
)


def jobs_of(*rows: tuple[int, int]) -> JobTable:
    """Jobs of (processors, estimate), submitted at once."""
    processors, estimate = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    count = len(rows)
    return JobTable.of(
        number=np.arange(1, count + 1),
        submit_us=np.zeros(count, np.int64),
        processors=processors,
        estimate_us=estimate,
        run_us=estimate,
    )


def came(*rows: int) -> list[tuple[str, int]]:
    return [("submit", row) for row in rows]


def of(jobs: JobTable, *said: Heard) -> list[tuple[int, int, str]]:
    return list(reasons(jobs, 8, list(said), backfilling))


# Two jobs hold the first and the last two of eight processors, and the one between them has ended.
APART = [Heard(0, came(0, 1, 2), [(0, 0b11), (1, 0b0011_1100), (2, 0b1100_0000)])]


def test_what_ours_would_do_needs_no_reason() -> None:
    jobs = jobs_of((2, 9), (4, 5), (2, 9), (4, 3))
    assert not of(jobs, *APART, Heard(5, [("end", 1), *came(3)], [(3, 0b0011_1100)]))


def test_a_job_that_waits_while_it_fits_has_no_reason() -> None:
    jobs = jobs_of((2, 9), (4, 5), (2, 9), (4, 3))
    found = of(jobs, *APART, Heard(5, [("end", 1)], []), Heard(6, came(3), []))
    assert found == [(6, 3, UNEXPLAINED)]


def test_a_job_waits_for_processors_in_a_row() -> None:
    jobs = jobs_of((2, 5), (4, 9), (2, 5), (4, 3))
    both = [("end", 0), ("end", 2), *came(3)]
    assert of(jobs, *APART, Heard(5, both, [])) == [(5, 3, SCATTERED)]


def test_a_job_behind_that_delays_the_first_has_no_reason() -> None:
    """It takes half of what the first job gets at 9, and more time than that."""
    jobs = jobs_of((2, 9), (4, 5), (2, 9), (8, 3), (4, 50))
    late = Heard(5, [("end", 1), *came(3, 4)], [(4, 0b0011_1100)])
    # From the third to the sixth it lies between two that run: there pybatsim forgets.
    assert of(jobs, *APART, late) == [(5, 4, FORGOTTEN)]
    jobs = jobs_of((4, 9), (4, 5), (8, 3), (4, 50))
    first = Heard(0, came(0, 1), [(0, 0b1111), (1, 0b1111_0000)])
    late = Heard(5, [("end", 1), *came(2, 3)], [(3, 0b1111_0000)])
    assert of(jobs, first, late) == [(5, 3, UNEXPLAINED)]


@pytest.mark.parametrize("decide", [in_turn, backfilling])
def test_plain_decisions_are_those_of_our_policies(decide: object) -> None:
    """Where nothing falls together, decisions after each event are those at each instant."""
    jobs = drawn_jobs(150, 2)
    jobs.submit_us[:] = np.arange(150) * 29_000_000
    jobs.run_us[:] = jobs.run_us // 1_000_000 * 1_000_000 + 1 + 2 * np.arange(150)
    jobs.estimate_us[:] = jobs.run_us + np.arange(150) * 1_000_003
    policy = fcfs() if decide is in_turn else easy()
    starts, ends, _ = schedule(policy, jobs)
    events = sorted(
        [(int(at), 1, "submit", row) for row, at in enumerate(jobs.submit_us)]
        + [(at, 0, "end", row) for row, at in enumerate(ends)]
    )
    state = State(jobs, 16)
    for at, _, kind, row in events:
        state.now = at
        state.hear((kind, row))
        ours = decide(state)  # type: ignore[operator]
        assert ours == [one for one in state.waiting if starts[one] == at]
        for one in ours:
            free, width = state.free, state.width(one)
            mask = 0
            while mask.bit_count() < width:
                mask |= free & -free
                free &= free - 1
            state.start(one, mask)
