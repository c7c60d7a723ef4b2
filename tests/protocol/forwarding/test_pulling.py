"""Which VO an idle VO asks for work, against a slow direct version."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grid.model.platform import Distances, Machine
from grid.model.resources import UNKNOWN, ResourceTable
from grid.protocol.forwarding.pulling import Idle, Pull
from tests.protocol.selection.test_utility import table

VOS = 4
MACHINE = Machine("m", 2)
DISTANCES = Distances(0, 1000)
"""This policy does not read them."""


def most_loaded(known: ResourceTable, asked: set[int]) -> int:
    """The first VO with the most assigned CPUs a CPU, of known status; -1: none is left."""
    busy: defaultdict[int, float] = defaultdict(float)
    cpus: defaultdict[int, float] = defaultdict(float)
    there = sorted(set(known.columns.vo.tolist()) - asked - {0})
    for row, vo in enumerate(known.columns.vo.tolist()):
        if known.assigned_cpus[row] != UNKNOWN:
            busy[vo] += known.assigned_cpus[row]
            cpus[vo] += known.columns.cpus[row]
    return max(there, key=lambda vo: busy[vo] / max(cpus[vo], 1.0), default=-1)


@given(
    others=st.lists(
        st.tuples(st.integers(1, VOS - 1), st.integers(1, 4), st.sampled_from([0.0, 1.0, UNKNOWN])),
        max_size=6,
    ),
    asked=st.sets(st.integers(1, VOS - 1)),
)
def test_the_most_loaded_known_vo_is_asked(
    others: list[tuple[int, int, float]], asked: set[int]
) -> None:
    """With probes only a few VOs are known, and there may be fewer resources than VOs."""
    rows = [(0, 2, 0.0), *sorted(others)]
    machines = [[Machine(f"m{row}", cpus) for row, (at, cpus, _) in enumerate(rows) if at == vo]
                for vo in range(VOS)]  # fmt: skip
    known = table([of or [MACHINE] for of in machines], [])
    known_rows = np.isin(known.columns.vo, [vo for vo, _, _ in rows])
    columns = known.columns.take(known_rows)
    known = ResourceTable(columns, np.array([assigned for _, _, assigned in rows]))
    policy = Pull(from_vo="most_loaded", tries=VOS)
    idle = Idle(known, 0, 0, tuple(asked), DISTANCES, np.random.default_rng(1))
    assert policy.idle(idle).vo == most_loaded(known, asked)
