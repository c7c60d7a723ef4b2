"""Workflows: jobs that depend on each other, and their metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults, MeasuredJobs
from grid.model.job_table import topological_order
from grid.model.time import SECOND_US

Values = dict[str, int | float | None]


class Workflows(NamedTuple):
    """The workflows of a run: sets of jobs that are connected by dependencies, or one file.

    `vo`, `number` and `workflow` are of each job, shape (jobs,). `critical_path_s`, of shape
    (workflows,), is the longest sum of run times on CPUs of 1,000 MIPS, and think times, along
    dependencies: the makespan without waiting and transfers.
    """

    vo: Ints
    number: Ints
    workflow: Ints
    critical_path_s: Floats


def workflows_of(
    vo: Ints,
    number: Ints,
    before: Sequence[Sequence[int]],
    together: Sequence[int],
    run_s: Floats,
    think_s: Floats,
) -> Workflows:
    """The workflows of jobs whose predecessors are `before`, without cycles.

    Job j is in the same workflow as job `together[j]`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    length = run_s.tolist()
    for one in topological_order(before):
        if before[one]:
            length[one] += think_s[one] + max(length[other] for other in before[one])
    pairs = [(one, other) for one, others in enumerate(before) for other in others]
    edges = np.array([*pairs, *enumerate(together)]).T
    graph = coo_array((np.ones(edges.shape[1]), edges), (len(before), len(before)))
    count, workflow = connected_components(graph, directed=False)
    longest = np.zeros(count)
    np.maximum.at(longest, workflow, length)
    return Workflows(vo, number, workflow, longest)


def workflow_metrics(
    results: JobResults, workflows: Workflows, measured: MeasuredJobs
) -> Callable[[int | None], Values]:
    """The metrics of the workflows of a VO, or of the grid (None).

    A workflow belongs to the VO of the job that is submitted first.
    """
    count = len(workflows.critical_path_s)
    keys = zip(workflows.vo.tolist(), workflows.number.tolist(), strict=True)
    workflow_of = dict(zip(keys, workflows.workflow.tolist(), strict=True))
    done, first, end_us = np.zeros(count, np.int64), np.full(count, -1), np.zeros(count, np.int64)
    rows = np.flatnonzero(np.isin(results.number, workflows.number))
    for row in rows.tolist():
        one = workflow_of.get((int(results.vo[row]), int(results.number[row])), -1)
        if one >= 0:
            # Results are in order of submission.
            first[one] = row if first[one] < 0 else first[one]
            end_us[one] = max(end_us[one], int(results.outcome.end_us[row]))
            done[one] += results.outcome.state[row] == JobState.COMPLETED
    known = first >= 0
    submit_us, vo_of = results.submit_us[first], results.vo[first]
    known &= (submit_us >= measured.from_us) & (submit_us < measured.until_us)
    completed = known & (done == np.bincount(workflows.workflow, minlength=count))
    makespan_s = (end_us - submit_us) / SECOND_US
    path_s = workflows.critical_path_s

    def mean(values: Floats, chosen: Bools) -> float | None:
        return float(values[chosen].mean()) if chosen.any() else None

    def values_of(vo: int | None) -> Values:
        own = known if vo is None else known & (vo_of == vo)
        chosen = own & completed
        return {
            "workflows_submitted": int(own.sum()),
            "workflows_completed": int(chosen.sum()),
            "workflow_makespan_mean": mean(makespan_s, chosen),
            "critical_path_mean": mean(path_s, chosen),
            "workflow_slowdown_mean": mean(makespan_s / path_s, chosen),
        }

    return values_of
