"""PU Eq. 1 and the three selections: by hand, and against a slow direct version."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.model.job import Job, Option, Requirement, RequirementKind
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.resources import ResourceTable, concatenate_resources, resources_of
from grid.model.time import SECOND_US
from grid.protocol.selection import Choice
from grid.protocol.selection.by_utility import ByUtility, attributes_of

MODES = ("partial", "binary", "matchmaking")


def table(vos: list[list[Machine]], assigned: list[float]) -> ResourceTable:
    parts = [
        resources_of(VirtualOrganization(f"v{i}", (Cluster("c", tuple(machines)),)), i)
        for i, machines in enumerate(vos)
    ]
    return ResourceTable(concatenate_resources(parts), np.array(assigned))


def job(*requirements: Requirement, processors: int = 1, estimate_s: float = 10.0) -> Job:
    estimate_us = int(estimate_s * SECOND_US)
    return Job(
        number=1,
        vo="v0",
        user=0,
        submit_us=0,
        processors=processors,
        estimate_us=estimate_us,
        run_us=estimate_us,
        requirements=requirements,
    )


SYSTEM = Requirement(RequirementKind.OPERATING_SYSTEM, (Option(1, 1.0), Option(0, 0.5)))
FAST = Requirement(RequirementKind.SPEED, (Option(2000, 0.9), Option(1000, 0.6)))
QUICK = Requirement(RequirementKind.EXECUTION_TIME, (Option(4, 0.8), Option(12, 0.3)))


def test_eq_1_takes_the_best_fulfilled_option_and_the_mean_over_requirements() -> None:
    """The paper's example: MacOS has utility 1, Linux 0.5. Ten seconds at 1000 MIPS."""
    grid = table(
        [[Machine("linux", 1, 1000.0), Machine("mac", 1, 2500.0, operating_system="macos")]], [0, 0]
    )
    asked = job(SYSTEM, FAST, QUICK)
    partial = ByUtility("partial")
    assert partial.utility(asked, grid, 0) == pytest.approx((0.5 + 0.6 + 0.3) / 3)
    assert partial.utility(asked, grid, 1) == pytest.approx((1.0 + 0.9 + 0.8) / 3)


def test_recorded_utility_can_be_that_of_the_selection() -> None:
    grid = table([[Machine("linux", 1, 2500.0)]], [0])
    asked = job(SYSTEM, FAST)
    assert ByUtility("binary").utility(asked, grid, 0) == pytest.approx((0.5 + 0.9) / 2)
    assert ByUtility("binary", measured="as_chosen").utility(asked, grid, 0) == 0.5
    assert ByUtility("matchmaking", measured="as_chosen").utility(asked, grid, 0) == 0.0


def test_among_equals_the_first_or_the_less_loaded_if_that_is_set() -> None:
    same = [Machine("m", 4)]
    grid = table([same, same, same], [2, 3, 1])
    first = ByUtility("partial", "first").choose
    assert first(job(), grid, 1, False) == Choice(free=0, anywhere=0, own=1, others=0)
    # What is not free is no first among what is.
    assert first(job(processors=3), grid, 1, False) == Choice(2, 0, 1, 0)
    less_loaded = ByUtility("partial", "less_loaded").choose
    assert less_loaded(job(), grid, 1, False) == Choice(free=2, anywhere=2, own=1, others=2)


def slow_utility(mode: str, asked: Job, attributes: np.ndarray, row: int) -> float:
    utilities = []
    for requirement in asked.requirements:
        offered = attributes[requirement.kind, row]
        work = asked.estimate_us / SECOND_US * asked.reference_mips
        options = requirement.options if mode == "partial" else requirement.options[:1]
        fulfilled = [
            option.utility if mode == "partial" else 1.0
            for option in options
            if (
                offered == option.value
                if requirement.kind <= RequirementKind.ARCHITECTURE
                else work <= option.value * offered
                if requirement.kind == RequirementKind.EXECUTION_TIME
                else offered >= option.value
            )
        ]
        utilities.append(max(fulfilled, default=0.0) * requirement.weight)
    if mode == "matchmaking":
        return float(all(utilities))
    return sum(utilities) / len(utilities) if utilities else 1.0


REQUIREMENTS = st.lists(
    st.builds(
        Requirement,
        st.sampled_from(list(RequirementKind)),
        st.lists(
            st.builds(Option, st.sampled_from([0.0, 1.0, 2.0, 4.0]), st.floats(0.1, 1)),
            min_size=1,
            max_size=3,
        ).map(tuple),
        st.floats(0.1, 1),
    ),
    max_size=4,
)
MACHINES = st.lists(
    st.builds(
        Machine,
        st.just("m"),
        st.integers(1, 4),
        st.sampled_from([1.0, 2.0, 4.0]),
        st.sampled_from(["linux", "macos"]),
        st.sampled_from(["x86_32", "x86_64"]),
        st.sampled_from([0.0, 2.0]),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)
@given(
    requirements=REQUIREMENTS,
    vos=st.lists(MACHINES, min_size=1, max_size=3),
    data=st.data(),
    mode=st.sampled_from(MODES),
    own_only=st.booleans(),
    processors=st.integers(1, 3),
)
def test_the_compiled_choice_is_the_slow_one(
    requirements: list[Requirement],
    vos: list[list[Machine]],
    data: st.DataObject,
    mode: str,
    own_only: bool,
    processors: int,
) -> None:
    count = sum(map(len, vos))
    assigned = data.draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, np.inf]), min_size=count, max_size=count)
    )
    own = data.draw(st.integers(0, len(vos) - 1))
    grid = table(vos, assigned)
    asked = job(*requirements, processors=processors, estimate_s=2.0)
    attributes = attributes_of(grid.columns)
    columns = grid.columns

    def best(rows: list[int]) -> int:
        ranked = sorted(
            rows,
            key=lambda r: (
                -slow_utility(mode, asked, attributes, r),
                columns.vo[r] != own,
                assigned[r] / columns.cpus[r],
                r,
            ),
        )
        return ranked[0] if ranked else -1

    useful = [
        r
        for r in range(count)
        if slow_utility(mode, asked, attributes, r) > 0
        and columns.widest[r] >= processors
        and assigned[r] < np.inf
        and (columns.vo[r] == own or not own_only)
    ]
    free = [r for r in useful if columns.cpus[r] - assigned[r] >= processors]
    expected = Choice(
        best(free),
        best(useful),
        best([r for r in useful if columns.vo[r] == own]),
        best([r for r in useful if columns.vo[r] != own]),
    )
    assert ByUtility(mode).choose(asked, grid, own, own_only) == expected
