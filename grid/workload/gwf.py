"""Logs of grids in the Grid Workload Format of the Grid Workloads Archive.

An extension of the Standard Workload Format: a job a line, 29 fields separated by blanks or tabs,
-1 for what is not known, `#` before comments. The first 16 fields mean what they mean there; users,
groups, executables, queues, partitions, sites and the last fields may be names instead of numbers
(Iosup, Li, Jan, Anoep, Dumitrescu, Wolters and Epema, "The Grid Workloads Archive", FGCS 24(7),
2008).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Literal

import numpy as np

from grid.model.arrays import Ints
from grid.model.job_table import JobTable
from grid.workload import parse
from grid.workload.records import (
    NUMBER_LIMIT,
    UNKNOWN,
    LogFormat,
    Records,
    iterate_records,
)
from grid.workload.swf import SWF, CpusOf, MemoryOf, SwfField, SwfLog, jobs_from_swf

GwfRoute = Literal["site", "vo", "user", "group", "queue", "partition"]


class GwfField(IntEnum):
    """The 29 fields: positions of their columns. The first 16 are those of `SwfField`."""

    JOB_NUMBER = 0
    SUBMIT_TIME = 1
    WAIT_TIME = 2
    RUN_TIME = 3
    ALLOCATED_PROCESSORS = 4
    AVERAGE_CPU_TIME = 5
    USED_MEMORY = 6
    REQUESTED_PROCESSORS = 7
    REQUESTED_TIME = 8
    REQUESTED_MEMORY = 9
    STATUS = 10
    USER = 11
    GROUP = 12
    EXECUTABLE = 13
    QUEUE = 14
    PARTITION = 15
    ORIGINAL_SITE = 16
    LAST_RUN_SITE = 17
    JOB_STRUCTURE = 18
    JOB_STRUCTURE_PARAMETERS = 19
    USED_NETWORK = 20
    USED_DISK = 21
    USED_RESOURCES = 22
    REQUESTED_PLATFORM = 23
    REQUESTED_NETWORK = 24
    REQUESTED_DISK = 25
    REQUESTED_RESOURCES = 26
    VIRTUAL_ORGANIZATION = 27
    PROJECT = 28


COMMON_FIELDS = 16
"""So many fields, the first ones, are the same as in the Standard Workload Format."""

_SIZE_FIELDS = (
    GwfField.USED_NETWORK,
    GwfField.USED_DISK,
    GwfField.REQUESTED_NETWORK,
    GwfField.REQUESTED_DISK,
)
TEXT_FIELDS = tuple(
    field for field in GwfField if field >= GwfField.USER and field not in _SIZE_FIELDS
)
ROUTES = {
    "site": GwfField.ORIGINAL_SITE,
    "vo": GwfField.VIRTUAL_ORGANIZATION,
    "user": GwfField.USER,
    "group": GwfField.GROUP,
    "queue": GwfField.QUEUE,
    "partition": GwfField.PARTITION,
}
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}")


def _layout() -> LogFormat:
    size = len(GwfField)
    kinds, limits = np.full(size, parse.SIZE), np.full(size, NUMBER_LIMIT)
    kinds[:COMMON_FIELDS] = SWF.kinds[:COMMON_FIELDS]
    limits[:COMMON_FIELDS] = SWF.limits[:COMMON_FIELDS]
    kinds[list(TEXT_FIELDS)] = parse.TEXT
    return LogFormat(
        tuple(field.name.lower().replace("_", " ") for field in GwfField), kinds, limits, b"#"
    )


GWF = _layout()


@dataclass(frozen=True, slots=True, eq=False)
class GwfLog:
    """The jobs of a log as they stand there, in its order.

    `columns` has shape (n, 29); units and unknowns are those of `SwfLog`. A field that holds names
    (TEXT_FIELDS) has a number for each: the number itself if all its names are whole numbers, else
    1, 2, ... by first appearance. `names` says by field what each number stands for.
    """

    path: Path
    columns: Ints
    lines: Ints
    names: dict[GwfField, dict[int, str]]
    header: dict[str, str] = field(default_factory=dict)
    blank_lines: int = 0

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, column: GwfField) -> Ints:
        return self.columns[:, column]


def read_gwf(path: Path) -> GwfLog:
    """The whole log, plain or gzip. Raises InputError as `iterate_records` says."""
    path = Path(path)
    header: dict[str, str] = {}
    seen: dict[GwfField, dict[bytes, int]] = {field: {} for field in TEXT_FIELDS}
    parts = []
    for part in iterate_records(path, GWF, header):
        for named, numbers in seen.items():
            _number_names(part, named, numbers)
        parts.append((part.values, part.lines, part.blank_lines))
    columns = np.concatenate([values for values, _, _ in parts])
    names = {
        named: names_of(columns, named, [name.decode("utf-8", "replace") for name in numbers])
        for named, numbers in seen.items()
    }
    lines = np.concatenate([lines for _, lines, _ in parts])
    return GwfLog(path, columns, lines, names, header, sum(blank for _, _, blank in parts))


def _number_names(part: Records, field: GwfField, numbers: dict[bytes, int]) -> None:
    """Replace places of names by numbers from 1, in order of first appearance."""
    column = part.values[:, field]
    known = np.flatnonzero(column != UNKNOWN)
    column[known] = [
        numbers.setdefault(part.block[parse.place_of(place)], len(numbers) + 1)
        for place in column[known].tolist()
    ]


def names_of(columns: Ints, field: GwfField, texts: list[str]) -> dict[int, str]:
    """What each number of `field` stands for, where number k stands for the k-th of `texts` so far.

    If all of them are whole numbers, they come to stand for themselves, in `columns` too.
    """
    if not all(_WHOLE_NUMBER.fullmatch(text) for text in texts):
        return dict(enumerate(texts, start=1))
    values = np.array([UNKNOWN, *map(int, texts)])
    columns[:, field] = values[np.maximum(columns[:, field], 0)]
    return {int(text): text for text in texts}


def jobs_from_gwf(
    log: GwfLog,
    *,
    route: GwfRoute | None = None,
    max_processors: int | None = None,
    cut_at_estimate: bool = True,
    cpus: CpusOf = "requested",
    memory: MemoryOf | None = None,
) -> tuple[JobTable, dict[str, int]]:
    """The jobs of `log` that can run, and what was left out, by the rules of `jobs_from_swf`.

    `site` is the field that `route` names: the site or the VO a job was submitted by, its user,
    group, queue or partition.
    """
    partition = ROUTES[route] if route is not None else GwfField.PARTITION
    return jobs_from_swf(
        swf_from_gwf(log, partition=partition),
        route=None if route is None else "partition",
        max_processors=max_processors,
        cut_at_estimate=cut_at_estimate,
        cpus=cpus,
        memory=memory,
    )


def swf_from_gwf(log: GwfLog, *, partition: GwfField = GwfField.PARTITION) -> SwfLog:
    """The fields that both formats have, with the field `partition` in place of the partition.

    What a partition's or queue's number stands for is said in the header, as the logs of the
    Parallel Workloads Archive do it. All other fields and names are lost.
    """
    columns = np.full((len(log), len(SwfField)), UNKNOWN)
    columns[:, :COMMON_FIELDS] = log.columns[:, :COMMON_FIELDS]
    columns[:, SwfField.PARTITION] = log[partition]
    header = dict(log.header)
    for key, source in (("Partition", partition), ("Queue", GwfField.QUEUE)):
        named = [(n, name) for n, name in log.names[source].items() if name != str(n)]
        if named:
            header[key] = "\n".join(f"{number} {name}" for number, name in named)
    return SwfLog(log.path, columns, log.lines, header, log.blank_lines)


def gwf_from_swf(log: SwfLog) -> GwfLog:
    """The fields that both formats have; the preceding job and the think time are lost."""
    columns = np.full((len(log), len(GwfField)), UNKNOWN)
    columns[:, :COMMON_FIELDS] = log.columns[:, :COMMON_FIELDS]
    names = {
        field: {number: str(number) for number in np.unique(columns[:, field]).tolist()}
        for field in TEXT_FIELDS
    }
    for numbers in names.values():
        numbers.pop(UNKNOWN, None)
    return GwfLog(log.path, columns, log.lines, names, dict(log.header), log.blank_lines)
