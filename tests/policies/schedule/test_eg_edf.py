"""EG-EDF and tabu search by hand, each case named after the section of the paper that has it."""

from __future__ import annotations

import numpy as np
import pytest

from grid.model.arrays import Ints
from grid.model.time import NEVER
from grid.policies.schedule.search import figures, improve, is_barred, place, weight
from grid.policies.schedule.timetable import BARRED, UP
from tests.policies.schedule.hand_made import HandMade


def two_gaps() -> HandMade:
    """A slow machine and a fast one, each with one idle CPU in front of a job that needs two.

    slow  a a a a a a a a a a | b b b b b       fast  c c c c c | d d
          - - - - - - - - - -   b b b b b             - - - - -   d d
          0                  20        25             0       10  15
    """
    made = HandMade((2, 500.0), (2, 1000.0))
    made.planned(0, "a", 1, 10)
    made.planned(0, "b", 2, 2, deadline=26)
    made.planned(1, "c", 1, 10)
    made.planned(1, "d", 2, 5, deadline=40)
    assert made.drawn() == {"a": (0, 0, 20), "b": (0, 20, 24), "c": (1, 0, 10), "d": (1, 10, 15)}
    return made


def test_section_3_2_of_several_gaps_the_one_of_the_highest_weight() -> None:
    made = two_gaps()
    # On the slow machine 3 to 15, late; on the fast one 3 to 9, in time: weights 0 and 1/4.
    made.placed(3, "new", 1, 6, deadline=10)
    assert made.drawn() == two_gaps().drawn() | {"new": (1, 3, 9)}
    assert weight(24, 24, 4, 4) == 0.0
    assert weight(24, 24, 4, 5) == 0.25


def test_section_3_2_of_gaps_of_equal_weight_and_start_the_earliest_end() -> None:
    made = two_gaps()
    made.placed(3, "new", 1, 6, deadline=NEVER)
    assert made.drawn()["new"] == (1, 3, 9)


def test_section_3_2_a_single_gap_is_taken_even_if_the_job_is_late_there() -> None:
    made = two_gaps()
    # The gap of the fast machine ends at 10; that of the slow one has room from 3 to 19.
    made.placed(3, "new", 1, 8, deadline=12)
    assert made.drawn() == two_gaps().drawn() | {"new": (0, 3, 19)}


def test_section_3_2_without_a_gap_earliest_deadline_first_on_each_machine() -> None:
    made = two_gaps()
    # On the slow machine it comes behind b, 24 to 32: late, the makespan grows from 24 to 32. On
    # the fast one it comes in front of d: 10 to 14, d from 14 to 19, all in time.
    made.placed(3, "new", 2, 4, deadline=30)
    assert made.drawn() == two_gaps().drawn() | {"new": (1, 10, 14), "d": (1, 14, 19)}
    assert weight(24, 32, 4, 4) == pytest.approx(-1 / 3)
    assert weight(24, 24, 4, 5) == 0.25


def test_section_3_2_idle_cpus_that_nothing_waits_for_are_no_gap() -> None:
    made = HandMade((2, 500.0), (2, 1000.0))
    made.planned(0, "a", 1, 30)
    # Beside a it would fit from 3 on; but there is no gap, and the idle machine is faster.
    made.placed(3, "new", 1, 6, deadline=NEVER)
    assert made.drawn() == {"a": (0, 0, 60), "new": (1, 3, 9)}


def test_section_4_1_without_contention_a_job_is_executed_at_once_on_an_available_machine() -> None:
    made = HandMade((1, 500.0), (1, 1000.0), (1, 1000.0))
    made.planned(1, "a", 1, 5)
    made.planned(2, "b", 1, 200)
    # Behind a it would be done at 11, but the slow machine is idle; neither changes the makespan.
    made.placed(3, "new", 1, 6, deadline=50)
    assert made.drawn()["new"] == (0, 3, 15)


def test_section_3_2_the_first_job_goes_where_it_ends_first() -> None:
    made = HandMade((2, 500.0), (2, 1000.0), (1, 2000.0))
    made.placed(3, "new", 2, 6, deadline=NEVER)
    assert made.drawn() == {"new": (1, 3, 9)}


