"""Jobs that scenarios list, and dependencies: checked, and by the entities that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grid.model.errors import Problem
from grid.model.fields import REFERENCE_MIPS
from grid.model.job import MEMORY, JobKey, Size
from grid.model.job_table import COLUMNS, After, JobTable, Predecessors, topological_order
from grid.model.time import NEVER, SECOND_US, from_seconds
from grid.model.workload import JobSection
from grid.protocol import names
from grid.protocol.workload_source import Successor
from grid.results.workflows import Workflows, workflows_of
from grid.workload.moldable import sizes_of

_Job = tuple[int, int]
"""Position of the VO, and row in its table."""


def listed_jobs(sections: tuple[JobSection, ...], positions: Mapping[str | None, int]) -> JobTable:
    """The jobs of a scenario's list; `positions` are those of VOs by their names."""
    submit_us = [from_seconds(section.submit_s) for section in sections]
    after = [
        [
            After(one.job, positions.get(one.vo, -1), one.state == "ok", one.data_mb)
            for one in section.after
        ]
        for section in sections
    ]
    predecessors = Predecessors.of(after, earliest_us=np.array(submit_us, np.int64))
    estimates = [section.estimate_s or section.run_s for section in sections]
    as_written: dict[str, Any] = {
        name: [getattr(section, name) for section in sections]
        for name in COLUMNS
        if name in JobSection.model_fields and name != "number"
    }
    held = [_written_resources(section) for section in sections]
    names = sorted({name for of_job in held for name in of_job})
    return JobTable.of(
        resources={name: [of_job.get(name, 0.0) for of_job in held] for name in names},
        **as_written,
        processors=[section.cpus for section in sections],
        number=[
            index if section.number is None else section.number
            for index, section in enumerate(sections, start=1)
        ],
        submit_us=submit_us,
        estimate_us=[from_seconds(estimate) for estimate in estimates],
        run_us=[from_seconds(section.run_s) for section in sections],
        predicted_us=[from_seconds(section.predicted_s or 0.0) for section in sections],
        cancel_us=[_after(section.submit_s, section.cancel_after_s) for section in sections],
        deadline_us=[_after(section.submit_s, section.deadline_s) for section in sections],
        requirements=[
            tuple(one.requirement for one in section.requirements) for section in sections
        ],
        sizes=[_sizes(one) for one in sections] if any(one.moldable for one in sections) else [],
        predecessors=predecessors if any(after) else None,
    )


def _sizes(section: JobSection) -> tuple[Size, ...]:
    if section.moldable is None:
        return ()
    fixed = {MEMORY: section.ram_mb, **section.resources}
    return sizes_of(section.moldable, section.cpus, fixed, section.resources_per_task)


def _written_resources(section: JobSection) -> dict[str, float]:
    held = {MEMORY: section.ram_mb, **section.resources}
    for name, amount in section.resources_per_task.items():
        held[name] = held.get(name, 0.0) + amount * section.cpus
    return {name: amount for name, amount in held.items() if amount}


def _after(submit_s: float, after_s: float | None) -> int:
    """Microseconds of a time after the submission; NEVER without one."""
    return NEVER if after_s is None else from_seconds(submit_s + after_s)


def place_of(sections: Sequence[JobSection], number: int) -> int:
    """The position of the job with that number in a scenario's list."""
    numbers = [
        index if section.number is None else section.number
        for index, section in enumerate(sections, start=1)
    ]
    return numbers.index(number)


class Dependencies(NamedTuple):
    """`successors` and `listeners` of each VO, and the workflows, None without dependencies.

    `successors` are rows of the VO's dependent jobs, by their predecessor; `listeners` the Workload
    Sources that depend on a job of the VO, by its number.
    """

    successors: list[dict[JobKey, tuple[Successor, ...]]]
    listeners: list[dict[int, tuple[str, ...]]]
    workflows: Workflows | None = None
    problems: Sequence[Problem] = ()


