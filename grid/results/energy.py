"""What machines and jobs consume: watts of CPUs, summed over time.

A CPU of a machine draws `watts_busy` while a job holds it, times the job's `power`, and
`watts_idle` while none does. A machine that is down draws nothing. All is counted over one interval
for the grid: from the first submission to the last end of a job, as utilization is.

So the energy of a job is the sum over its CPUs of the time for which it held them times watts: lost
work and the costs of preemption are paid for, waiting is not. The core of each cluster knows on
which machines a job was, and says what their CPUs drew on average (`JobOutcome`).
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US
from grid.results.directory import ClusterEntry, Directory
from grid.results.occupancy import ran


def has_watts(directory: Directory) -> Bools:
    """Of which clusters the watts of any machine are known. Shape (clusters,)."""
    known = [
        any(machine.watts_idle or machine.watts_busy for machine in entry.machines)
        for entry in directory.clusters
    ]
    return np.array(known, np.bool_)


def job_energy(results: JobResults, directory: Directory) -> Floats:
    """Joules of each job; NaN for one that did not run, or ran where no watts are known."""
    known = ran(results)
    known[known] = has_watts(directory)[results.placement.cluster[known]]
    joules = _held_s(results) * results.outcome.watts_busy * results.power
    return np.where(known, joules, np.nan)


def cluster_energy(results: JobResults, directory: Directory) -> tuple[Floats, Floats]:
    """Joules of each cluster: of CPUs while jobs held them, and of the others. Shapes (clusters,).

    NaN where no watts are known, and everywhere if no job ran.
    """
    joules, done = job_energy(results, directory), results.take(ran(results))
    clusters = len(directory.clusters)
    jobs, idle = np.full(clusters, np.nan), np.full(clusters, np.nan)
    if len(done) == 0:
        return jobs, idle
    joules = np.nan_to_num(joules[ran(results)])
    displaced = _held_s(done) * done.outcome.watts_idle
    span_us = int(results.submit_us.min()), int(done.outcome.end_us.max())
    for number in np.flatnonzero(has_watts(directory)):
        times, watts = idle_watts(directory.clusters[number])
        lengths_s = np.diff(np.clip(np.append(times, span_us[1]), *span_us)) / SECOND_US
        mine = done.placement.cluster == number
        jobs[number] = joules[mine].sum()
        idle[number] = (watts * lengths_s).sum() - displaced[mine].sum()
    return jobs, idle


def extra_watts(jobs: JobResults) -> Floats:
    """By how much more the cluster of each job drew from its start to its end, on average.

    For jobs that ran.
    """
    outcome = jobs.outcome
    share = outcome.held_us / np.maximum(outcome.end_us - outcome.start_us, 1)
    extra: Floats = share * jobs.processors
    return extra * (outcome.watts_busy * jobs.power - outcome.watts_idle)


def idle_watts(entry: ClusterEntry) -> tuple[Ints, Floats]:
    """Times from the beginning of time on, and the watts from each on if no job held any CPU."""
    draws = [machine.cpus * machine.watts_idle for machine in entry.machines]
    changes = [(0, sum(draws))]
    for outage in entry.outages:
        watts = draws[outage.machine]
        changes += [(outage.start_us, -watts), (outage.end_us, watts)]
    changes.sort()
    times = np.array([time for time, _ in changes], np.int64)
    return times, np.cumsum([watts for _, watts in changes])


def _held_s(results: JobResults) -> Floats:
    """CPU seconds that each job held."""
    held: Floats = results.outcome.held_us / SECOND_US * results.processors
    return held
