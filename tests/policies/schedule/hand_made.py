"""Schedules made by hand, machine by machine."""

from __future__ import annotations

import numpy as np

from grid.model.time import NEVER
from grid.policies.columns import CompiledView
from grid.policies.interface import Jobs, MachineColumns, Machines
from grid.policies.schedule.search import place
from grid.policies.schedule.timetable import (
    END,
    PLANNED,
    SLOT,
    START,
    Schedule,
    empty_schedule,
    insert,
    lengths_us,
    start,
    with_room,
)

Drawn = dict[str, tuple[int, int, int]]
"""(machine, start, end) of each job by name."""


def planned(schedule: Schedule, machine: int) -> list[tuple[int, int, int]]:
    """(slot, start, end) of all jobs of a machine, in order."""
    count = schedule.machines[PLANNED, machine]
    rows = schedule.jobs[[SLOT, START, END], machine, :count]
    return list(zip(*rows.tolist(), strict=True))


def drawn(schedule: Schedule, names: list[str]) -> Drawn:
    """The schedule of jobs whose slots number `names`."""
    machines = range(schedule.machines.shape[1])
    return {
        names[slot]: (machine, start, end)
        for machine in machines
        for slot, start, end in planned(schedule, machine)
    }


class HandMade:
    """A schedule made by hand; times are small numbers of microseconds."""

    def __init__(self, *machines: tuple[int, float]) -> None:
        cpus, mips = (np.array(column) for column in zip(*machines, strict=True))
        nothing, order = np.zeros(len(machines), np.int64), np.argsort(-mips, kind="stable")
        columns = MachineColumns(cpus, mips.astype(np.float64), nothing, nothing, order)
        self.schedule: Schedule = with_room(empty_schedule(columns, 0, False), 50, 50)
        ints = {name: np.zeros(50, np.int64) for name in Jobs._fields}
        self.jobs = Jobs(**ints)._replace(
            reference_mips=np.zeros(50),
            resources=np.zeros((0, 50)),
            size_table=np.zeros((0, 50)),
            checkpointable=np.zeros(50, np.bool_),
        )
        self.machines = Machines(
            cpus, nothing, order, mips.astype(np.float64), columns.resources, 0, columns.windows
        )
        self.names: list[str] = []

    def view(self, now: int) -> CompiledView:
        """The cluster at `now`, as far as what plans a job looks at it."""
        none = np.zeros(0, np.int64)
        free = self.machines.cpus
        machines, resources = self.machines, self.machines.resources
        return CompiledView(now, free, none, none, none, none, self.jobs, machines, resources)

    def job(self, name: str, processors: int, estimate: int, deadline: int = NEVER) -> int:
        slot = len(self.names)
        self.names.append(name)
        jobs = self.jobs
        jobs.serial[slot], jobs.processors[slot], jobs.estimate_us[slot] = (
            slot,
            processors,
            estimate,
        )
        jobs.reference_mips[slot], jobs.deadline_us[slot] = 1000.0, deadline
        jobs.bound_machine[slot] = -1
        return slot

    def planned(
        self, machine: int, name: str, processors: int, estimate: int, deadline: int = NEVER
    ) -> None:
        """The next job of the machine's schedule at time 0, running if it can."""
        slot = self.job(name, processors, estimate, deadline)
        length = lengths_us(slot, self.jobs, self.machines)[machine]
        position = int(self.schedule.machines[PLANNED, machine])
        insert(self.schedule, self.jobs, slot, machine, position, length, 0)
        if self.drawn()[name][1] == 0:
            start(self.schedule, machine, position)

    def placed(self, now: int, name: str, processors: int, estimate: int, deadline: int) -> None:
        assert place(self.schedule, self.view(now), self.job(name, processors, estimate, deadline))

    def drawn(self) -> Drawn:
        return drawn(self.schedule, self.names)