def dependencies_of(
    vos: Sequence[str], tables: Sequence[JobTable | None], direct: Sequence[JobTable | None]
) -> Dependencies:
    """The dependencies of jobs that are submitted to the Local Schedulers of `vos`.

    Those of jobs that enter clusters directly are errors.
    """
    found = Dependencies([{} for _ in vos], [{} for _ in vos])
    for vo, table in enumerate(direct):
        if table is not None and table.predecessors is not None:
            expected = "none for jobs that do not enter at a Local Scheduler"
            problem: Problem = (("direct", vo, "predecessors"), "predecessors", expected)
            return found._replace(problems=[problem])
    if not any(table is not None and table.predecessors is not None for table in tables):
        return found
    edges, problems = _edges(vos, tables)
    labelled = _labelled(tables)
    jobs = sorted(dict.fromkeys([*(one for edge in edges for one in edge[:2]), *labelled]))
    place = {job: number for number, job in enumerate(jobs)}
    before: list[list[int]] = [[] for _ in jobs]
    for later, earlier, _ in edges:
        before[place[later]].append(place[earlier])
    order = topological_order(before)
    if len(order) < len(jobs):
        cycle = [jobs[one] for one in _cycle(before, set(range(len(jobs))).difference(order))]
        numbers = [_number(tables, one) for one in cycle]
        chain = " after ".join(map(str, [*numbers, numbers[0]]))
        problems.append((("submitted", cycle[0][0], "after", numbers[0]), f"a cycle: {chain}",
                         "dependencies without a cycle"))  # fmt: skip
    if problems:
        return found._replace(problems=problems)
    for (vo, row), earlier, after in edges:
        number, source = _number(tables, earlier), names.workload_source(vos[vo])
        rows, listeners = found.successors[vo], found.listeners[earlier[0]]
        key, one = (vos[earlier[0]], number), Successor(row, after.must_complete, after.data_mb)
        rows[key] = (*rows.get(key, ()), one)
        listeners[number] = tuple(dict.fromkeys((*listeners.get(number, ()), source)))
    return found._replace(workflows=_workflows(tables, jobs, before, labelled) if jobs else None)


def _edges(
    vos: Sequence[str], tables: Sequence[JobTable | None]
) -> tuple[list[tuple[_Job, _Job, After]], list[Problem]]:
    """The later job, the earlier one and how they depend; and invalid predecessors."""
    rows = [
        {} if table is None else {number: row for row, number in enumerate(table.number.tolist())}
        for table in tables
    ]
    anywhere: dict[int, int] = {}
    for vo, numbers in enumerate(rows):
        for number in numbers:
            anywhere.setdefault(number, vo)
    edges: list[tuple[_Job, _Job, After]] = []
    problems: list[Problem] = []
    for vo, table in enumerate(tables):
        if table is None or table.predecessors is None:
            continue
        numbers, submit_us = table.number.tolist(), table.submit_us.tolist()
        for row, after in table.predecessors.rows():
            number = after.number
            own = vo if number in rows[vo] else anywhere.get(number, -1)
            other = own if after.vo < 0 else after.vo
            path = ("submitted", vo, "after", numbers[row])
            earlier = rows[other].get(number) if 0 <= other < len(vos) else None
            if after.if_known:
                # Logs name jobs that they do not have.
                at = tables[other] if earlier is not None else None
                if at is None or (at.submit_us[earlier], number) >= (submit_us[row], numbers[row]):
                    continue
            if earlier is None:
                of = f" of {vos[after.vo]}" if 0 <= after.vo < len(vos) else ""
                expected = "the number of a job that enters at a Local Scheduler"
                problems.append((path, f"job {number}{of}, which does not exist", expected))
            elif (other, earlier) == (vo, row):
                problems.append((path, f"job {number}, the job itself", "another job"))
            else:
                edges.append(((vo, row), (other, earlier), after))
    return edges, problems


def _labelled(tables: Sequence[JobTable | None]) -> dict[_Job, _Job]:
    """The first job of the same workflow of a VO, for each job that has one."""
    found: dict[_Job, _Job] = {}
    for vo, table in enumerate(tables):
        if table is not None and table.predecessors is not None:
            workflow = table.predecessors.workflow
            _, first, which = np.unique(workflow, return_index=True, return_inverse=True)
            for row in np.flatnonzero(workflow >= 0).tolist():
                found[vo, row] = (vo, int(first[which[row]]))
    return found


def _number(tables: Sequence[JobTable | None], job: _Job) -> int:
    table = tables[job[0]]
    assert table is not None
    return int(table.number[job[1]])


def _cycle(before: Sequence[Sequence[int]], left: set[int]) -> list[int]:
    """A cycle among the jobs that are `left`, each of which has one of these before it."""
    path = [min(left)]
    while (one := min(other for other in before[path[-1]] if other in left)) not in path:
        path.append(one)
    return path[path.index(one) :]


def _workflows(
    tables: Sequence[JobTable | None],
    jobs: Sequence[_Job],
    before: Sequence[Sequence[int]],
    labelled: Mapping[_Job, _Job],
) -> Workflows:
    place = {job: number for number, job in enumerate(jobs)}
    together = [place[labelled.get(job, job)] for job in jobs]
    run_s, think_s = np.zeros(len(jobs)), np.zeros(len(jobs))
    for one, (vo, row) in enumerate(jobs):
        table = tables[vo]
        assert table is not None
        mips = float(table.reference_mips[row])
        run_s[one] = int(table.run_us[row]) / SECOND_US * mips / REFERENCE_MIPS
        if table.predecessors is not None:
            think_s[one] = int(table.predecessors.think_us[row]) / SECOND_US
    vos, numbers = (
        np.array([vo for vo, _ in jobs]),
        np.array([_number(tables, one) for one in jobs]),
    )
    return workflows_of(vos, numbers, before, together, run_s, think_s)
