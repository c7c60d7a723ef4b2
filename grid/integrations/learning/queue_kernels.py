"""What an agent is told of a queue, and where each job that it may start would run: compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inlined, kernel
from grid.policies.columns import PackedView
from grid.policies.fitting import Free, fastest_fit, unpacked

Observed = npt.NDArray[np.float32]

PROCESSORS = 2
"""Row of the table of whole numbers of `grid.policies.interface.JOB_TABLES`."""
HOUR_US = 3_600_000_000.0
BOUND_US = 10_000_000
"""Shorter jobs count as this long, as in the bounded slowdown."""
OF_CLUSTER, OF_WAITING, OF_RUNNING = 4, 6, 2
"""How many numbers there are of the cluster, of each waiting and of each running job."""


@kernel()
def fits_in_pool(jobs: Ints, free: int, queue: Ints, offered: int) -> tuple[Ints, int]:
    """For each of the first `offered` jobs machine 0 where it fits, else -1; and how many fit."""
    machines = np.full(offered, -1, np.int64)
    count = 0
    for place in range(min(offered, len(queue))):
        if jobs[PROCESSORS, queue[place]] <= free:
            machines[place] = 0
            count += 1
    return machines, count


@kernel()
def fits_on_machines(packed: PackedView, queue: Ints, offered: int) -> tuple[Ints, int]:
    """The same of several machines without licenses: the fastest that each job fits on."""
    view = unpacked(packed)
    users = np.zeros((len(view.free), 0), np.int64)
    free = Free(view.free, view.free_ram_mb, view.license_copies_free, users)
    machines = np.full(offered, -1, np.int64)
    count = 0
    for place in range(min(offered, len(queue))):
        machines[place] = fastest_fit(queue[place], view.jobs, view.machines, free)
        count += machines[place] >= 0
    return machines, count


@inlined
def squashed(value: float, half: float) -> float:
    """From 0 to below 1, one half at `half`."""
    return value / (value + half) if value > 0.0 else 0.0


@kernel(allocates=False)
def observe(
    out: Observed,
    now: int,
    cpus: int,
    free: int,
    processors: Ints,
    submit: Ints,
    estimate: Ints,
    expected: Ints,
    queue: Ints,
    running: Ints,
    is_open: Bools,
) -> None:
    """Write what `grid.integrations.learning.queue_agent.QueueObservation` describes to `out`.

    `processors` to `expected` are by slot: CPUs, submission, how long a job takes by its estimate
    and when one that runs is expected to end. `queue` are the slots that wait, `running` those that
    run, by expected end. `is_open` says which of the offered jobs fit; its last is no job.
    """
    out[:] = 0.0
    waiting, offered = len(queue), len(is_open) - 1
    wanted = 0
    for slot in queue:
        wanted += processors[slot]
    head_us, spare = now, free
    if waiting:
        for slot in running:
            if spare >= processors[queue[0]]:
                break
            spare += processors[slot]
            head_us = max(now, expected[slot])
        spare -= processors[queue[0]]
    out[0] = free / cpus
    out[1] = squashed(waiting, offered)
    out[2] = squashed(wanted, cpus)
    out[3] = squashed(head_us - now, HOUR_US)
    place = OF_CLUSTER
    for number in range(min(offered, waiting)):
        slot = queue[number]
        ends_in_time = now + estimate[slot] <= head_us or processors[slot] <= spare
        out[place] = 1.0
        out[place + 1] = processors[slot] / cpus
        out[place + 2] = squashed(estimate[slot], HOUR_US)
        out[place + 3] = squashed(now - submit[slot], HOUR_US)
        out[place + 4] = is_open[number]
        out[place + 5] = is_open[number] and (number == 0 or ends_in_time)
        place += OF_WAITING
    place = OF_CLUSTER + OF_WAITING * offered
    shown = (len(out) - place) // OF_RUNNING
    for number in range(min(shown, len(running))):
        slot = running[number]
        out[place] = processors[slot] / cpus
        out[place + 1] = squashed(expected[slot] - now, HOUR_US)
        place += OF_RUNNING


@kernel(allocates=False)
def inverse_estimates(estimate: Ints, queue: Ints, least_us: int) -> float:
    """The sum of 1 / estimate, at least `least_us`, over the slots of `queue`."""
    total = 0.0
    for slot in queue:
        total += 1.0 / max(estimate[slot], least_us)
    return total


@kernel()
def scaled(estimate_us: Ints, reference_mips: Floats, mips: float) -> Ints:
    """How long each slot's job takes on a CPU of `mips`; see `grid.policies.fitting.duration`."""
    out = np.empty(len(estimate_us), np.int64)
    for slot in range(len(out)):
        exact = estimate_us[slot] * reference_mips[slot] / mips
        out[slot] = max(1, int(np.rint(exact)))
    return out
