"""Which jobs of a grid wait for which others, in whichever VO these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from grid.model.job import JobKey
from grid.model.job_table import JobTable
from grid.protocol.names import workload_source


class FollowUps(NamedTuple):
    """Of one VO: the rows of its jobs that wait, by the job that they wait for; and who waits.

    `listeners` are the Workload Sources of users who wait for a job of this VO, by its number.
    """

    rows: Mapping[JobKey, tuple[int, ...]]
    listeners: Mapping[int, tuple[str, ...]]


NOBODY = FollowUps({}, {})


def follow_ups(names: Sequence[str], tables: Sequence[JobTable | None]) -> list[FollowUps]:
    """Who waits for whom, by VO.

    A predecessor is looked for in the job's own VO, then in the others. One that is not there, or
    does not come before the job by time and number, is waited for by nobody.
    """
    if not any(table is not None and table.predecessors is not None for table in tables):
        return [NOBODY] * len(names)
    places: list[dict[int, int]] = [
        {} if table is None else dict(zip(table.number.tolist(), range(len(table)), strict=True))
        for table in tables
    ]
    anywhere: dict[int, int] = {}
    for vo, numbers in enumerate(places):
        for number in numbers:
            anywhere.setdefault(number, vo)
    rows: list[dict[JobKey, tuple[int, ...]]] = [{} for _ in names]
    listeners: list[dict[int, tuple[str, ...]]] = [{} for _ in names]
    for vo, table in enumerate(tables):
        if table is None or table.predecessors is None:
            continue
        for row, number in enumerate(table.predecessors.after.tolist()):
            of = vo if number in places[vo] else anywhere.get(number, -1)
            if of < 0 or not _comes_before(tables[of], places[of][number], table, row):
                continue
            key = (names[of], number)
            rows[vo][key] = (*rows[vo].get(key, ()), row)
            source = workload_source(names[vo])
            listeners[of][number] = tuple(dict.fromkeys((*listeners[of].get(number, ()), source)))
    return [FollowUps(*both) for both in zip(rows, listeners, strict=True)]


def _comes_before(first: JobTable | None, row: int, second: JobTable, other: int) -> bool:
    assert first is not None
    earlier = (first.submit_us[row], first.number[row])
    return bool(earlier < (second.submit_us[other], second.number[other]))
