"""Energy of machines and jobs: power of CPUs, summed over time.

A CPU of a machine draws `watts_busy` while a job holds it, times the job's `power`, and
`watts_idle` otherwise. A machine that is down draws nothing; one that is off or booting draws
`watts_off` or `watts_boot` on each CPU. Everything is counted over one interval for the grid: from
the first submission to the last end of a job, as utilization is.

The energy of a job is therefore the sum over its CPUs of held time times watts: it includes lost
work and the cost of preemption, but not waiting and not boots. The core of each cluster records on
which machines a job was, as the mean watts of their CPUs (`JobOutcome`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job_results import JobResults
from grid.model.platform import Machine, SwitchOff
from grid.model.records import ClusterHistory, HeldTimes
from grid.model.time import NEVER, SECOND_US
from grid.results.machines import ClusterEntry, Directory, ran


def has_watts(directory: Directory) -> Bools:
    """Which clusters have a machine with known watts. Shape (clusters,)."""
    known = [any(one.has_watts for one in entry.machines) for entry in directory.clusters]
    return np.array(known, np.bool_)


def job_energy(results: JobResults, directory: Directory) -> Floats:
    """Joules of each job; NaN if it did not run, or ran in a cluster without known watts."""
    known = ran(results)
    known[known] = has_watts(directory)[results.placement.cluster[known]]
    joules = _held_s(results) * results.outcome.watts_busy * results.power
    return np.where(known, joules, np.nan)


def cluster_energy(
    results: JobResults, directory: Directory, histories: Sequence[ClusterHistory] = ()
) -> tuple[Floats, Floats]:
    """Joules of each cluster: of CPUs while jobs held them, and the rest. Shapes (clusters,).

    NaN for clusters without known watts, and for all if no job ran. The `histories` have the times
    at which machines were off.
    """
    clusters = len(directory.clusters)
    jobs, idle = np.full(clusters, np.nan), np.full(clusters, np.nan)
    if not has_watts(directory).any() or not ran(results).any():
        return jobs, idle
    joules, done = job_energy(results, directory), results.take(ran(results))
    joules = np.nan_to_num(joules[ran(results)])
    displaced = _held_s(done) * done.outcome.watts_idle
    span_us = int(results.submit_us.min()), int(done.outcome.end_us.max())
    held = held_times(histories)
    for number in np.flatnonzero(has_watts(directory)).tolist():
        times, watts = idle_watts(directory.clusters[number], held.get(number))
        lengths_s = np.diff(np.clip(np.append(times, span_us[1]), *span_us)) / SECOND_US
        mine = done.placement.cluster == number
        jobs[number] = joules[mine].sum()
        idle[number] = (watts * lengths_s).sum() - displaced[mine].sum()
    return jobs, idle


def extra_watts(jobs: JobResults) -> Floats:
    """Mean additional power of the cluster of each job from its start to its end.

    For jobs that ran without a break on one machine.
    """
    outcome = jobs.outcome
    share = outcome.held_us / np.maximum(outcome.end_us - outcome.start_us, 1)
    extra: Floats = share * jobs.processors
    return extra * (outcome.watts_busy * jobs.power - outcome.watts_idle)


def held_times(histories: Sequence[ClusterHistory]) -> dict[int, HeldTimes]:
    """By cluster, for those whose machines may be switched off."""
    return {one.cluster: one.levels.held for one in histories if one.levels.held is not None}


def idle_watts(entry: ClusterEntry, held: HeldTimes | None = None) -> tuple[Ints, Floats]:
    """Times from 0 on, and the watts from each on without those that jobs add.

    `held` has the times at which machines that may be switched off were held or booted; None if no
    machine may be.
    """
    draws = [machine.cpus * machine.watts_idle for machine in entry.machines]
    changes = [(0, sum(draws))]
    for outage in entry.outages:
        watts = draws[outage.machine]
        changes += [(outage.start_us, -watts), (outage.end_us, watts)]
    for number, machine in enumerate(entry.machines if held is not None else ()):
        if machine.switch_off is not None and held is not None:
            mine = HeldTimes(*(column[held.machine == number] for column in held))
            down = [(one.start_us, one.end_us) for one in entry.outages if one.machine == number]
            changes += _switched(machine, machine.switch_off, mine, np.array(down).reshape(-1, 2))
    changes.sort()
    times = np.array([time for time, _ in changes], np.int64)
    return times, np.cumsum([watts for _, watts in changes])


def _switched(
    machine: Machine, switch_off: SwitchOff, held: HeldTimes, down: Ints
) -> list[tuple[int, float]]:
    """Changes relative to an idle machine: while it is off, and while it boots.

    `down` has shape (outages, 2).
    """
    idle = np.concatenate(([0], held.end_us, down[:, 1]))
    ends = np.sort(np.concatenate((held.start_us, down[:, 0], [NEVER])))
    end = ends[np.searchsorted(ends, idle)]
    off = end - idle > switch_off.after_us
    boots = held.ready_us > held.start_us
    spans = [
        (idle[off] + switch_off.after_us, end[off], switch_off.watts_off),
        (held.start_us[boots], held.ready_us[boots], switch_off.watts_boot),
    ]
    changes = []
    for starts, stops, watts in spans:
        more = machine.cpus * (watts - machine.watts_idle)
        changes += [(time, more) for time in starts.tolist()]
        changes += [(time, -more) for time in stops.tolist()]
    return changes


def _held_s(results: JobResults) -> Floats:
    """CPU seconds that each job held."""
    held: Floats = results.outcome.held_us / SECOND_US * results.processors
    return held
