"""The availability profile against one that asks every instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.time import NEVER
from grid.policies.profile import (
    AvailabilityProfile,
    earliest,
    earliest_start,
    forget,
    release,
    reserve,
    set_free,
)
from tests.examples import examples

CPUS = (4, 2)
COPIES = (1, 2)


@dataclass
class SlowProfile:
    """Reservations as a list: (machine, start, end, processors, license mask)."""

    held: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def fits(self, machine: int, processors: int, licenses: int, at: int) -> bool:
        now = [one for one in self.held if one[1] <= at < one[2]]
        if processors > CPUS[machine] - sum(one[3] for one in now if one[0] == machine):
            return False
        for number, copies in enumerate(COPIES):
            holders = {one[0] for one in now if one[4] >> number & 1} | {machine}
            if licenses >> number & 1 and len(holders) > copies:
                return False
        return True

    def earliest(self, machine: int, processors: int, licenses: int, length: int, now: int) -> int:
        # A job can become able to start only where a reservation ends.
        ends = sorted({now} | {one[2] for one in self.held if one[2] > now})
        for start in ends:
            times = [start] + [one[1] for one in self.held if start < one[1] < start + length]
            if all(self.fits(machine, processors, licenses, at) for at in times):
                return start
        return NEVER


def all_free(cpus: tuple[int, ...], copies: tuple[int, ...] = ()) -> AvailabilityProfile:
    machines, licenses = len(cpus), len(copies)
    rows = machines + licenses + machines * licenses
    time, level = np.zeros((2, rows, 64), np.int64)
    profile = AvailabilityProfile(time, level, np.zeros(rows, np.int64), machines, licenses)
    set_free(profile, np.array(cpus), np.array(copies, np.int64), 0)
    return profile


reservations = st.tuples(
    st.sampled_from(range(len(CPUS))),
    st.integers(1, max(CPUS)),
    st.integers(0, 2 ** len(COPIES) - 1),
    st.integers(1, 12),
    st.integers(0, 15),
    st.booleans(),
)


def steps(profile: AvailabilityProfile, row: int) -> list[tuple[int, int]]:
    length = profile.length[row]
    return list(
        zip(profile.time[row, :length].tolist(), profile.level[row, :length].tolist(), strict=True)
    )


@given(st.lists(reservations, max_size=25))
@settings(max_examples=examples(90), deadline=None)
def test_every_answer_is_that_of_the_slow_profile(
    wanted: list[tuple[int, int, int, int, int, bool]],
) -> None:
    profile = all_free(CPUS, COPIES)
    slow = SlowProfile()
    for machine, processors, licenses, length, not_before, gives_back in wanted:
        if gives_back and slow.held:
            # The first half of an old reservation is used, the rest is given back.
            old, start, end, held, mask = slow.held.pop(0)
            middle = (start + end) // 2
            release(profile, old, middle, end, held, mask)
            if start < middle:
                slow.held.append((old, start, middle, held, mask))
        found = earliest_start(profile, machine, processors, licenses, length, not_before, NEVER)
        assert found == slow.earliest(machine, processors, licenses, length, not_before)
        if found == NEVER:
            assert processors > CPUS[machine]
            continue
        assert (
            earliest_start(profile, machine, processors, licenses, length, not_before, found)
            == NEVER
        )
        reserve(profile, machine, found, found + length, processors, licenses)
        slow.held.append((machine, found, found + length, processors, licenses))
    for machine in range(len(CPUS)):
        levels = steps(profile, machine)
        assert all(one[1] != other[1] for one, other in pairwise(levels))
        assert all(one[0] < other[0] for one, other in pairwise(levels))


@given(st.lists(reservations, max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_all_given_back_is_as_before(
    wanted: list[tuple[int, int, int, int, int, bool]],
) -> None:
    profile = all_free(CPUS, COPIES)
    made = []
    for machine, processors, licenses, length, not_before, _ in wanted:
        start = earliest_start(profile, machine, processors, licenses, length, not_before, NEVER)
        if start < NEVER:
            reserve(profile, machine, start, start + length, processors, licenses)
            made.append((machine, start, start + length, processors, licenses))
    for one in made:
        release(profile, *one)
    fresh = all_free(CPUS, COPIES)
    for row in range(len(fresh.length)):
        assert steps(profile, row) == steps(fresh, row)


@given(st.lists(reservations, max_size=12), st.integers(1, 30))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_over_can_be_forgotten(
    wanted: list[tuple[int, int, int, int, int, bool]], now: int
) -> None:
    profile = all_free(CPUS, COPIES)
    slow = SlowProfile()
    for machine, processors, licenses, length, not_before, _ in wanted:
        start = earliest_start(profile, machine, processors, licenses, length, not_before, NEVER)
        if start < NEVER:
            reserve(profile, machine, start, start + length, processors, licenses)
            slow.held.append((machine, start, start + length, processors, licenses))
    forget(profile, now)
    for machine in range(len(CPUS)):
        assert (profile.time[machine, 0] <= now) and (
            profile.length[machine] == 1 or profile.time[machine, 1] > now
        )
        for licenses in range(2 ** len(COPIES)):
            found = earliest_start(profile, machine, 2, licenses, 3, now, NEVER)
            assert found == slow.earliest(machine, 2, licenses, 3, now)


def test_a_reservation_moves_forward_over_itself() -> None:
    """Two of four CPUs are held until 10, the job's own reservation is [10, 20) with four: with
    two of them given back at 4, it could start at 4, for its own CPUs are free from 10 on."""
    profile = all_free((4,))
    reserve(profile, 0, 0, 10, 2, 0)
    reserve(profile, 0, 10, 20, 4, 0)
    row = (profile.time[0], profile.level[0])
    assert earliest(*row, profile.length[0], 4, 10, 0, 10, 10) == NEVER
    release(profile, 0, 4, 10, 2, 0)
    assert earliest(*row, profile.length[0], 4, 10, 0, 10, 10) == 4
    # Without its own CPUs it would not be before the end of its reservation.
    assert earliest(*row, profile.length[0], 4, 10, 0, NEVER, NEVER) == 20


def test_a_copy_is_shared_on_a_machine_and_not_between_machines() -> None:
    profile = all_free((4, 4), (1,))
    reserve(profile, 0, 5, 15, 1, 1)
    assert earliest_start(profile, 0, 1, 1, 8, 0, NEVER) == 0
    assert earliest_start(profile, 1, 1, 1, 5, 0, NEVER) == 0
    assert earliest_start(profile, 1, 1, 1, 6, 0, NEVER) == 15
    assert earliest_start(profile, 1, 1, 0, 6, 0, NEVER) == 0
