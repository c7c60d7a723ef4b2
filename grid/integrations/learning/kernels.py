"""Kernels of agents: observations, the machines that jobs fit on, the best resource of each VO."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inlined, kernel
from grid.policies.columns import PackedView
from grid.policies.fitting import Free, fastest_fit, room_now, unpacked

Observed = npt.NDArray[np.float32]

HOUR_US = 3_600_000_000.0
OF_CLUSTER, OF_WAITING, OF_RUNNING = 4, 6, 2
"""Numbers in an observation of the cluster, of each waiting and of each running job."""
OF_JOB, OF_PLACE = 4, 7
"""Numbers in an observation of the job, and of each resource."""


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
    """Write a `grid.integrations.learning.agents.QueueObservation` to `out`.

    `processors` to `expected` are by slot: CPUs, submission, estimated run time, expected end of
    running jobs. `queue` are the waiting slots, `running` the running ones by expected end.
    `is_open` marks the offered jobs that fit; its last element is no job.
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
    """Estimated run time of each slot's job at `mips`; see `grid.policies.fitting.duration`."""
    out = np.empty(len(estimate_us), np.int64)
    for slot in range(len(out)):
        exact = estimate_us[slot] * reference_mips[slot] / mips
        out[slot] = max(1, int(np.rint(exact)))
    return out


@kernel(allocates=False)
def observe_places(
    out: Observed,
    rows: Ints,
    processors: int,
    estimate_us: int,
    reference_mips: float,
    ttl: int,
    hops: int,
    now: int,
    own_vo: int,
    utility: Floats,
    vo: Ints,
    cpus: Floats,
    widest: Floats,
    mips: Floats,
    assigned: Floats,
    confirmed: Floats,
) -> None:
    """Write a `grid.integrations.learning.agents.ResourceObservation` to the zeroed `out`.

    `rows` holds the resource of each place, or -1. The arrays from `utility` on are by resource;
    `confirmed` may be empty.
    """
    most = 0.0 if len(widest) else 1.0
    for row in range(len(widest)):
        most = max(most, widest[row])
    work = estimate_us * reference_mips
    out[0] = min(1.0, processors / most)
    out[1] = estimate_us / (estimate_us + HOUR_US)
    out[2] = ttl / (ttl + 1.0)
    out[3] = hops / (hops + 1.0)
    at = OF_JOB
    for row in rows:
        if row >= 0:
            load = assigned[row] / cpus[row]
            known = np.isfinite(load)
            age = now - confirmed[row] if len(confirmed) else 0.0
            run = work / mips[row]
            out[at] = 1.0
            out[at + 1] = load / (load + 1.0) if known else 1.0
            out[at + 2] = known and assigned[row] + processors - cpus[row] <= 0
            out[at + 3] = min(max(utility[row], 0.0), 1.0)
            out[at + 4] = run / (run + HOUR_US)
            out[at + 5] = squashed(age, HOUR_US) if np.isfinite(age) else 0.0
            out[at + 6] = vo[row] == own_vo
        at += OF_PLACE


@kernel(allocates=False)
def best_rows(
    best: Ints,
    reached: Floats,
    processors: int,
    own_vo: int,
    own_only: bool,
    utility: Floats,
    vo: Ints,
    cpus: Floats,
    widest: Floats,
    assigned: Floats,
) -> int:
    """Write the best eligible resource of each VO to `best` (-1: none); return how many have one.

    Free resources come first, then higher utility, then lower load, then the first. `reached`, by
    resource, gets the `utility` if the job can go there and its state is known, else 0.
    """
    best[:] = -1
    found = 0
    for row in range(len(utility)):
        able = widest[row] >= processors and np.isfinite(assigned[row])
        reached[row] = utility[row] if able and (vo[row] == own_vo or not own_only) else 0.0
        if not reached[row] > 0.0:
            continue
        other = best[vo[row]]
        if other < 0:
            found += 1
        else:
            busy = assigned[row] + processors - cpus[row] > 0
            other_busy = assigned[other] + processors - cpus[other] > 0
            if busy != other_busy:
                better = other_busy
            elif utility[row] != utility[other]:
                better = utility[row] > utility[other]
            else:
                better = assigned[row] / cpus[row] < assigned[other] / cpus[other]
            if not better:
                continue
        best[vo[row]] = row
    return found
