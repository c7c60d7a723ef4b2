"""Selections by load and at random: by hand, and frequencies of random draws."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from grid.kernel.entity import random_stream
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.plugins.registry import Plugins
from grid.model.resources import UNKNOWN, ResourceTable, resources_of
from grid.model.time import SECOND_US
from grid.protocol.assignments import Assignments
from grid.protocol.registry import SELECTIONS
from grid.protocol.selection import Choice, Selection
from grid.protocol.selection.by_load import expected_completion_s
from tests.protocol.selection.test_utility import SYSTEM, job, table

DRAWS = 4000


def made(name: str, **settings: object) -> Selection:
    selection: Selection = Plugins().make(SELECTIONS, name, settings)
    return selection


def three(*assigned: float) -> ResourceTable:
    """A VO of two machines of four CPUs, and VOs of one such machine each."""
    machine = Machine("m", 4)
    return table([[machine, machine], [machine], [machine]], list(assigned))


def counts(selection: Selection, grid: ResourceTable, field: str, own: int = 0) -> list[int]:
    rng = random_stream(7, "test")
    picked = [getattr(selection.choose(job(), grid, own, False, rng), field) for _ in range(DRAWS)]
    return np.bincount(picked, minlength=len(grid.columns)).tolist()


def evenly(found: list[int], rows: list[int]) -> bool:
    """Are the picks spread evenly over `rows`, within four standard deviations?"""
    share = 1 / len(rows)
    slack = 4 * (DRAWS * share * (1 - share)) ** 0.5
    aside = [count for row, count in enumerate(found) if row not in rows]
    return not any(aside) and all(abs(found[row] - DRAWS * share) <= slack for row in rows)


def test_least_loaded_takes_the_smallest_share_of_assigned_cpus() -> None:
    uneven = table([[Machine("m", 4)], [Machine("m", 2)], [Machine("m", 8)]], [3, 2, 7])
    choose = made("least_loaded").choose
    assert choose(job(), uneven, 1, False) == Choice(free=0, anywhere=0, own=1, others=0)
    # Two CPUs are free nowhere; the third machine is fuller by its share alone.
    assert choose(job(processors=2), uneven, 2, False) == Choice(-1, 0, 2, 0)
    assert choose(job(), uneven, 1, True) == Choice(-1, 1, 1, -1)


def test_ties_decide_among_equally_loaded_resources() -> None:
    grid = three(1, 1, 1, 1)
    assert made("least_loaded").choose(job(), grid, 2, False).free == 3
    assert made("least_loaded", ties="first").choose(job(), grid, 2, False).free == 0
    found = counts(made("least_loaded", ties="random"), grid, "free", own=2)
    assert evenly(found, [0, 1, 2, 3])
    assert evenly(counts(made("partial", ties="random"), three(1, 2, 4, 0), "free"), [0, 1, 3])


def test_by_utility_weighs_utility_and_load() -> None:
    """MacOS has utility 1 and Linux 0.5."""
    mac, linux = Machine("mac", 4, operating_system="macos"), Machine("linux", 4)
    weighing = made("least_loaded", by_utility=True).choose
    plain = made("least_loaded").choose
    # 1 / (1 + 3/4) against 0.5 / 1.
    assert weighing(job(SYSTEM), table([[mac], [linux]], [3, 0]), 0, False).free == 0
    assert plain(job(SYSTEM), table([[mac], [linux]], [3, 0]), 0, False).free == 1
    # 1 / (1 + 5/4) against 0.5 / 1.
    assert weighing(job(SYSTEM), table([[mac], [linux]], [5, 0]), 0, False).anywhere == 1


def test_random_draws_eligible_resources_with_equal_probability() -> None:
    grid = three(0, 4, UNKNOWN, 4)
    assert evenly(counts(made("random"), grid, "anywhere"), [0, 1, 2, 3])
    assert evenly(counts(made("random"), grid, "own"), [0, 1])
    rng = random_stream(1, "test")
    for _ in range(50):
        choice = made("random").choose(job(), grid, 0, False, rng)
        assert choice.free == (0 if choice.anywhere == 0 else -1)
        assert choice.others in (2, 3)
    assert evenly(counts(made("random"), grid, "others"), [2, 3])
    narrow = table([[Machine("m", 1)], [Machine("m", 2)]], [0, 0])
    assert made("random").choose(job(processors=2), narrow, 0, False, rng) == Choice(1, 1, -1, 1)
    assert made("random").choose(job(processors=3), narrow, 0, False, rng) == Choice(-1, -1, -1, -1)


def test_random_by_utility_draws_in_proportion_to_utility() -> None:
    """MacOS has utility 1, Linux 0.5, Solaris none."""
    machines = [Machine("m", 1, operating_system=name) for name in ("macos", "linux", "solaris")]
    grid = table([[machine] for machine in machines], [0, 0, 0])
    rng = random_stream(3, "test")
    choose = made("random", by_utility=True).choose
    picked = [choose(job(SYSTEM), grid, 0, False, rng).anywhere for _ in range(DRAWS)]
    mac, linux, solaris = np.bincount(picked, minlength=3).tolist()
    assert solaris == 0
    assert abs(mac - DRAWS * 2 / 3) < 4 * (DRAWS * 2 / 9) ** 0.5
    assert mac + linux == DRAWS


def test_round_robin_takes_turns_over_eligible_resources() -> None:
    choose, grid, rng = made("round_robin").choose, three(0, 4, UNKNOWN, 4), random_stream(1, "")
    turns = [choose(job(), grid, 0, False, rng) for _ in range(6)]
    assert [one.anywhere for one in turns] == [0, 1, 2, 3, 0, 1]
    assert [one.free for one in turns] == [0, -1, -1, -1, 0, -1]
    assert [one.others for one in turns] == [2, 3, 2, 3, 2, 3]
    # Its own have a turn of their own; so a job that may not leave changes no other turn.
    assert [choose(job(), grid, 0, True, rng).own for _ in range(3)] == [0, 1, 0]
    assert choose(job(), grid, 0, False, rng).anywhere == 2


def test_power_of_d_chooses_the_least_loaded_of_those_drawn() -> None:
    """Of four loads, two are drawn: the k-th least loaded wins where none below it is drawn."""
    grid = three(0, 1, 2, 3)
    found = counts(made("power_of_d"), grid, "anywhere")
    pairs = list(combinations(range(4), 2))
    expected = np.bincount([min(pair) for pair in pairs], minlength=4) / len(pairs) * DRAWS
    slack = 4 * np.sqrt(expected)
    assert (np.abs(np.array(found) - expected) <= slack).all()
    assert counts(made("power_of_d", d=4), grid, "anywhere") == [DRAWS, 0, 0, 0]
    assert counts(made("power_of_d", d=99), grid, "others") == [0, 0, DRAWS, 0]
    assert evenly(counts(made("power_of_d", d=1), grid, "anywhere"), [0, 1, 2, 3])


def test_power_of_d_prefers_free_resources_then_known_ones() -> None:
    wide = table([[Machine("m", 2)], [Machine("m", 8)]], [1, 6])
    rng = random_stream(1, "test")
    # The first is less loaded, and only the second has two CPUs left.
    assert made("power_of_d").choose(job(processors=2), wide, 0, False, rng).free == 1
    nothing_known = three(*[UNKNOWN] * 4)
    assert evenly(counts(made("power_of_d"), nothing_known, "anywhere"), [0, 1, 2, 3])
    one_known = three(UNKNOWN, 4, UNKNOWN, UNKNOWN)
    assert counts(made("power_of_d", d=4), one_known, "anywhere")[1] == DRAWS


@pytest.mark.parametrize("name", ["random", "round_robin", "least_loaded", "power_of_d"])
def test_barred_vos_are_never_chosen(name: str) -> None:
    found = counts(made(name), three(4, 4, 0, UNKNOWN).without((1,), 0), "anywhere")
    assert found[2] == 0
    assert sum(found) == DRAWS


def test_earliest_completion_by_hand() -> None:
    """A job of 10 s at 1000 MIPS. Slow and free: 20 s. Fast: 5 s after 40 or 8 s of work on 4."""
    slow, fast = Machine("m", 4, 500.0), Machine("m", 4, 2000.0)
    known = table([[slow], [fast]], [0, 4])
    choose = made("earliest_completion").choose
    for backlog_s, row in ((40.0, 1), (64.0, 0)):
        observed = replace(known, backlog_s=np.array([0.0, backlog_s]))
        # 5 s + 40 / 4 s, or 5 s + 64 / 4 s.
        expected = [20.0, 5.0 + backlog_s / 4]
        assert expected_completion_s(job(), observed).tolist() == expected
        assert choose(job(), observed, 0, False).anywhere == row
        assert choose(job(), observed, 0, False).free == (-1 if row else 0)
    # Without a backlog: one CPU is lacking, and the wait is a quarter of a run.
    assert expected_completion_s(job(), known).tolist() == [20.0, 5.0 + 5.0 / 4]


def test_backlog_decreases_as_jobs_run() -> None:
    """One CPU: 10 s and 6 s come at 0 and 4 s; the first is over at 8 s and not at 10 s."""
    machines = (Machine("m", 1, 2000.0), Machine("m", 2))
    vo = VirtualOrganization("v0", (Cluster("c", machines),))
    found = Assignments("v0", resources_of(vo, 0), True)
    found.add(("v0", 1), job(estimate_s=20), 0, 0)
    assert found.backlog_s(4 * SECOND_US).tolist() == [6, 0]
    found.add(("v0", 2), job(estimate_s=12), 0, 4 * SECOND_US)
    assert found.backlog_s(8 * SECOND_US).tolist() == [8, 0]
    found.remove(("v0", 1), 8 * SECOND_US, 8 * SECOND_US)
    assert found.backlog_s(8 * SECOND_US).tolist() == [6, 0]
    # On the other machine, half as fast, the second needs twice the time; it has two CPUs idle.
    found.move(("v0", 2), 1, 8 * SECOND_US)
    assert found.backlog_s(9 * SECOND_US).tolist() == [0, 11]
    found.remove(("v0", 2), 12 * SECOND_US, 20 * SECOND_US)
    assert found.backlog_s(20 * SECOND_US).tolist() == [0, 0]
