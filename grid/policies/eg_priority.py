"""The priority of EG, section 3.1, of all jobs that wait. Compiled."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.model.compiled import kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.columns import PackedView
from grid.policies.fitting import unpacked

DOUBT = 1e-9
"""How much further than its bounds a job is looked at; the formulas err by far less."""


@kernel(error_model="numpy")
def eg_priorities(
    packed: PackedView,
    age_factor: float,
    k: float,
    maximum: float,
    minimum: float,
    boost_value: float,
) -> Floats:
    """By place in the queue: the sum of Aging, Deadline and Wait Minimization of EG 3.1.

    For the factors see `grid.policies.flexible.EgFactors`; times in the formulas are seconds.
    """
    view = unpacked(packed)
    now, queue = view.now, view.queue
    submit_us, deadline_us = view.jobs.submit_us, view.jobs.deadline_us
    estimate_us, reference_mips = view.jobs.estimate_us, view.jobs.reference_mips
    fastest_mips, span = view.machines.mips.max(), maximum - minimum
    priority, shortest_us = np.empty(len(queue)), NEVER
    for slot in queue:
        shortest_us = min(shortest_us, estimate_us[slot])
    boost = boost_value * (shortest_us / SECOND_US)
    least = (1 - DOUBT) / fastest_mips
    most = (1 + k) * (1 + DOUBT) / fastest_mips
    for place in range(len(queue)):
        slot = queue[place]
        age_s = (now - submit_us[slot]) / SECOND_US
        estimated_s = estimate_us[slot] / SECOND_US
        left_us, work = deadline_us[slot] - now, estimate_us[slot] * reference_mips[slot]
        rise = 0.0
        # Divisions take most of the time here, and jobs that do not press need fewer.
        if least * work <= left_us <= most * work:
            # Nxtime; with the present as zero, it is Extime too.
            next_s = estimated_s * reference_mips[slot] / fastest_mips
            deadline_s = left_us / SECOND_US
            begin_s = deadline_s - k * next_s
            if begin_s < next_s <= deadline_s:
                rise = span * (next_s - begin_s) / (k * next_s)
        priority[place] = age_factor * age_s + minimum + rise + boost / estimated_s
    return priority
