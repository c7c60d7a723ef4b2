"""Small tables of jobs for the tests of grid/results, written in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from grid.model.job import Job, JobOutcome, JobState
from grid.model.job_results import (
    NO_TIME,
    NOT_PLACED,
    JobPlacement,
    JobResults,
    JobRow,
    columns_of,
    in_order,
)
from grid.model.time import NEVER
from grid.results.machines import ClusterEntry, Directory

TWO_VOS = Directory(
    vos=("north", "south"),
    clusters=(
        ClusterEntry(vo=0, name="pool", cpus=(4,)),
        ClusterEntry(vo=1, name="farm", cpus=(2, 1)),
    ),
)


def us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def job(
    number: int,
    submit: float = 0.0,
    start: float | None = None,
    end: float | None = None,
    *,
    vo: int = 0,
    assigned: float | None = None,
    deadline: float | None = None,
    estimate: float = 3600.0,
    state: JobState = JobState.COMPLETED,
    at: tuple[int, int, int] | None = None,
    **others: int | float,
) -> JobRow:
    """A job that ran from `start` to `end` `at` (VO, cluster, machine), or that did not run.

    By default it was assigned when it was submitted, and ran on the first machine of its own VO's
    cluster in `TWO_VOS`.
    """
    ran = start is not None and end is not None
    executed_vo, cluster, machine = at or ((vo, vo, 0) if ran else (NOT_PLACED,) * 3)
    if assigned is None and ran:
        assigned = submit
    said: dict[str, Any] = {
        "user": 0,
        "submit_us": us(submit),
        "processors": 1,
        "estimate_us": us(estimate),
        "deadline_us": NEVER if deadline is None else us(deadline),
    }
    placement = JobPlacement(
        assigned_us=NO_TIME if assigned is None else us(assigned),
        executed_vo=executed_vo,
        cluster=cluster,
        hops=0,
        utility=1.0 if ran else 0.0,
    )
    outcome = JobOutcome(
        machine=machine,
        state=int(state),
        start_us=NO_TIME if start is None else us(start),
        end_us=NO_TIME if end is None else us(end),
        preemptions=0,
        restarts=0,
        lost_us=0,
        held_us=us(end) - us(start) if ran and start is not None and end is not None else 0,
    )
    for name, value in others.items():
        if name in JobPlacement._fields:
            placement = placement._replace(**{name: value})
        elif name in JobOutcome._fields and name not in said:
            outcome = outcome._replace(**{name: value})
        else:
            said[name] = value
    return JobRow(vo, Job(number=number, vo="", run_us=1, **said), placement, outcome)


def flat(results: JobResults) -> list[Any]:
    """The jobs of a table one by one, each with an attribute for each column."""
    columns = results.columns()
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [SimpleNamespace(**dict(zip(columns, row, strict=True))) for row in rows]


def changed(results: JobResults, **columns: Any) -> JobResults:
    """The table with other values in these columns."""
    return JobResults.of(results.columns() | columns)


def table(rows: Sequence[JobRow]) -> JobResults:
    return in_order([columns_of(rows)])


@st.composite
def tables(draw: st.DrawFn, max_jobs: int = 12) -> JobResults:
    """Any valid table over `TWO_VOS` whose machines may be overbooked. Times are whole seconds."""
    rows = []
    for number in range(draw(st.integers(0, max_jobs))):
        vo = draw(st.integers(0, 1))
        submit = draw(st.integers(0, 20))
        others = {"user": draw(st.integers(-1, 2)), "hops": draw(st.integers(0, 2))}
        deadline = draw(st.none() | st.integers(submit, 60))
        if draw(st.booleans()):
            assigned = submit + draw(st.integers(0, 5))
            start = assigned + draw(st.integers(0, 20))
            at = draw(st.sampled_from([(0, 0, 0), (1, 1, 0), (1, 1, 1)]))
            cpus = TWO_VOS.clusters[at[1]].cpus[at[2]]
            row = job(
                number,
                submit,
                start,
                start + draw(st.integers(0, 30)),
                vo=vo,
                assigned=assigned,
                deadline=deadline,
                state=draw(st.sampled_from([JobState.COMPLETED, JobState.FAILED])),
                at=at,
                processors=draw(st.integers(1, cpus)),
                utility=draw(st.sampled_from([0.25, 0.5, 0.3, 1.0])),
                **others,
            )
        else:
            state = draw(st.sampled_from([JobState.FAILED, JobState.REJECTED]))
            row = job(number, submit, vo=vo, deadline=deadline, state=state, **others)
        rows.append(row)
    return table(rows)
