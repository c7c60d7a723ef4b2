"""The kernel of agents that decide for a queue: the machines that jobs fit on."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import kernel
from grid.policies.columns import PackedView
from grid.policies.fitting import Free, fastest_fit, room_now, unpacked


@kernel()
def fits_on_machines(packed: PackedView, queue: Ints, offered: int) -> tuple[Ints, int]:
    """The fastest machine on which each of the first `offered` jobs fits, else -1; how many fit.

    For clusters without licenses.
    """
    view = unpacked(packed)
    users = np.zeros((len(view.free), 0), np.int64)
    copies, shared = view.license_copies_free, view.machines.shared
    free = Free(view.free, copies, users, view.free_resources, shared, view.now, room_now(view))
    machines = np.full(offered, -1, np.int64)
    count = 0
    for place in range(min(offered, len(queue))):
        machines[place] = fastest_fit(queue[place], view.jobs, view.machines, free)
        count += machines[place] >= 0
    return machines, count
