"""What jobs and machines consume: watts of CPUs, summed over time.

A CPU of a machine draws `watts_busy` while a job holds it, times the job's `power`, and
`watts_idle` while none does. A machine that is down draws nothing. All is counted over one interval
for the grid: from the first submission to the last end of a job, as utilization is.

So the energy of a job is the sum over its CPUs of the time for which it held them times watts: lost
work and the costs of preemption are paid for, waiting is not. A job that moved between machines
counts as if it had held the last one all the time, and the CPUs of a cluster of gangs count as if
all drew the mean of their watts: both exact where the machines of a cluster draw the same.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job_results import JobResults
from grid.model.platform import Machine
from grid.model.time import SECOND_US
from grid.results.directory import ClusterEntry, Directory
from grid.results.occupancy import machine_numbers, ran


def has_watts(entry: ClusterEntry) -> bool:
    """Whether a machine of the cluster draws any watts that are known."""
    return any(machine.watts_idle or machine.watts_busy for machine in entry.machines)


def job_energy(results: JobResults, directory: Directory) -> Floats:
    """Joules of each job; NaN for one that did not run, or ran where no watts are known."""
    rows = ran(results)
    joules = np.full(len(results), np.nan)
    held_s = results.outcome.held_us[rows] / SECOND_US * results.processors[rows]
    busy, _ = _watts_of_jobs(results.take(rows), directory)
    joules[rows] = held_s * busy
    return joules


def cluster_energy(results: JobResults, directory: Directory) -> tuple[Floats, Floats]:
    """Joules of each cluster: of CPUs while jobs held them, and of the others. Shapes (clusters,).

    NaN where no watts are known, and everywhere if no job ran.
    """
    rows = ran(results)
    clusters = len(directory.clusters)
    known = np.array([has_watts(entry) for entry in directory.clusters], np.bool_) & rows.any()
    jobs, idle = np.full(clusters, np.nan), np.full(clusters, np.nan)
    if not known.any():
        return jobs, idle
    done = results.take(rows)
    held_s = done.outcome.held_us / SECOND_US * done.processors
    first_us, last_us = int(results.submit_us.min()), int(done.outcome.end_us.max())
    for watts, joules in zip(_watts_of_jobs(done, directory), (jobs, idle), strict=True):
        sums = np.bincount(done.placement.cluster, np.nan_to_num(held_s * watts), clusters)
        joules[known] = sums[known]
    for number in np.flatnonzero(known):
        times, levels = idle_watts(directory.clusters[number])
        spans_s = np.diff(np.clip(np.append(times, last_us), first_us, last_us)) / SECOND_US
        idle[number] = float((levels * spans_s).sum()) - idle[number]
    return jobs, idle


def extra_watts(results: JobResults, directory: Directory) -> Floats:
    """By how many watts more the cluster of each job drew from its start to its end, on average.

    For jobs that ran, where watts are known; NaN elsewhere.
    """
    outcome = results.outcome
    busy, idle = _watts_of_jobs(results, directory)
    share = outcome.held_us / np.maximum(outcome.end_us - outcome.start_us, 1)
    extra: Floats = share * results.processors * (busy - idle)
    return extra


def idle_watts(entry: ClusterEntry) -> tuple[Ints, Floats]:
    """Times from the beginning of time on, and the watts from each on if no job held any CPU."""
    changes = [(0, _draws(machine)) for machine in entry.machines]
    for outage in entry.outages:
        watts = _draws(entry.machines[outage.machine])
        changes += [(outage.start_us, -watts), (outage.end_us, watts)]
    changes.sort()
    times = np.array([time for time, _ in changes], np.int64)
    return times, np.cumsum([watts for _, watts in changes])


def _draws(machine: Machine) -> float:
    return machine.cpus * machine.watts_idle


def _watts_of_jobs(results: JobResults, directory: Directory) -> tuple[Floats, Floats]:
    """Watts of a CPU of each job's machine, busy with the job and idle; NaN where none are known.

    For jobs that ran.
    """
    busy, idle = [], []
    for entry in directory.clusters:
        machines = entry.machines if has_watts(entry) else ()
        draws = [(one.cpus, one.watts_busy, one.watts_idle) for one in machines]
        table = np.array(draws or [(1, np.nan, np.nan)] * len(entry.cpus)).reshape(-1, 3)
        if entry.gangs:
            table = np.average(table, axis=0, weights=table[:, 0])[None]
        busy += table[:, 1].tolist()
        idle += table[:, 2].tolist()
    numbers = machine_numbers(results, directory)
    return np.array(busy)[numbers] * results.power, np.array(idle)[numbers]
