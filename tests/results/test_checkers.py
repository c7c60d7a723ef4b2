"""Every kind of planted violation is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.results.checkers import check
from tests.results.results_tables import TWO_VOS, changed, flat, job, table, tables, us

ROWS = [
    job(1, 0, 1, 5, processors=2),
    job(2, 0, 1, 5, processors=2),
    job(3, 2, 5, 9, processors=4),  # takes over all CPUs at the instant they are given back
    job(1, 3, 4, 6, vo=1),
    job(2, 3, 4, 6, vo=1, at=(0, 0, 0), state=JobState.FAILED, hops=1, preemptions=1),
    job(3, 4, vo=1, state=JobState.REJECTED),
    job(4, 4, vo=1, state=JobState.FAILED),
]
FIRST, REFUSED = 0, 5


def planted(row: int, **values: Any) -> JobResults:
    """The table of ROWS with these values at one of its rows."""
    results = table(ROWS)
    columns = {name: results.columns()[name].copy() for name in values}
    for name, value in values.items():
        columns[name][row] = value
    return changed(results, **columns)


def test_a_valid_table_violates_no_invariant() -> None:
    assert check(table(ROWS), TWO_VOS, submitted=7) == []
    assert check(table([]), TWO_VOS, submitted=0) == []


@pytest.mark.parametrize(
    ("row", "values", "expected"),
    [
        (1, {"number": 1}, "have more than one row"),
        (FIRST, {"state": int(JobState.RUNNING)}, "have no final state"),
        (FIRST, {"state": 99}, "have no final state"),
        (FIRST, {"processors": 0}, "request no processor"),
        (FIRST, {"utility": 1.5}, "have a utility outside [0, 1]"),
        (FIRST, {"utility": float("nan")}, "have a utility outside [0, 1]"),
        (FIRST, {"hops": -1}, "have a negative count"),
        (FIRST, {"lost_us": -1}, "have a negative count"),
        (FIRST, {"submit_us": -5}, "have a negative time"),
        (FIRST, {"end_us": -1}, "have a start without an end"),
        (REFUSED, {"end_us": us(9)}, "have a start without an end"),
        (REFUSED, {"state": int(JobState.COMPLETED)}, "are completed but never ran"),
        (FIRST, {"state": int(JobState.REJECTED)}, "are rejected or cancelled but have run"),
        (FIRST, {"assigned_us": -1}, "ran but were never assigned"),
        (REFUSED, {"assigned_us": us(5)}, "did not run but were assigned"),
        (2, {"assigned_us": us(1)}, "were assigned before they were submitted"),
        (2, {"assigned_us": us(5) + 1}, "started before they were assigned"),
        (2, {"end_us": us(5) - 1}, "ended before they started"),
        (REFUSED, {"vo": 2}, "belong to no VO"),
        (FIRST, {"cluster": 2}, "ran in no cluster"),
        (FIRST, {"cluster": -1}, "ran in no cluster"),
        (FIRST, {"machine": 1}, "ran on no machine of their cluster"),
        (FIRST, {"machine": -1}, "ran on no machine of their cluster"),
        (FIRST, {"hops": 1, "executed_vo": 1}, "ran in a VO other than that in their row"),
        (4, {"hops": 0}, "ran in another VO but were never forwarded"),
        (REFUSED, {"machine": 0}, "did not run but have a resource"),
    ],
)
def test_a_planted_violation_is_found(row: int, values: dict[str, Any], expected: str) -> None:
    lines = check(planted(row, **values), TWO_VOS)
    assert any(line.startswith(f"jobs that {expected}") for line in lines), lines


@pytest.mark.parametrize("order", [[1, 0, 2], [0, 2, 1], [2, 1, 0]])
def test_a_table_out_of_order_is_found(order: list[int]) -> None:
    results = table([job(1, 0, 1, 2), job(2, 0, 1, 2), job(0, 1, 2, 3)])
    (line,) = check(results.take(np.array(order)), TWO_VOS)
    assert "are not in the order" in line


@pytest.mark.parametrize("values", [{"processors": 3}, {"start_us": us(1)}, {"end_us": us(5) + 1}])
def test_one_cpu_too_many_for_one_microsecond_is_found(values: dict[str, int]) -> None:
    row = 2 if "start_us" in values else 0
    values = {"assigned_us": 0, "submit_us": 0, **values} if row else values
    (line,) = check(planted(row, **values), TWO_VOS)
    assert line.startswith("machine 0 of pool of north has 4 CPUs, and ")


def test_the_machine_and_the_instant_of_an_overbooking_are_named() -> None:
    rows = [job(1, 0, 2, 5, vo=1, at=(1, 1, 1)), job(2, 0, 3.5, 7, vo=1, at=(1, 1, 1))]
    assert check(table(rows), TWO_VOS) == [
        "machine 1 of farm of south has 1 CPUs, and 2 were busy at 3.500000 s"
    ]


def slow_overbooked(results: JobResults) -> set[tuple[int, int]]:
    """Machines on which the jobs that hold a start's instant ask for more CPUs than there are."""
    found = set()
    rows = flat(results)
    for row in rows:
        here, now = (row.cluster, row.machine), row.start_us
        if now < 0 or now == row.end_us:
            continue
        busy = sum(
            other.processors
            for other in rows
            if (other.cluster, other.machine) == here and other.start_us <= now < other.end_us
        )
        if busy > TWO_VOS.clusters[here[0]].cpus[here[1]]:
            found.add(here)
    return found


@given(tables())
def test_overbooked_machines_are_found_as_by_looking_at_every_start(results: JobResults) -> None:
    results = changed(results, hops=np.ones(len(results), np.int64))
    lines = check(results, TWO_VOS)
    expected = {
        f"machine {machine} of {TWO_VOS.clusters[cluster].name}"
        for cluster, machine in slow_overbooked(results)
    }
    assert {line.split(" of ")[0] + " of " + line.split(" of ")[1] for line in lines} == expected