def test_equation_1() -> None:
    assert weight(100, 90, 10, 9) == 0.0
    assert weight(100, 110, 10, 12) == pytest.approx(0.1)
    # Without a job in time before, and without a makespan, the divisor is 1.
    assert weight(100, 100, 0, 1) == 1.0
    assert weight(0, 5, 0, 1) == -4.0


def test_a_job_that_no_machine_can_run_is_not_placed() -> None:
    made = two_gaps()
    assert not place(made.schedule, made.view(3), made.job("wide", 3, 1, NEVER))
    made.schedule.machines[UP, 1] = 0
    made.placed(3, "new", 1, 6, deadline=10)
    assert made.drawn()["new"] == (0, 3, 15)


def late_job(deadline: int, deadline_of_b: int = 20) -> HandMade:
    """x waits behind two jobs, though there is a gap for it on the other machine.

    m0  a a a a | b b b b | x x        m1  c c c c c c c c | d d d d
        0       10        20  25           - - - - - - - -   d d d d
                                           0               20      30
    """
    made = HandMade((1, 1000.0), (2, 1000.0))
    made.planned(0, "a", 1, 10)
    made.planned(0, "b", 1, 10, deadline_of_b)
    made.planned(0, "x", 1, 5, deadline)
    made.planned(1, "c", 1, 20)
    made.planned(1, "d", 2, 10)
    assert made.drawn()["x"] == (0, 20, 25)
    return made


def tabu_list(limit: int) -> Ints:
    return np.array([0, limit])


def barred(made: HandMade, tabu: Ints) -> list[str]:
    return [name for slot, name in enumerate(made.names) if is_barred(made.schedule, tabu, slot)]


def test_section_3_3_the_last_job_of_the_machine_with_most_late_jobs_moves_into_a_gap() -> None:
    made = late_job(deadline=12)
    assert figures(made.schedule, 0) == (30, 4)
    assert improve(made.schedule, made.view(0), tabu_list(10), 1) == 1
    assert made.drawn() == late_job(12).drawn() | {"x": (1, 0, 5)}
    assert figures(made.schedule, 0) == (30, 5)


def test_section_3_3_a_move_of_weight_zero_is_not_accepted() -> None:
    made = late_job(deadline=4)
    # It would end at 5, late there as well. Then x is in the list, and nobody else is late.
    assert improve(made.schedule, made.view(0), tabu_list(10), 50) == 1
    assert made.drawn() == late_job(4).drawn()


def test_section_3_3_the_search_ends_when_no_late_job_is_outside_the_list() -> None:
    made = late_job(deadline=30)
    assert improve(made.schedule, made.view(0), tabu_list(10), 50) == 0


def test_section_3_3_that_those_behind_it_move_up_can_be_worth_a_move() -> None:
    made = late_job(deadline=15, deadline_of_b=NEVER)
    made.schedule.slots[BARRED, made.names.index("x")] = 1
    made.planned(1, "y", 1, 1, deadline=1)
    # x is barred, so b is the last job of m0. It is in time anywhere, and without it x is.
    improve(made.schedule, made.view(0), tabu_list(10), 2)
    assert made.drawn()["b"] == (1, 0, 10)
    assert made.drawn()["x"] == (0, 10, 15)


def test_section_3_3_the_oldest_leaves_a_list_that_is_full() -> None:
    made = late_job(deadline=4, deadline_of_b=5)
    # x is barred, then b in its stead, then x again, until the limit of iterations.
    tabu = tabu_list(1)
    assert improve(made.schedule, made.view(0), tabu, 7) == 7
    assert barred(made, tabu) == ["x"]
    assert made.drawn() == late_job(4, 5).drawn()


def test_section_3_3_then_the_machine_with_the_second_most_late_jobs() -> None:
    made = late_job(deadline=4, deadline_of_b=5)
    made.planned(1, "y", 1, 1, deadline=29)
    tabu = tabu_list(10)
    assert improve(made.schedule, made.view(0), tabu, 2) == 2
    assert barred(made, tabu) == ["b", "x"]
    assert improve(made.schedule, made.view(0), tabu, 1) == 1
    assert barred(made, tabu) == ["b", "x", "y"]
